"""The lower half of a report: errors by message, configuration and versions, and the place where episodes appear."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from robotrials.reporting import numbers
from robotrials.reporting.charts_html import run_class
from robotrials.reporting.commands_html import defaults, given
from robotrials.reporting.loading import LoadedRun
from robotrials.reporting.markup import Markup, join, tag
from robotrials.results.error_groups import ErrorGroup, error_groups

MAX_MESSAGES = 20
_LONGEST_MESSAGE = 8000
_NOT_SHOWN = ("output_dir",)
_ALWAYS_GIVEN = ("policy.type", "policy.path", "env.type", "env.task")
"""They have no default that they could differ from."""


def errors_section(runs: Sequence[LoadedRun]) -> Markup:
    """Errors are apart from failures: by kind of message, the most frequent first."""
    blocks = []
    for i, run in enumerate(runs):
        groups = error_groups(run.records)
        blocks += [_message(run, i, len(runs) > 1, group) for group in groups[:MAX_MESSAGES]]
        if len(groups) > MAX_MESSAGES:
            more = numbers.count(len(groups) - MAX_MESSAGES, "other message")
            blocks.append(tag("p", f"and {more} of {run.label}, in its ledger.sqlite", class_="note"))
    if not blocks:
        return Markup("")
    return tag(
        "section",
        tag("h2", "Errors", tag("small", "neither success nor failure, and not part of any rate")),
        *blocks,
        id="section-errors",
    )


def _message(run: LoadedRun, position: int, several: bool, group: ErrorGroup) -> Markup:
    episodes = [run.plan.episode(number) for number in group.episodes]
    tasks = sorted({f"{episode.suite}/{episode.task}" for episode in episodes})
    where = ", ".join(tasks[:4]) + (f" and {len(tasks) - 4} more" if len(tasks) > 4 else "")
    alike = ""
    if group.variants > 1:
        alike = f"; one of {numbers.count(group.variants, 'message')} that differ in numbers alone"
    return tag(
        "details",
        tag(
            "summary",
            tag("b", numbers.count(len(episodes), "episode"), class_="bad"),
            tag("span", class_=f"swatch {run_class(position)}") if several else None,
            tag("code", group.first_line[:300]),
        ),
        tag("p", f"{run.label}: " if several else "", where, alike, class_="note"),
        tag("pre", group.example[:_LONGEST_MESSAGE]),
    )


def episodes_section(runs: Sequence[LoadedRun]) -> Markup:
    """The filters, and empty places that the script fills: thousands of episodes would make the page slow to open."""
    tasks = list(dict.fromkeys(f"{task.suite}/{task.name}" for run in runs for task in run.plan.tasks))
    choose_run = (
        _select("filter-run", "Run", [("", "all runs"), *((str(i), run.label) for i, run in enumerate(runs))])
        if len(runs) > 1
        else None
    )
    choose_task = (
        _select("filter-task", "Task", [("", "all tasks"), *((name, name) for name in tasks)])
        if len(tasks) > 1
        else None
    )
    return tag(
        "section",
        tag("h2", "Episodes", tag("small", id="shown", role="status")),
        tag("noscript", tag("p", "Videos and the table of episodes need JavaScript.", class_="note")),
        tag(
            "div",
            tag("div", id="filter-outcome", class_="chips", role="group", aria_label="Outcome"),
            choose_task,
            choose_run,
            tag("input", type="search", id="filter-text", placeholder="Seed, task or error", aria_label="Search"),
            tag(
                "div",
                tag("button", "Videos", type="button", data_view="gallery", aria_pressed="true"),
                tag("button", "Table", type="button", data_view="table", aria_pressed="false"),
                class_="chips",
                role="group",
                aria_label="View",
            ),
            class_="toolbar",
        ),
        tag("p", id="no-video", class_="note", hidden=True),
        tag("div", id="gallery", class_="gallery"),
        tag("div", id="table", class_="table", hidden=True),
        id="section-episodes",
    )


def _select(identifier: str, label: str, choices: Sequence[tuple[str, str]]) -> Markup:
    options = [tag("option", shown, value=value) for value, shown in choices]
    return tag("select", *options, id=identifier, aria_label=label)


def viewer() -> Markup:
    """The dialog that shows one episode."""
    return tag("dialog", id="viewer", aria_labelledby="viewer-title")


def configuration_section(runs: Sequence[LoadedRun]) -> Markup:
    """What was run, with what: a column a run, and what differs between them marked."""
    groups = [
        ("Configuration", [dict(_configuration(run)) for run in runs]),
        ("Versions", [dict(_versions(run)) for run in runs]),
        ("Machine", [dict(_machine(run)) for run in runs]),
    ]
    bodies = []
    for title, columns in groups:
        keys = list(dict.fromkeys(key for column in columns for key in column))
        known = [given(run.described["config"]) if title == "Configuration" else {} for run in runs]
        rows = [
            _fact_row(
                key,
                [column.get(key, "–") for column in columns],
                [key in of_run and key not in _ALWAYS_GIVEN for of_run in known],
            )
            for key in keys
        ]
        heading = tag("tr", tag("th", title, colspan=1 + len(runs), scope="colgroup"), class_="group")
        bodies.append(tag("tbody", heading, *rows))
    names = [tag("th", tag("span", class_=f"swatch {run_class(i)}"), run.label) for i, run in enumerate(runs)]
    head = tag("thead", tag("tr", tag("td"), *names)) if len(runs) > 1 else None
    return tag(
        "section",
        tag("h2", "Configuration and versions", tag("small", "bold: not the default")),
        tag("div", tag("table", head, *bodies, class_="config"), class_="scroll"),
        id="section-configuration",
    )


def _fact_row(key: str, values: Sequence[str], is_given: Sequence[bool]) -> Markup:
    """``is_given``: the value is not the default, which then is beside it where it is known."""
    kind = "differs" if len(set(values)) > 1 else None
    usual = _DEFAULTS.get(key)
    beside = tag("small", f"default {usual}") if usual else None
    cells = [
        tag("td", value, beside, class_="given") if chosen else tag("td", value)
        for value, chosen in zip(values, is_given, strict=True)
    ]
    return tag("tr", tag("th", key, scope="row"), *cells, class_=kind)


def _configuration(run: LoadedRun) -> Iterator[tuple[str, str]]:
    config = dict(run.described["config"])
    for name in _NOT_SHOWN:
        config.pop(name, None)
    for section in ("policy", "env"):  # As they were typed: --env.task, not env.options.task.
        chosen = dict(config.pop(section, None) or {})
        chosen.update(chosen.pop("options", None) or {})
        yield from _flat(section, chosen)
    yield from _flat("", config)
    yield "episodes", f"{len(run.plan):,} planned, plan {str(run.plan.hash())[:12]}"


def _versions(run: LoadedRun) -> Iterator[tuple[str, str]]:
    identity = run.described.get("identity") or {}
    benchmark = identity.get("benchmark") or {}
    policy = run.described.get("policy") or {}
    yield from _flat("", {key: identity.get(key) for key in ("robotrials", "python")})
    yield from _flat("", benchmark.get("packages") or {})
    yield from _flat("policy", {"revision": (identity.get("policy") or {}).get("revision")})
    loaded = dict(policy) if isinstance(policy, Mapping) else {}
    if isinstance(loaded.get("observations"), Mapping):
        loaded["observations"] = list(loaded["observations"])
    yield from _flat("policy", loaded)


def _machine(run: LoadedRun) -> Iterator[tuple[str, str]]:
    yield from _flat("", run.described.get("machine") or {})
    sessions = run.described.get("sessions") or ()
    yield "sessions", f"{len(sessions)}, {numbers.seconds(run.wall_s)} of wall clock"


def _flat(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Nested maps as dotted names; what is not set is left out."""
    for key, value in values.items():
        name = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(value, Mapping):
            yield from _flat(name, value)
        elif isinstance(value, (list, tuple)):
            yield name, ", ".join(map(str, value))
        elif value not in (None, ""):
            yield name, str(value).lower() if isinstance(value, bool) else str(value)


_DEFAULTS = dict(_flat("", defaults()))


def navigation(sections: Sequence[tuple[str, str]]) -> Markup:
    links = [tag("a", name, href=f"#{identifier}") for identifier, name in sections]
    return tag("nav", join(*links), aria_label="Sections")
