"""The parts of a report that stand in the page as it is opened: verdict, tasks with their intervals, time.

They need no script, so they are there at once, and they are what is printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from robotrials.reporting import numbers
from robotrials.reporting.loading import LoadedRun
from robotrials.reporting.markup import Markup, breakable, join, tag
from robotrials.results.record import EndReason
from robotrials.results.summary import PARTS, Rates, SuiteFigures

MAX_TASK_ROWS = 400
"""More rows than anybody reads, and a page that opens slowly: then the worst tasks are shown, and the suites."""
_RUN_COLOURS = 6
_PART_WORDS = {
    "reset": "resetting scenes",
    "simulate": "simulating",
    "render": "rendering",
    "infer": "policy",
    "wait": "waiting for the policy server",
    "film": "filming",
}


def run_class(position: int) -> str:
    """The class that gives the run at ``position`` its colour."""
    return f"run{position % _RUN_COLOURS}"


def plot(lanes: Iterable[tuple[str, float | None, tuple[float, float] | None]]) -> Markup:
    """Rates with their intervals on an axis from 0 to 100 %, one lane each: (class, rate, interval).

    Positions are percentages, so the drawing is as wide as its column and dots stay round.
    """
    lanes = list(lanes)
    height = 24 * len(lanes)
    shapes = [tag("line", class_="tick", x1=f"{x}%", x2=f"{x}%", y1=0, y2=height) for x in (0, 25, 50, 75, 100)]
    spoken = []
    for i, (kind, rate, bounds) in enumerate(lanes):
        if rate is None or bounds is None:
            spoken.append("no result")
            continue
        y = 24 * i + 12
        low, high, middle = (f"{100.0 * x:.2f}%" for x in (*bounds, rate))
        shapes.append(tag("line", class_=f"span {kind}", x1=low, x2=high, y1=y, y2=y))
        shapes.append(tag("circle", class_=f"dot {kind}", cx=middle, cy=y, r=5))
        spoken.append(f"{numbers.percent(rate)}, interval {numbers.interval(bounds)}")
    return tag("svg", *shapes, class_="plot", width="100%", height=height, role="img", aria_label="; ".join(spoken))


def header(title: str, runs: Sequence[LoadedRun], made: str) -> Markup:
    suites = {suite.name for run in runs for suite in run.summary.suites if len(suite.tasks) > 1}
    tasks = {task.key for run in runs for task in run.plan.tasks}
    facts = [
        numbers.count(len(tasks), "task") + (f" in {numbers.count(len(suites), 'suite')}" if len(suites) > 1 else ""),
        numbers.count(sum(len(run.records) for run in runs), "episode"),
        f"made {made}",
    ]
    return tag(
        "header",
        tag("p", "robotrials report", class_="brand"),
        tag("h1", title),
        tag("p", " · ".join(facts), class_="facts"),
        tag("p", _UNLIKE, class_="caveats") if _plans_differ(runs) else None,
        class_="top",
    )


_UNLIKE = (
    "These runs are not over the same episodes (tasks, seeds or their number differ): compare them task by task, "
    "not by their overall rates."
)


def _plans_differ(runs: Sequence[LoadedRun]) -> bool:
    return len({tuple((e.suite, e.task, e.index, e.seed) for e in run.plan) for run in runs}) > 1


def run_card(run: LoadedRun, position: int, several: bool) -> Markup:
    """One run's verdict: the rate, how sure it is, and what became of every planned episode."""
    overall = run.summary.overall
    time_limits = sum(record.end is EndReason.TIME_LIMIT for record in run.records)
    failures = overall.n_finished - overall.n_success - time_limits
    of = f"{overall.n_success:,} of {numbers.count(overall.n_finished, 'finished episode')}"
    if len(run.plan.tasks) > 1 and not run.summary.gap:
        of += f"; every one of the {len(run.plan.tasks):,} tasks weighs the same"
    return tag(
        "article",
        tag(
            "h2",
            tag("span", class_=f"swatch {run_class(position)}") if several else None,
            f"{run.policy} on {run.env}" if several else "Success rate",
            tag("small", run.label) if several else None,
        ),
        tag(
            "p",
            tag("strong", numbers.percent(overall.rate), class_="rate"),
            tag("span", f"95 % interval {numbers.interval(overall.interval)}", class_="interval"),
            class_="verdict",
        ),
        plot([(run_class(position), overall.rate, overall.interval)]),
        tag("p", of, class_="of"),
        _outcomes(
            [
                ("success", "success", overall.n_success),
                ("failure", "failure", failures),
                ("time", "time limit", time_limits),
                ("error", "error", overall.n_errors),
                ("aside", "ended out of order", overall.n_out_of_order),
                ("missing", "not run", overall.n_missing),
            ]
        ),
        _caveats(run),
        class_="card run",
    )


def _outcomes(parts: Sequence[tuple[str, str, int]]) -> Markup:
    """A bar of all planned episodes by outcome, and the counts in words."""
    total = max(1, sum(n for _, _, n in parts))
    bars, x = [], 0.0
    for kind, _, n in parts:
        share = 100.0 * n / total
        if n:
            bars.append(tag("rect", class_=f"bar {kind}", x=f"{x:.3f}%", width=f"{share:.3f}%", y=0, height=10))
        x += share
    legend = [
        tag("li", tag("span", class_=f"key {kind}"), tag("b", f"{n:,}"), f" {name}") for kind, name, n in parts if n
    ]
    return join(
        tag("svg", *bars, class_="bars", width="100%", height=10, aria_hidden="true"),
        tag("ul", *legend, class_="legend"),
    )


def _caveats(run: LoadedRun) -> Markup | None:
    """What a reader must know before believing the number."""
    overall, notes = run.summary.overall, []
    if overall.n_missing:
        notes.append(
            f"Partial: {overall.n_missing:,} of {numbers.count(overall.n_planned, 'planned episode')} not run."
        )
    if run.summary.out_of_order:
        notes.append(f"{run.summary.out_of_order[0].upper()}{run.summary.out_of_order[1:]}.")
    if overall.n_errors:
        notes.append(
            f"{numbers.count(overall.n_errors, 'episode')} ended in an error. The rate is over finished episodes only."
        )
    if gap := run.summary.gap:
        notes.append(f"{gap[0].upper()}{gap[1:]}.")
    notes += [f"{note[0].upper()}{note[1:]}." for note in run.summary.notes]
    if not run.described["config"]["eval"].get("exact", True):
        notes.append("Not exact (--eval.exact=false): outcomes may depend on how requests were batched.")
    if (stopping := run.described.get("stopping")) and stopping.get("counted") is not None:
        notes.append(
            f"Stopped early (--until={stopping.get('rule', '')}): the episodes up to there count. "
            "The intervals on this page suppose a number of episodes fixed beforehand, and are too narrow for a run "
            f"that stops by itself. What decided: {stopping.get('words') or 'not recorded'}."
        )
    if run.described.get("mixed"):
        notes.append("Mixed (--allow_mixed=true): parts of this run were made under different conditions.")
    return tag("ul", *(tag("li", note) for note in notes), class_="caveats") if notes else None


def task_table(runs: Sequence[LoadedRun]) -> Markup:
    """Every task with its interval, all runs in one row, the lowest rate of the first run first; then the suites."""
    tasks: dict[tuple[str, str], list[Rates | None]] = {}
    suites: dict[str, list[Rates | None]] = {}
    groups: dict[str, list[Rates | None]] = {}
    steps: dict[tuple[str, str], tuple[str, int]] = {}
    for i, run in enumerate(runs):
        for suite in run.summary.suites:
            suites.setdefault(suite.name, [None] * len(runs))[i] = suite
            for task in suite.tasks:
                tasks.setdefault((suite.name, task.name), [None] * len(runs))[i] = task
        for group in run.summary.groups:
            groups.setdefault(group.name, [None] * len(runs))[i] = group
        steps.update({task.key: (task.instruction, task.max_steps) for task in run.plan.tasks})
    ordered = sorted(tasks, key=lambda key: _worst_first(tasks[key]))
    of_several = {name: row for name, row in suites.items() if _n_tasks(row) > 1}
    several_suites = len(suites) > 1
    rows = [_task_row(key, tasks[key], *steps[key], several_suites) for key in ordered[:MAX_TASK_ROWS]]
    head = [
        _sorter("name", "Task", "text"),
        _sorter("rate", tag("span", "Success, 95 % interval"), "number", "ascending"),
        _sorter("k", "Successes", "number", class_="num"),
        _sorter("errors", "Errors", "number", class_="num"),
        _sorter("steps", "Steps", "number", class_="num opt"),
    ]
    bodies = [tag("tbody", *rows, class_="tasks")]
    if several_suites and of_several:
        bodies.append(tag("tbody", *(_suite_row(name, row) for name, row in of_several.items()), class_="suites"))
    if groups:
        bodies.append(tag("tbody", *(_suite_row(name, row) for name, row in groups.items()), class_="suites"))
    left_out = len(ordered) - len(rows)
    note = f"The {MAX_TASK_ROWS} lowest rates; {left_out:,} other tasks are in eval_info.json." if left_out else None
    return tag(
        "section",
        tag("h2", "Tasks", tag("small", "lowest success first; click a task to watch its failures")),
        tag(
            "div",
            tag("table", tag("thead", tag("tr", *head), _axis(len(runs))), *bodies, id="tasks", class_="figures"),
            class_="scroll",
        ),
        tag("p", note, class_="note") if note else None,
        id="section-tasks",
    )


def _n_tasks(row: Sequence[Rates | None]) -> int:
    return max((len(suite.tasks) for suite in row if isinstance(suite, SuiteFigures)), default=0)


def _worst_first(row: Sequence[Rates | None]) -> tuple[float, ...]:
    """By rate; those without any result first of all, because something is wrong there."""
    return tuple(-1.0 if task is None or task.rate is None else task.rate for task in row)


def _sorter(key: str, label: object, kind: str, sorted_: str | None = None, class_: str | None = None) -> Markup:
    button = tag("button", label, type="button", data_key=key, data_kind=kind)
    return tag("th", button, scope="col", aria_sort=sorted_, class_=class_)


def _axis(lanes: int) -> Markup:
    marks = [
        tag("text", f"{x}", x=f"{x}%", y=10, text_anchor="middle", class_="tick-label") for x in (0, 25, 50, 75, 100)
    ]
    drawing = tag("svg", *marks, class_="plot", width="100%", height=12, aria_hidden="true")
    return tag("tr", tag("td"), tag("td", drawing, class_="axis"), tag("td"), tag("td"), tag("td"), class_="axis-row")


def _task_row(
    key: tuple[str, str], row: Sequence[Rates | None], instruction: str, max_steps: int, several_suites: bool
) -> Markup:
    suite, name = key
    first = row[0]
    known = [task for task in row if task is not None]
    sort_by = {
        "data_name": f"{suite}/{name}",
        "data_rate": _worst_first(row)[0],
        "data_k": -1 if first is None else first.n_success,
        "data_errors": sum(task.n_errors for task in known),
        "data_steps": -1 if first is None or first.mean_steps is None else f"{first.mean_steps:.3f}",
    }
    prefix = tag("span", f"{suite}/", class_="suite") if several_suites and suite != name else None
    link = tag("a", prefix, breakable(name), href="#section-episodes", data_task=f"{suite}/{name}")
    says_more = instruction.lower().replace(" ", "_") not in ("", name.lower())  # LIBERO's names are their sentences
    sentence = tag("span", instruction, class_="sentence") if says_more else None
    return tag("tr", tag("th", link, sentence, scope="row"), *_cells(row, max_steps), **sort_by)


def _suite_row(name: str, row: Sequence[Rates | None]) -> Markup:
    return tag("tr", tag("th", "Mean of ", tag("b", name), scope="row"), *_cells(row, None))


def _cells(row: Sequence[Rates | None], max_steps: int | None) -> list[Markup]:
    lanes = [
        (run_class(i), None if task is None else task.rate, None if task is None else task.interval)
        for i, task in enumerate(row)
    ]
    rates = [tag("span", numbers.percent(None if task is None else task.rate, 0), class_="lane") for task in row]
    of = [tag("span", "–" if task is None else f"{task.n_success}/{task.n_finished}", class_="lane") for task in row]
    errors = [
        tag(
            "span",
            "–" if task is None else task.n_errors or "0",
            class_="lane bad" if task and task.n_errors else "lane",
        )
        for task in row
    ]
    steps = [tag("span", numbers.number(task.mean_steps if task else None), class_="lane") for task in row]
    limit = f"limit {max_steps}" if max_steps else None
    return [
        tag("td", tag("div", plot(lanes), tag("div", *rates, class_="lanes num"), class_="plotted")),
        tag("td", *of, class_="num"),
        tag("td", *errors, class_="num"),
        tag("td", *steps, class_="num opt", title=limit),
    ]


def time_section(runs: Sequence[LoadedRun]) -> Markup:
    """Where the episodes' time went, run by run, each bar its own whole."""
    blocks = []
    for i, run in enumerate(runs):
        total = sum(run.summary.seconds.values())
        if total <= 0:
            continue
        bars, legend, x = [], [], 0.0
        for part in PARTS:
            spent = run.summary.seconds[part]
            share = 100.0 * spent / total
            if share < 0.05:
                continue
            bars.append(tag("rect", class_=f"bar {part}", x=f"{x:.3f}%", width=f"{share:.3f}%", y=0, height=18))
            label = f" {_PART_WORDS[part]}, {numbers.seconds(spent)}"
            legend.append(tag("li", tag("span", class_=f"key {part}"), tag("b", f"{share:.0f} %"), label))
            x += share
        name = tag("h3", tag("span", class_=f"swatch {run_class(i)}"), run.label) if len(runs) > 1 else None
        blocks.append(
            tag(
                "div",
                name,
                tag("svg", *bars, class_="bars tall", width="100%", height=18, aria_hidden="true"),
                tag("ul", *legend, class_="legend"),
                tag("p", _pace(run, total), class_="note"),
            )
        )
    if not blocks:
        return Markup("")
    return tag("section", tag("h2", "Where the time went"), *blocks, id="section-time")


def _pace(run: LoadedRun, total: float) -> str:
    text = f"{numbers.seconds(total)} of episodes"
    if run.wall_s > 0:
        text += f" in {numbers.seconds(run.wall_s)} of wall clock"
        if run.records:
            text += f", {60.0 * len(run.records) / run.wall_s:.1f} episodes a minute"
    return text + "."
