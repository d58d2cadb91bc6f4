"""``report.html``: one or several runs as one file that opens anywhere, offline, and can be sent to somebody."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from robotrials.errors import ConfigError
from robotrials.reporting import charts_html, commands_html, comparison_html, details_html
from robotrials.reporting.loading import LoadedRun, load_runs, video_file
from robotrials.reporting.markup import Markup, data_block, join, tag
from robotrials.reporting.page import GENERATOR, page
from robotrials.results.filesystem import write_atomically
from robotrials.results.record import EndReason, EpisodeRecord
from robotrials.results.stored import StoredEpisode

ENDS = (EndReason.FAILURE, EndReason.EXCEPTION, EndReason.TIME_LIMIT, EndReason.ERROR, EndReason.SUCCESS)
"""As numbered in the page's data, which is also the order of its gallery: failures first."""
_STYLES = ("base.css", "report.css")
_SCRIPTS = ("data.js", "viewer.js", "gallery.js", "table.js", "report.js")
_LONGEST_ERROR = 4000


@dataclass(frozen=True)
class ReportMade:
    """A report that was written: where, how many bytes, and how many videos are inside it and beside it."""

    path: Path
    size: int
    embedded: int
    linked: int


def write_report(directories: Sequence[Path], output: Path | None = None, embed_bytes: int = 0) -> ReportMade:
    """Write the report of the runs in ``directories``.

    ``output`` is the file; by default ``report.html`` in the one run directory, or here for several. Videos stay where
    they are, linked by relative paths, up to ``embed_bytes`` of them inside the file (failures first).

    Raises:
        ConfigError: a directory holds no run, or the file cannot be written or is not one of ours.
        LedgerError: a ledger is missing or damaged.
    """
    runs = load_runs(directories)
    if output is None:
        output = runs[0].path / "report.html" if len(runs) == 1 else Path("report.html")
    output = output.expanduser().absolute()
    check_replaceable(output)
    videos = _Videos(runs, output.parent, embed_bytes)
    content = report_page(runs, videos)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(output, content)
    except OSError as error:
        raise ConfigError(f"{output} cannot be written: {error.strerror or error}") from error
    return ReportMade(output, len(content), len(videos.inside), videos.n_linked)


def check_replaceable(path: Path) -> None:
    """Refuse to write over a file that robotrials did not make.

    Raises:
        ConfigError: such a file is there.
    """
    if not path.exists():
        return
    if path.is_file():
        with open(path, "rb") as file:
            if f'content="{GENERATOR}'.encode() in file.read(4096):
                return
    raise ConfigError(f"{path} is there and is no page of robotrials: choose another --output")


def report_page(runs: Sequence[LoadedRun], videos: _Videos) -> bytes:
    """The file's content."""
    several = len(runs) > 1
    title = _title(runs)
    errors = details_html.errors_section(runs)
    comparison = comparison_html.comparison_section(comparison_html.compare_loaded(runs), runs, videos.link)
    sections = [
        *([("section-comparison", "Comparison")] if comparison else []),
        ("section-tasks", "Tasks"),
        ("section-episodes", "Episodes"),
        *([("section-errors", "Errors")] if errors else []),
        ("section-time", "Time"),
        ("section-configuration", "Configuration"),
        ("section-commands", "Commands"),
    ]
    body = join(
        charts_html.header(title, runs, time.strftime("%Y-%m-%d %H:%M")),
        details_html.navigation(sections),
        tag(
            "main",
            tag("div", *(charts_html.run_card(run, i, several) for i, run in enumerate(runs)), class_="cards"),
            comparison,
            charts_html.task_table(runs),
            details_html.episodes_section(runs),
            errors,
            charts_html.time_section(runs),
            details_html.configuration_section(runs),
            commands_html.commands_section(runs),
        ),
        details_html.viewer(),
    )
    data: list[Markup] = [data_block("data", {"ends": [end.value for end in ENDS], "runs": _runs_data(runs, videos)})]
    if videos.inside:
        data.append(data_block("videos", videos.inside))
    return page(title, body, _STYLES, _SCRIPTS, data)


def _title(runs: Sequence[LoadedRun]) -> str:
    policies, envs = (
        list(dict.fromkeys(names)) for names in zip(*((run.policy, run.env) for run in runs), strict=True)
    )
    who = ", ".join(policies) if len(policies) <= 4 else f"{len(policies)} policies"
    return f"{who} on {', '.join(envs)}"


def _runs_data(runs: Sequence[LoadedRun], videos: _Videos) -> list[dict[str, Any]]:
    return [_run_data(i, run, videos) for i, run in enumerate(runs)]


def _run_data(position: int, run: LoadedRun, videos: _Videos) -> dict[str, Any]:
    """One run as columns: a list a field, one entry an episode. Errors are listed once."""
    tasks = {task.key: i for i, task in enumerate(run.plan.tasks)}
    errors: dict[str, int] = {}
    names = ("task", "index", "seed", "end", "steps", "reward", "seconds", "attempt", "video", "error")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for record in run.records:
        episode = run.plan.episode(record.episode)
        message = record.error[:_LONGEST_ERROR] if record.error else None
        values = (
            tasks[(episode.suite, episode.task)],
            episode.index,
            episode.seed,
            ENDS.index(record.end),
            record.steps,
            None if record.reward_sum is None else float(f"{record.reward_sum:.6g}"),
            round(record.timings.total, 3),
            record.attempt,
            videos.address(position, record),
            None if message is None else errors.setdefault(message, len(errors)),
        )
        for name, value in zip(names, values, strict=True):
            columns[name].append(value)
    return {
        "label": run.label,
        "policy": run.policy,
        "tasks": [
            {"suite": task.suite, "name": task.name, "instruction": task.instruction, "max_steps": task.max_steps}
            for task in run.plan.tasks
        ],
        "errors": list(errors),
        "episodes": columns,
    }


class _Videos:
    """Where the page finds each video: inside itself, or by a path from its own folder."""

    def __init__(self, runs: Sequence[LoadedRun], folder: Path, embed_bytes: int) -> None:
        files = [
            (ENDS.index(record.end), i, record.episode, file)
            for i, run in enumerate(runs)
            for record in run.records
            if (file := video_file(run, record)) is not None
        ]
        self._runs = runs
        self.inside: dict[str, str] = {}
        self._addresses: dict[tuple[int, int], str] = {}
        self.n_linked = 0
        for _, run, episode, file in sorted(files):
            size = file.stat().st_size
            if size <= embed_bytes:
                embed_bytes -= size
                key = f"#{run}/{episode}"
                self.inside[key] = base64.b64encode(file.read_bytes()).decode()
                self._addresses[(run, episode)] = key
            else:
                self.n_linked += 1
                self._addresses[(run, episode)] = quote(os.path.relpath(file, folder).replace(os.sep, "/"))

    def link(self, run: int, episode: StoredEpisode) -> str | None:
        """An address that a link can open: of a video beside the page, or of the place in the page that plays it."""
        found = self.address(run, episode.record) if episode.record is not None else None
        if found is None or not found.startswith("#"):
            return found
        original = self._runs[run].plan.episode(episode.record.episode) if episode.record is not None else episode
        return f"#episode={quote(original.name)}&run={run}"

    def address(self, run: int, record: EpisodeRecord) -> str | None:
        return self._addresses.get((run, record.episode))
