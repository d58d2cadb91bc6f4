"""``leaderboard.html`` and ``leaderboard.csv``: models by suites, to sort, filter and send."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from robotrials.errors import ConfigError
from robotrials.reporting import numbers
from robotrials.reporting.board import Board, Cell, Column, Model, make_board
from robotrials.reporting.charts_html import plot
from robotrials.reporting.markup import Markup, data_block, join, tag
from robotrials.reporting.page import page
from robotrials.reporting.report import check_replaceable
from robotrials.reporting.sources import Source
from robotrials.results.filesystem import write_atomically

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a spreadsheet recognises a formula in a cell."""


_MARK = "\N{DAGGER}"
"""Stands at a rate with errors."""

_HOW_TO_READ = (
    "Rank 1 + the number of models that are clearly better in the column by which the table is sorted: whose 95 % "
    "interval lies wholly above. Equal ranks are ties. The highest rate of a column is bold. Rates are means over "
    "tasks, each weighing the same. A mean is given only where no suite, task or episode is missing. "
    f"{_MARK}: episodes erred. The rate is over the others; the interval, by which the model is ranked, is that of the "
    "worst case, from all of them failing to all of them succeeding."
)


@dataclass(frozen=True)
class LeaderboardMade:
    html: Path
    csv: Path
    board: Board


def write_leaderboard(
    sources: Sequence[Source], output: Path, suites: Sequence[str] = (), not_read: Sequence[str] = ()
) -> LeaderboardMade:
    """Write ``output`` and, beside it, the same with the ending .csv.

    Raises:
        ConfigError: there is nothing to rank, or a file cannot be written or is not ours.
    """
    output = output.expanduser().absolute()
    table = output.with_suffix(".csv")
    if table == output:
        raise ConfigError(f"--output={output} is the HTML page; the CSV is written beside it")
    check_replaceable(output)
    if table.exists() and not output.exists():
        raise ConfigError(f"{table} is there without {output.name}: choose another --output")
    board = make_board(sources, suites, not_read)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(output, leaderboard_page(board))
        write_atomically(table, leaderboard_csv(board).encode())
    except OSError as error:
        raise ConfigError(f"{output} cannot be written: {error.strerror or error}") from error
    return LeaderboardMade(output, table, board)


# -- CSV


def leaderboard_csv(board: Board) -> str:
    """A row a model; percentages, empty where there is no number. Text that a spreadsheet would run gets a quote."""
    memory = io.StringIO()
    writer = csv.writer(memory, lineterminator="\n")
    about = ["rank", "model", "policy_type", "dataset", "steps", "batch_size"]
    figures = ("percent", "low", "high", "successes", "episodes", "errors", "missing")
    writer.writerow(about + [f"{_safe(column.name)} {figure}" for column in board.columns for figure in figures])
    for model in board.models:
        training = model.training
        row: list[object] = [model.cells[0].rank or "", _safe(model.name), _safe(training.policy_type)]
        row += [_safe(training.dataset), _or_empty(training.steps), _or_empty(training.batch_size)]
        for cell in model.cells:
            row += [_percent(cell.rate), *(_percent(bound) for bound in cell.interval or (None, None))]
            row += [cell.successes, cell.finished, cell.errors, cell.missing]
        writer.writerow(row)
    return memory.getvalue()


def _safe(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text


def _percent(rate: float | None) -> str:
    return "" if rate is None else f"{100.0 * rate:.4f}"


def _or_empty(number: int | None) -> object:
    return "" if number is None else number


# -- HTML


def leaderboard_page(board: Board) -> bytes:
    """The file's content."""
    ranked = sum(model.cells[0].is_complete for model in board.models)
    n_suites = sum(column.is_suite for column in board.columns)
    facts = [
        numbers.count(len(board.models), "model"),
        numbers.count(n_suites, "suite"),
        numbers.count(sum(cell.finished for model in board.models for cell in model.cells[:1]), "episode"),
        f"made {time.strftime('%Y-%m-%d %H:%M')}",
    ]
    body = join(
        tag(
            "header",
            tag("p", "robotrials leaderboard", class_="brand"),
            tag("h1", _title(board)),
            tag("p", " · ".join(facts), class_="facts"),
            class_="top",
        ),
        tag(
            "main",
            _table_section(board, ranked),
            _lines("not-alike", "Not measured alike", board.not_alike),
            _lines("not-read", "Without results", board.not_read),
            class_="wide",
        ),
    )
    data = {
        "rows": [
            [[cell.rank, cell.floor if cell.is_complete else None, cell.missing] for cell in model.cells]
            for model in board.models
        ],
    }
    return page("Leaderboard", body, ("base.css", "leaderboard.css"), ("leaderboard.js",), [data_block("data", data)])


def _title(board: Board) -> str:
    envs = list(dict.fromkeys(env for column in board.columns for env, _ in column.suites if env))
    return f"Leaderboard: {', '.join(envs)}" if envs else "Leaderboard"


def _table_section(board: Board, ranked: int) -> Markup:
    types = sorted({model.training.policy_type for model in board.models} - {""})
    rows = [_row(i, model, board.columns) for i, model in enumerate(board.models)]
    rows.insert(ranked, _divider(len(board.columns), hidden=ranked == len(board.models)))
    return tag(
        "section",
        tag(
            "div",
            tag("input", type="search", id="filter-text", placeholder="Model or dataset", aria_label="Search"),
            tag(
                "select",
                tag("option", "all policy types", value=""),
                *(tag("option", name, value=name) for name in types),
                id="filter-type",
                aria_label="Policy type",
            )
            if len(types) > 1
            else None,
            _toggle("suites", "Suites", True)
            if any(column.is_suite for column in board.columns) and not board.columns[0].is_suite
            else None,
            _toggle("training", "Training", any(model.training.dataset for model in board.models)),
            tag("span", id="shown", class_="note", role="status"),
            class_="toolbar",
        ),
        tag(
            "div",
            tag("table", tag("thead", tag("tr", *_heads(board.columns))), tag("tbody", *rows), id="board"),
            class_="scroll",
        ),
        tag(
            "p",
            _HOW_TO_READ,
            class_="note",
            id="how-to-read",
        ),
    )


def _toggle(key: str, label: str, pressed: bool) -> Markup:
    button = tag("button", label, type="button", data_toggle=key, aria_pressed="true" if pressed else "false")
    return tag("span", button, class_="chips")


def _heads(columns: Sequence[Column]) -> list[Markup]:
    heads = [tag("th", "Rank", scope="col", class_="num rank"), tag("th", _button("Model", "name"), scope="col")]
    for name, key, kind in (
        ("Type", "type", ""),
        ("Dataset", "dataset", ""),
        ("Steps", "steps", " num"),
        ("Batch", "batch", " num"),
    ):
        heads.append(tag("th", _button(name, key), scope="col", class_=f"training{kind}"))
    for i, column in enumerate(columns):
        sort = "descending" if i == 0 else None
        kind = "suite num" if column.is_suite else "mean num"
        heads.append(tag("th", _button(column.name, f"c{i}"), scope="col", class_=kind, aria_sort=sort))
    return heads


def _button(label: str, key: str) -> Markup:
    return tag("button", label, type="button", data_key=key)


def _row(position: int, model: Model, columns: Sequence[Column]) -> Markup:
    training = model.training
    name: Markup | str = model.name
    if model.repo_id:
        name = tag("a", model.name, href=f"https://huggingface.co/{model.repo_id}", rel="noreferrer")
    return tag(
        "tr",
        tag("td", _rank(model.cells[0]), class_="num rank"),
        tag("th", name, scope="row", title="\n".join(model.labels)),
        tag("td", training.policy_type or "–", class_="training"),
        tag("td", training.dataset or "–", class_="training"),
        tag("td", numbers.number(training.steps), class_="training num"),
        tag("td", numbers.number(training.batch_size), class_="training num"),
        *(_figure(cell, column) for cell, column in zip(model.cells, columns, strict=True)),
        data_at=position,
        data_name=model.name,
        data_type=training.policy_type,
        data_dataset=training.dataset,
        data_steps=-1 if training.steps is None else training.steps,
        data_batch=-1 if training.batch_size is None else training.batch_size,
    )


def _rank(cell: Cell) -> str:
    return "–" if cell.rank is None else str(cell.rank)


def _figure(cell: Cell, column: Column) -> Markup:
    kind = "suite num" if column.is_suite else "mean num"
    of = f"{cell.successes:,}/{cell.finished:,}" if cell.finished else None
    if cell.rate is None or cell.interval is None:
        return tag("td", tag("span", cell.missing, class_="missing"), class_=kind)
    rate = tag("b" if cell.best else "span", f"{100.0 * cell.rate:.1f}", class_="value")
    if cell.is_worst_case:
        why = f"{numbers.count(cell.errors, 'episode')} erred: the interval is that of the worst case"
        rate = join(rate, tag("sup", f"{_MARK}{cell.errors:,}", class_="erred", title=why))
    bounds = tag("small", f"{100.0 * cell.interval[0]:.1f}–{100.0 * cell.interval[1]:.1f} · {of}")
    drawing = None if column.is_suite else plot([("run0", cell.rate, cell.interval)])
    missing = tag("small", cell.missing, class_="missing") if cell.missing else None
    return tag("td", rate, drawing, bounds, missing, class_=kind)


def _divider(n_columns: int, hidden: bool) -> Markup:
    words_ = tag("td", "Not ranked in this column, because something is missing", colspan=6 + n_columns)
    return tag("tr", words_, class_="divider", hidden=hidden)


def _lines(key: str, title: str, lines: Sequence[str]) -> Markup | None:
    if not lines:
        return None
    return tag("section", tag("h2", title), tag("ul", *(tag("li", line) for line in lines)), id=key)
