"""The package as others get it: its address, its types, and what the wheel holds."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from robotrials import install

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_one_address_in_code_package_and_pages() -> None:
    assert PROJECT["urls"]["Repository"] == install.REPOSITORY
    owner = install.REPOSITORY.split("/")[-2]
    places = (f"https://github.com/{owner}/robotrials", f"https://{owner}.github.io/robotrials")
    assert all(url.startswith(places) for url in PROJECT["urls"].values())
    assert PROJECT["urls"]["Documentation"] in (ROOT / "README.md").read_text(encoding="utf-8")
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]:
        for address in re.findall(r"git\+(https://[^\s\"'`)]+)", page.read_text(encoding="utf-8")):
            assert address == install.REPOSITORY, page


def test_no_page_installs_from_an_index_that_does_not_have_it() -> None:
    ours = (".md", ".py", ".sh", ".yml")
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.*")]
    pages = [page for page in pages if page.suffix in ours]
    bare = re.compile(r"pip install [^\n]*[\"' ]robotrials(\[[\w,-]+\])?[\"'](?! @)")
    found = [f"{page}: {m[0]}" for page in pages for m in bare.finditer(page.read_text("utf-8"))]
    assert found == []


def test_in_a_clone_the_command_installs_the_clone() -> None:
    assert install.install_command("metaworld") == f'pip install -e "{ROOT}[metaworld]"'
    assert install.install_command(python="/a b/python") == f"'/a b/python' -m pip install -e \"{ROOT}\""


@pytest.mark.parametrize(
    ("noted", "source"),
    [
        (None, f"git+{install.REPOSITORY}"),
        ({"url": "https://host/me/robotrials", "vcs_info": {"vcs": "git", "commit_id": "0" * 40}}, None),
        ({"url": "file:///somewhere", "archive_info": {}}, f"git+{install.REPOSITORY}"),
    ],
)
def test_elsewhere_it_installs_from_where_it_came_or_the_projects_address(
    noted: dict | None, source: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Here:
        def read_text(self, name: str) -> str | None:
            return json.dumps(noted) if noted is not None else None

    monkeypatch.setattr(install, "_clone", lambda: None)
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Here())
    source = source or f"git+https://host/me/robotrials@{'0' * 40}"
    assert install.install_command("onnx") == f'pip install "robotrials[onnx] @ {source}"'


def test_every_extra_that_a_message_names_exists() -> None:
    named = set()
    for file in (ROOT / "src").rglob("*.py"):
        named |= set(re.findall(r"install_command\(['\"]([\w-]+)['\"]", file.read_text(encoding="utf-8")))
    assert named
    assert named <= set(PROJECT["optional-dependencies"])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode and "hatchling" in done.stderr:
        pytest.skip("hatchling, which builds it, is not within reach")
    assert done.returncode == 0, done.stderr
    (file,) = folder.glob("*.whl")
    return zipfile.ZipFile(file)


def test_the_wheel_holds_types_models_and_tables(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    package = ROOT / "src" / "robotrials"
    expected = {f"robotrials/{f.relative_to(package).as_posix()}" for f in package.rglob("*") if f.is_file()}
    assert {name for name in expected if "__pycache__" not in name} <= names
    assert "robotrials/py.typed" in names
    (metadata,) = (name for name in names if name.endswith("METADATA"))
    assert f"Project-URL: Repository, {install.REPOSITORY}" in wheel.read(metadata).decode()


def test_a_users_file_sees_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(
        "import robotrials\n"
        "from robotrials.policies.base import PolicySpec\n"
        "reveal_type(robotrials.evaluate('random', 'pusht').rate)\n"
        "reveal_type(PolicySpec('p').n_action_steps)\n"
        "robotrials.evaluate(3, 'pusht')\n"
    )
    words = [sys.executable, "-m", "mypy", "--config-file=", f"--cache-dir={tmp_path}", "--follow-imports=silent"]
    done = subprocess.run([*words, "user.py"], capture_output=True, text=True, cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert 'Revealed type is "float | None"' in lines[0].replace("builtins.", ""), done.stdout + done.stderr
    assert 'Revealed type is "int"' in lines[1].replace("builtins.", "")
    assert 'incompatible type "int"' in lines[2]
