"""One HTML page of an analysis: figures inside, nothing loaded from anywhere."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path

import numpy as np

from robotrials.datasets.analysis.analyse import Analysis, SetResult
from robotrials.datasets.analysis.plots import RATIO_MARKS, band_labels
from robotrials.datasets.analysis.style import COLOURS

_CSS = """
:root{--ink:#1f2937;--muted:#6b7280;--line:#e5e7eb;--paper:#f8fafc;--card:#fff}
@media(prefers-color-scheme:dark){
:root{--ink:#e5e7eb;--muted:#9ca3af;--line:#334155;--paper:#0f172a;--card:#1e293b}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1000px;margin:0 auto;padding:48px 20px 80px}
h1{font-size:2rem;line-height:1.2;margin:0 0 6px;letter-spacing:-.02em}
h2{font-size:1.25rem;margin:0 0 4px;letter-spacing:-.01em}
p{margin:.4em 0 1em;max-width:72ch}.sub{color:var(--muted)}
section{background:var(--card);border:1px solid var(--line);border-radius:14px;padding:26px 28px;margin:22px 0}
img{display:block;width:100%;height:auto;background:#fff;border-radius:8px;padding:10px}
.facts{display:grid;grid-template-columns:repeat(4,1fr);gap:14px;margin:26px 0 0}
.fact{background:var(--card);border:1px solid var(--line);border-radius:14px;padding:16px 18px}
.fact b{display:block;font-size:1.55rem;line-height:1.25;font-variant-numeric:tabular-nums}
.fact span{color:var(--muted);font-size:.86rem}
ul.said{padding-left:1.1em;margin:.4em 0}ul.said li{margin:.35em 0}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums;margin-top:14px}
th,td{padding:7px 10px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left}th{color:var(--muted);font-weight:600}
.dot{display:inline-block;width:.7em;height:.7em;border-radius:50%;margin-right:.45em}
code{font:.88em ui-monospace,SFMono-Regular,Menlo,monospace;overflow-wrap:anywhere}
@media print{body{background:#fff}section{break-inside:avoid}}
@media(max-width:700px){main{padding:24px 12px}section{padding:18px 14px}h1{font-size:1.5rem}
.facts{grid-template-columns:1fr 1fr}}
"""

_TEXTS = {
    "6_summary": ("At a glance", "Spread, pace and number of ways to move, over the course of the task."),
    "0_lengths": ("Length of episodes", "{length}"),
    "1_counts": (
        "Chunks",
        "A chunk is {chunk} frames of actions; one begins every {stride} frames, and it counts in the band where its "
        "middle lies.",
    ),
    "2_variance": (
        "Variance, joint by joint",
        "How much the means of a band's chunks differ, in squared units of the action.{ratio} Grey: fewer than three "
        "chunks, or a joint that does not move.",
    ),
    "3_progress": (
        "Pace",
        "The progress between the first and the last frame of a chunk: the dot is the median, the bar holds half of "
        "the chunks, the line 90 %. Progress is {progress}.",
    ),
    "4_modes": (
        "Ways to move",
        "Task by task, one chunk of each episode, the one in the middle of the band. A Gaussian mixture is chosen by "
        "BIC (dash); "
        "components without a valley between them are one mode, and a mode counts when 80 % of resamples of the "
        "episodes have it too (dot; the discs are the resamples). The shaded band is what as many chunks give when "
        "progress is permuted within each episode: how varied the motion is at any time.",
    ),
    "5_pca": (
        "Map of the chunks",
        "Each dot is a chunk, on the two directions in which all chunks differ most; joints are standardised first.",
    ),
}


def page(analysis: Analysis, figures: dict[str, bytes]) -> str:
    """The page; ``figures`` as ``figures.draw_all`` makes them."""
    title = _title(analysis)
    parts = [
        _head(title),
        f"<h1>{escape(title)}</h1>",
        f'<p class="sub">{escape(_subtitle(analysis))}</p>',
        _facts(analysis),
    ]
    said = "".join(f"<li>{escape(line)}</li>" for line in findings(analysis))
    parts.append(f'<section><h2>What stands out</h2><ul class="said">{said}</ul></section>')
    for name, (heading, text) in _TEXTS.items():
        picture = base64.b64encode(figures[name]).decode()
        body = f"<h2>{escape(heading)}</h2><p class='sub'>{escape(_fill(text, analysis))}</p>"
        body += f'<img alt="{escape(heading)}" src="data:image/png;base64,{picture}">'
        if name == "4_modes":
            body += _mode_table(analysis) + _task_table(analysis)
        parts.append(f"<section>{body}</section>")
    parts.append(f"<section><h2>Settings</h2>{_settings(analysis)}</section></main>")
    return "\n".join(parts) + "\n"


def findings(analysis: Analysis) -> list[str]:
    """What the numbers say, in sentences."""
    labels = band_labels(analysis.settings.bands)
    lines = []
    if analysis.threshold:
        for one in analysis.sets:
            if dropped := len(one.lengths) - one.kept:
                lines.append(
                    f"{one.name}: {dropped} of {len(one.lengths)} episodes are shorter than "
                    f"{analysis.threshold:.0f} frames and left out."
                )
    for one in analysis.sets:
        several = [(labels[i], found.modes) for i, found in enumerate(one.modes) if found.modes and found.modes > 1]
        known = [found for found in one.modes if found.modes is not None]
        if several:
            lines.append(
                f"{one.name}: more than one way to move{_in_a_task(one)} at "
                + ", ".join(f"{label} ({n})" for label, n in several)
                + "."
            )
        elif known:
            lines.append(f"{one.name}: one way to move{_in_each_task(one)} in every band with enough episodes.")
        unknown = [labels[i] for i, found in enumerate(one.modes) if found.modes is None]
        if unknown:
            of = " of any task" if one.by_task else ""
            lines.append(
                f"{one.name}: fewer than 20 episodes{of} at {', '.join(unknown)}: modes are not counted there."
            )
    if analysis.ratio is not None:
        lines.append(_ratio_line(analysis))
    return lines


def _in_a_task(one: SetResult) -> str:
    """Which task, or tasks, moves in more than one way; empty where there is one task."""
    names = [name for name, counts in one.by_task.items() if any((found.modes or 0) > 1 for found in counts)]
    if not names:
        return ""
    others = f" and {len(names) - 3} more tasks" if len(names) > 3 else ""
    return f" in {', '.join(repr(name) for name in names[:3])}{others}"


def _in_each_task(one: SetResult) -> str:
    return f" in each of {len(one.by_task)} tasks" if one.by_task else ""


def _ratio_line(analysis: Analysis) -> str:
    assert analysis.ratio is not None
    first, second = (one.name for one in analysis.sets)
    known = np.isfinite(analysis.ratio.value)
    total = int(known.sum())
    if not total:
        return "No variance can be compared."
    sure = known & (analysis.ratio.low > 1)
    some, much = (int((sure & (analysis.ratio.value >= mark)).sum()) for mark in RATIO_MARKS)
    less = int((known & (analysis.ratio.high < 1) & (analysis.ratio.value <= 1 / RATIO_MARKS[0])).sum())
    return (
        f"{first} varies more than {second} (ratio at least {RATIO_MARKS[0]}, interval above 1) in {some} of {total} "
        f"joints and bands, much more (at least {RATIO_MARKS[1]:g}) in {much}, and less in {less}; "
        f"the median ratio is {np.nanmedian(analysis.ratio.value):.2f}."
    )


def _title(analysis: Analysis) -> str:
    names = " against ".join(one.name for one in analysis.sets)
    split = len(analysis.sets) == 2 and analysis.sets[0].path == analysis.sets[1].path
    return f"{Path(analysis.sets[0].path).resolve().name}: {names}" if split else names


def _head(title: str) -> str:
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}: dataset analysis</title><style>{_CSS}</style><main>"
    )


def _subtitle(analysis: Analysis) -> str:
    sets = "; ".join(f"{one.name}: {one.analysed:,} of {len(one.lengths):,} episodes" for one in analysis.sets)
    return f"{sets}. {len(analysis.joints)} joints, {analysis.fps:g} frames a second."


def _facts(analysis: Analysis) -> str:
    cards = []
    for one, colour in zip(analysis.sets, COLOURS, strict=False):
        dot = f'<i class="dot" style="background:{colour}"></i>'
        modes = [found.modes for found in one.modes if found.modes is not None]
        most = f"{max(modes)}" if modes else "–"
        values = (
            (f"{one.analysed:,}", "episodes"),
            (f"{np.median(one.lengths) / analysis.fps:.1f} s", "median length"),
            (f"{int(one.counts.sum()):,}", "chunks"),
            (most, "modes at most in a band"),
        )
        cards += [
            f'<div class="fact"><b>{value}</b><span>{dot}{escape(one.name)}: {what}</span></div>'
            for value, what in values
        ]
    return f'<div class="facts">{"".join(cards)}</div>'


def _fill(text: str, analysis: Analysis) -> str:
    cut = (
        f"Episodes below {analysis.threshold:.0f} frames are left out ({analysis.threshold_from})."
        if analysis.threshold
        else (f"None is left out ({analysis.threshold_from}).")
    )
    ratio = (
        " Right: the first over the second, bold where the 95 % interval of a bootstrap over episodes leaves out 1."
        if analysis.ratio
        else ""
    )
    sources = sorted({one.progress for one in analysis.sets})
    source = " and ".join("linear in time" if name == "time" else f"the column {name}" for name in sources)
    return text.format(
        length=cut, chunk=analysis.settings.chunk, stride=analysis.settings.stride, ratio=ratio, progress=source
    )


def _mode_table(analysis: Analysis) -> str:
    labels = band_labels(analysis.settings.bands)
    head = "".join(
        f"<th>{text}</th>"
        for text in ("set, band", "chunks", "BIC: components", "modes", "in resamples", "permuted progress")
    )
    rows = [
        _mode_row(one, colour, band, label)
        for one, colour in zip(analysis.sets, COLOURS, strict=False)
        for band, label in enumerate(labels)
    ]
    return f'<div class="scroll"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def _task_table(analysis: Analysis) -> str:
    """The modes of each task; empty where every set has one."""
    labels = band_labels(analysis.settings.bands)
    rows = []
    for one, colour in zip(analysis.sets, COLOURS, strict=False):
        for name, counts in one.by_task.items():
            cells = "".join(f"<td>{'–' if found.modes is None else found.modes}</td>" for found in counts)
            most = max(found.n for found in counts)
            dot = f'<i class="dot" style="background:{colour}"></i>'
            rows.append(
                f"<tr><td>{dot}{escape(one.name)}, {escape(name or 'no task')}</td><td>{most:,}</td>{cells}</tr>"
            )
    if not rows:
        return ""
    head = "".join(f"<th>{text}</th>" for text in ("set, task", "episodes", *labels))
    said = "<p class='sub'>Modes of each task. Above, a band has those of the task that has the most there.</p>"
    return f'{said}<div class="scroll"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def _mode_row(one: SetResult, colour: str, band: int, label: str) -> str:
    found = one.modes[band]
    null = f"{np.percentile(one.null, 5):.0f}–{np.percentile(one.null, 95):.0f}" if one.null else "–"
    if found.fit is None:
        cells = ["–", "fewer than 20", "–", null]
    else:
        low, high = (min(found.resampled), max(found.resampled)) if found.resampled else (None, None)
        again = "–" if low is None else f"{low}" if low == high else f"{low}–{high}"
        cells = [str(found.fit.components), f"<b>{found.modes}</b>", again, null]
    name = f'<i class="dot" style="background:{colour}"></i>{escape(one.name)}, {label}'
    return f"<tr><td>{name}</td><td>{found.n:,}</td>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _settings(analysis: Analysis) -> str:
    flags = " ".join(f"--{name}={value}" for name, value in vars(analysis.settings).items() if value is not None)
    paths = "<br>".join(f"<code>{escape(path)}</code>" for path in dict.fromkeys(one.path for one in analysis.sets))
    return f"<p>{paths}</p><p><code>{escape(flags)}</code></p>"
