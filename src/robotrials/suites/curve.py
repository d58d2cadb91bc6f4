"""Success over training steps, drawn: an SVG inside a page, and a PNG."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape

from robotrials.suites.point import Point

WIDTH, HEIGHT = 880, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 24, 18, 46
_CSS = """
:root{--ink:#1f2937;--muted:#6b7280;--line:#e5e7eb;--paper:#f8fafc;--card:#fff;--accent:#2563eb}
@media(prefers-color-scheme:dark){
:root{--ink:#e5e7eb;--muted:#9ca3af;--line:#334155;--paper:#0f172a;--card:#1e293b;--accent:#60a5fa}}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.6 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:960px;margin:0 auto;padding:44px 18px 70px}
h1{font-size:1.7rem;line-height:1.25;margin:0 0 4px;letter-spacing:-.02em;overflow-wrap:anywhere}
p{color:var(--muted);margin:.2em 0 1.2em}
section{background:var(--card);border:1px solid var(--line);border-radius:14px;padding:22px 24px;margin:18px 0}
svg{display:block;width:100%;height:auto}svg text{fill:var(--muted);font-size:13px}
.grid{stroke:var(--line)}.area{fill:var(--accent);opacity:.14}.bar{stroke:var(--accent);opacity:.6;stroke-width:1.6}
.mean{fill:none;stroke:var(--accent);stroke-width:2.4;stroke-linejoin:round}
.dot{fill:var(--accent);stroke:var(--card);stroke-width:2}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:.93rem}
th,td{padding:7px 12px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
a{color:var(--accent)}
th{color:var(--muted);font-weight:600}td:first-child,th:first-child{text-align:left}tr.best td{font-weight:700}
"""


REFRESH_S = 30
"""How often the page of a watch that goes on is loaded again."""


def page(title: str, points: Sequence[Point], goes_on: bool = False) -> str:
    """One HTML page that loads nothing: the curve, and a table of its numbers with links to the steps' reports. While
    the watch ``goes_on`` it renews itself."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    groups = list(dict.fromkeys(name for point in points for name in point.groups))
    groups = groups if len(groups) > 1 else []
    renewal = f'<meta http-equiv="refresh" content="{REFRESH_S}">' if goes_on else ""
    state = f"The watch goes on; this page renews itself every {REFRESH_S} seconds." if goes_on else ""
    body = f"<section>{svg(points)}</section>" if points else "<section>No checkpoint has been evaluated yet.</section>"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"{renewal}"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{_CSS}</style><main><h1>{escape(title)}</h1>"
        f"<p>Success over training steps. Every checkpoint played the same episodes; intervals are 95 %. {state}</p>"
        f'{body}<section class="scroll">{_table(points, groups)}</section></main>\n'
    )


def svg(points: Sequence[Point]) -> str:
    """The curve: the band is the 95 % interval, the line the rate. ``points`` is not empty."""
    last = max(point.step for point in points)
    first = min(point.step for point in points) if len(points) > 1 else 0
    span = max(1, last - first)

    def x(step: int) -> float:
        return _LEFT + (step - first) / span * (WIDTH - _LEFT - _RIGHT)

    def y(rate: float) -> float:
        return _TOP + (1 - rate) * (HEIGHT - _TOP - _BOTTOM)

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="success over training steps">']
    for percent in (0, 25, 50, 75, 100):
        height = y(percent / 100)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 10}" y="{height + 4:.1f}" text-anchor="end">{percent} %</text>')
    for step in _ticks([point.step for point in points]):
        anchor = "end" if step == last else "middle"
        parts.append(f'<text x="{x(step):.1f}" y="{HEIGHT - 16}" text-anchor="{anchor}">{step:,}</text>')
    known = [
        (x(point.step), point.rate, *point.interval, point)
        for point in points
        if point.rate is not None and point.interval
    ]
    area = [f"{at:.1f},{y(high):.1f}" for at, _, _, high, _ in known] + [
        f"{at:.1f},{y(low):.1f}" for at, _, low, _, _ in known[::-1]
    ]
    parts.append(f'<polygon class="area" points="{" ".join(area)}"/>')
    parts.append(
        f'<polyline class="mean" points="{" ".join(f"{at:.1f},{y(rate):.1f}" for at, rate, _, _, _ in known)}"/>'
    )
    for at, rate, low, high, point in known:
        parts.append(f'<line class="bar" x1="{at:.1f}" x2="{at:.1f}" y1="{y(low):.1f}" y2="{y(high):.1f}"/>')
        dot = f'<circle class="dot" cx="{at:.1f}" cy="{y(rate):.1f}" r="5.5"/>'
        parts.append(f'<a href="{escape(point.report)}">{dot}</a>' if point.report else dot)
    return "".join([*parts, "</svg>"])


def picture(title: str, points: Sequence[Point]) -> bytes:
    """The same as PNG bytes; needs matplotlib."""
    from robotrials.datasets.analysis.style import COLOURS, figure

    with figure(8.5, 4) as (sheet, axes):
        known = [(p.step, p.rate, *p.interval) for p in points if p.rate is not None and p.interval is not None]
        steps, rates, low, high = ([row[i] for row in known] for i in range(4))
        axes.fill_between(steps, [100 * v for v in low], [100 * v for v in high], color=COLOURS[0], alpha=0.15, lw=0)
        axes.vlines(steps, [100 * v for v in low], [100 * v for v in high], color=COLOURS[0], alpha=0.6, lw=1.4)
        axes.plot(steps, [100 * v for v in rates], "-o", color=COLOURS[0], lw=2.2, ms=7, mec="white", mew=1.4)
        axes.set(ylim=(-3, 103), xlabel="training steps", ylabel="success, %", title=title)
        axes.xaxis.set_major_formatter(lambda step, _: f"{step:,.0f}")
        memory = io.BytesIO()
        sheet.savefig(memory, format="png")
        return memory.getvalue()


def _ticks(steps: Sequence[int], most: int = 8) -> list[int]:
    """At most so many of the steps, the last one among them."""
    stride = -(-len(steps) // most)
    return sorted(steps[::-1][::stride])


def _table(points: Sequence[Point], groups: Sequence[str]) -> str:
    head = ["step", "success", "95 % interval", "episodes", "errors", *groups]
    best = max((point.rate for point in points if point.rate is not None), default=None)
    rows = []
    for point in points:
        interval = "–" if point.interval is None else f"{100 * point.interval[0]:.1f} – {100 * point.interval[1]:.1f}"
        cells = [
            f"{point.step:,}",
            _percent(point.rate),
            interval,
            f"{point.finished:,} of {point.planned:,}",
            str(point.errors),
        ]
        cells += [_percent(point.groups[name][0] if name in point.groups else None) for name in groups]
        mark = ' class="best"' if point.rate is not None and point.rate == best else ""
        first, *others = (escape(cell) for cell in cells)
        if point.report:
            first = f'<a href="{escape(point.report)}">{first}</a>'
        rows.append(f"<tr{mark}>" + "".join(f"<td>{cell}</td>" for cell in (first, *others)) + "</tr>")
    titles = "".join(f"<th>{escape(name)}</th>" for name in head)
    return f"<table><tr>{titles}</tr>{''.join(rows)}</table>"


def _percent(rate: float | None) -> str:
    return "–" if rate is None else f"{100 * rate:.1f} %"
