"""Links between pages lead somewhere: files exist, and so do the headings they point at."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import DOCS, PAGES, ROOT, prose

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """Ids of the headings of a page, as Markdown's toc and GitHub make them."""
    found: set[str] = set()
    for line in _without_fences(page):
        if line.startswith("#"):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line.lstrip("#").strip()).replace("`", "")
            slug = re.sub(r"[^\w\s-]", "", text.lower()).strip()
            found.add(re.sub(r"[\s-]+", "-", slug))
    return found


def _without_fences(page: Path) -> list[str]:
    inside, lines = False, []
    for line in page.read_text(encoding="utf-8").splitlines():
        inside ^= line.lstrip().startswith("```")
        lines.append("" if inside else line)
    return lines


def broken_links(page: Path) -> list[str]:
    wrong = []
    for number, line in enumerate(prose(page), start=1):
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
                wrong.append(f"{page.name}:{number}: {target}")
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading_that_exist(page: Path) -> None:
    assert broken_links(page) == []


def test_what_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# One `heading`\n")
    page = tmp_path / "page.md"
    links = [
        "[a](other.md)",
        "[a](other.md#one-heading)",
        "[a](other.md#two)",
        "![a](missing.png)",
        "[a](https://x.org)",
    ]
    page.write_text("\n".join(links) + "\n`[a](in-code.md)`\n")
    assert broken_links(page) == ["page.md:3: other.md#two", "page.md:4: missing.png"]


def test_every_page_is_in_the_navigation_of_the_site_or_left_out_on_purpose() -> None:
    class Loader(yaml.SafeLoader):
        """mkdocs.yml names Python objects, which do not matter here."""

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: None)
    config = Loader((ROOT / "mkdocs.yml").read_text(encoding="utf-8")).get_single_data()
    listed = set(_leaves(config["nav"]))
    there = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert there - listed == set()
    assert {name for name in listed if not (DOCS / name).exists()} == set()


def _leaves(node: object) -> list[str]:
    if isinstance(node, str):
        return [node]
    if isinstance(node, dict):
        return [leaf for value in node.values() for leaf in _leaves(value)]
    assert isinstance(node, list)
    return [leaf for item in node for leaf in _leaves(item)]
