"""The figures of an analysis, as PNG bytes."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from robotrials.datasets.analysis.analyse import Analysis
from robotrials.datasets.analysis.lengths import length_density
from robotrials.datasets.analysis.style import COLOURS, FAINT, INK, MUTED, figure

RATIO_MARKS = (1.2, 2.0)
"""From here on the first set is said to vary more, and much more, than the second."""


def draw_all(analysis: Analysis) -> dict[str, bytes]:
    """Every figure, by the name of its file without suffix, in the order of the page."""
    drawings: dict[str, Callable[[Analysis], bytes]] = {
        "0_lengths": lengths,
        "1_counts": counts,
        "2_variance": variance,
        "3_progress": progress,
        "4_modes": modes,
        "5_pca": pca,
        "6_summary": summary,
    }
    return {name: draw(analysis) for name, draw in drawings.items()}


def band_labels(bands: int) -> list[str]:
    """``0-20 %`` and so on."""
    edges = [round(100 * i / bands) for i in range(bands + 1)]
    return [f"{low}–{high} %" for low, high in itertools.pairwise(edges)]


def lengths(analysis: Analysis) -> bytes:
    """How long episodes are, their density, and the threshold."""
    with figure(8, 3.6) as (sheet, axes):
        everything = np.concatenate([one.lengths for one in analysis.sets])
        bins = _length_bins(everything)
        for one, colour in zip(analysis.sets, COLOURS, strict=False):
            label = f"{_short(one.name, 34)} ({len(one.lengths):,})"
            axes.hist(one.lengths, bins, color=colour, alpha=0.28, label=label)
            density = length_density(one.lengths)
            if len(density.at) > 3:
                per_bin = len(one.lengths) * (bins[1] - bins[0])
                axes.plot(density.at, density.density * per_bin, color=colour, lw=2)
        if analysis.threshold:
            axes.axvline(analysis.threshold, color=INK, lw=1.2, ls=(0, (4, 3)))
            axes.annotate(
                f" {analysis.threshold:.0f} frames",
                (analysis.threshold, 0.97),
                xycoords=("data", "axes fraction"),
                va="top",
            )
        axes.set(
            xlabel=f"frames of an episode ({analysis.fps:g} a second)", ylabel="episodes", title="Length of episodes"
        )
        axes.set_xlim(left=0)
        _legend_above(axes)  # inside, it would lie over bars
        return _png(sheet)


def _length_bins(lengths: np.ndarray) -> np.ndarray:
    """Edges of the histogram, over a twentieth of the axis at least: lengths that are all alike would not be seen."""
    low, high = float(lengths.min()), float(lengths.max())
    pad = max(0.0, 0.05 * high - (high - low)) / 2
    n = 1 if low == high else min(40, max(8, len(np.unique(lengths))))
    return np.linspace(low - pad, high + pad, n + 1)


def counts(analysis: Analysis) -> bytes:
    """Chunks in each band of progress."""
    with figure(8, 3.4) as (sheet, axes):
        _bars(axes, analysis, [one.counts for one in analysis.sets])
        axes.set(ylabel="chunks", title="Chunks in each band of progress")
        return _png(sheet)


def variance(analysis: Analysis) -> bytes:
    """Variance of the chunks' means by joint and band, and the ratio where there are two sets."""
    panels = len(analysis.sets) + (analysis.ratio is not None)
    height = 1.7 + 0.27 * len(analysis.joints)
    with figure(max(8, 3.4 * panels + 0.8), height, panels, sharey=True, squeeze=False) as (sheet, grid):
        tables = [one.spread.variance for one in analysis.sets]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = [np.log10(np.where(table > 0, table, np.nan)) for table in tables]
        known = np.concatenate([table[np.isfinite(table)] for table in logs])
        low, high = (float(known.min()), float(known.max())) if len(known) else (-1.0, 0.0)
        for axes, one, table in zip(grid[0], analysis.sets, logs, strict=False):
            image = _heat(axes, table.T, analysis, cmap="Blues", vmin=low - 0.2 * (high - low + 0.1), vmax=high)
            axes.set_title(_short(one.name, 30))
            _numbers(axes, one.spread.variance.T, image)
        bar = sheet.colorbar(image, ax=grid[0][: len(analysis.sets)], shrink=0.8, pad=0.02)
        bar.set_label("variance, action units²")
        bar.ax.yaxis.set_major_formatter(lambda power, _: f"{10**power:.2g}")
        bar.outline.set_visible(False)
        if analysis.ratio is not None:
            _ratio(sheet, grid[0][-1], analysis)
        grid[0][0].set_yticks(range(len(analysis.joints)), [name[:18] for name in analysis.joints])
        return _png(sheet)


def _ratio(sheet: Any, axes: Any, analysis: Analysis) -> None:
    assert analysis.ratio is not None
    value = analysis.ratio.value.T
    with np.errstate(divide="ignore", invalid="ignore"):
        shown = np.log2(value)
    image = _heat(axes, shown, analysis, cmap="RdBu_r", vmin=-2, vmax=2)
    sure = (analysis.ratio.low.T > 1) | (analysis.ratio.high.T < 1)
    _numbers(axes, value, image, bold=sure)
    axes.set_title(" / ".join(_short(one.name, 14) for one in analysis.sets))
    bar = sheet.colorbar(image, ax=axes, shrink=0.8, pad=0.02, ticks=[-2, -1, 0, np.log2(RATIO_MARKS[0]), 1, 2])
    bar.ax.set_yticklabels(["1/4", "1/2", "1", "1.2", "2", "4"])
    bar.outline.set_visible(False)


def progress(analysis: Analysis) -> bytes:
    """The progress that a chunk makes, by band: median, quartiles, 5th and 95th percentile."""
    with figure(8, 3.6) as (sheet, axes):
        n = len(analysis.sets)
        for number, (one, colour) in enumerate(zip(analysis.sets, COLOURS, strict=False)):
            for band, gain in enumerate(one.gain):
                if not len(gain):
                    continue
                x = band + _offset(number, n)
                p5, q1, middle, q3, p95 = 100 * np.percentile(gain, [5, 25, 50, 75, 95])
                axes.plot([x, x], [p5, p95], color=colour, lw=1.4, alpha=0.55, solid_capstyle="round")
                axes.bar(x, max(q3 - q1, 0.05), 0.5 / n, q1, color=colour, alpha=0.35)
                axes.plot(
                    x, middle, "o", ms=6, color=colour, mec="white", mew=1.2, label=one.name if not band else None
                )
        _x_bands(axes, analysis)
        axes.set(ylabel="progress of a chunk, %", title="Progress that a chunk makes")
        axes.set_ylim(0, 1.08 * axes.get_ylim()[1])
        _legend(axes, analysis)
        return _png(sheet)


def modes(analysis: Analysis) -> bytes:
    """Left: modes by band, their resamples and the null. Right: BIC by number of components."""
    with figure(9.5, 3.9, 2, width_ratios=[1.35, 1]) as (sheet, (left, right)):
        n = len(analysis.sets)
        most = 1
        for number, (one, colour) in enumerate(zip(analysis.sets, COLOURS, strict=False)):
            if one.null:
                low, high = np.percentile(one.null, [5, 95])
                left.axhspan(low, high + 0.001, color=colour, alpha=0.10, lw=0)
                left.axhline(float(np.median(one.null)), color=colour, lw=1, ls=(0, (2, 3)), alpha=0.8)
                most = max(most, int(high))
            for band, found in enumerate(one.modes):
                x = band + _offset(number, n)
                if found.fit is None or found.modes is None:
                    left.annotate("n < 20", (x, 1), ha="center", va="center", color=MUTED, fontsize=8)
                    continue
                most = max(most, found.fit.components)
                left.plot(x, found.fit.components, "_", ms=15, mew=1.6, color=colour, alpha=0.55)
                if found.resampled:
                    values, times = np.unique(found.resampled, return_counts=True)
                    left.scatter(
                        np.full(len(values), x), values, 400 * times / times.sum(), color=colour, alpha=0.22, lw=0
                    )
                left.plot(x, found.modes, "o", ms=8.5, color=colour, mec="white", mew=1.4, zorder=3)
        _x_bands(left, analysis)
        left.set(title="Modes in each band", ylabel="number", ylim=(0.4, most + 0.8))
        left.yaxis.get_major_locator().set_params(integer=True)
        _explain(left, analysis)
        _bic(right, analysis)
        return _png(sheet)


def _explain(axes: Any, analysis: Analysis) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Line2D([], [], marker="o", ls="", ms=8.5, color=MUTED, label="modes"),
        Line2D([], [], marker="_", ls="", ms=13, mew=1.6, color=MUTED, alpha=0.6, label="components by BIC"),
        Patch(color=MUTED, alpha=0.15, lw=0, label="modes at permuted progress, 5–95 %"),
    ]
    axes.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, fontsize=9, handletextpad=0.5
    )


def _bic(axes: Any, analysis: Analysis) -> None:
    highest = 2
    for one, colour in zip(analysis.sets, COLOURS, strict=False):
        for band, found in enumerate(one.modes):
            if found.fit is None or not found.fit.bic:
                continue
            gain = (np.array(found.fit.bic) - found.fit.bic[0]) / found.n
            highest = max(highest, len(gain))
            shade = 0.35 + 0.65 * band / max(1, len(one.modes) - 1)
            axes.plot(range(1, len(gain) + 1), gain, "-o", ms=3.5, lw=1.4, color=colour, alpha=shade)
    axes.axhline(0, color="#9ca3af", lw=0.8)
    axes.set(
        title="What more components bring",
        xlabel="components (darker: later in the task)",
        ylabel="BIC a chunk, against one component",
    )
    axes.set_xticks(range(1, highest + 1))


def pca(analysis: Analysis) -> bytes:
    """All chunks on the two leading principal components of all sets together."""
    scatter = analysis.scatter
    panels = len(analysis.sets)
    with figure(max(8, 4.6 * panels + 0.8), 4.3, panels, sharex=True, sharey=True, squeeze=False) as (sheet, grid):
        for number, (axes, one) in enumerate(zip(grid[0], analysis.sets, strict=True)):
            mine = scatter.owner == number
            axes.scatter(*scatter.points[~mine].T, s=5, color=FAINT, lw=0)
            dots = axes.scatter(
                *scatter.points[mine].T,
                s=9,
                c=100 * scatter.progress[mine],
                cmap="viridis",
                vmin=0,
                vmax=100,
                lw=0,
                alpha=0.8,
            )
            axes.set_title(f"{_short(one.name)}: chunks" if panels == 1 else _short(one.name))
            axes.set_xlabel(f"component 1 ({scatter.explained[0]:.0%} of the variance)")
        grid[0][0].set_ylabel(f"component 2 ({scatter.explained[1]:.0%})")
        bar = sheet.colorbar(dots, ax=list(grid[0]), shrink=0.85, pad=0.02)
        bar.set_label("progress, %")
        bar.outline.set_visible(False)
        bar.solids.set_alpha(1)
        return _png(sheet)


def summary(analysis: Analysis) -> bytes:
    """Spread, pace and modes by band, in one row."""
    with figure(9.5, 3.1, 3) as (sheet, (spread, pace, number)):
        x = np.arange(analysis.settings.bands)
        for one, colour in zip(analysis.sets, COLOURS, strict=False):
            look = {"color": colour, "marker": "o", "ms": 6, "lw": 2, "mec": "white", "mew": 1.2}
            total = _over_joints(one.spread.variance)
            low, high = np.percentile(np.nansum(one.spread.draws, axis=2), [2.5, 97.5], axis=0)
            low, high = (np.where(np.isnan(total), np.nan, bound) for bound in (low, high))
            spread.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
            spread.plot(x, total, **look)
            pace.plot(x, [100 * np.median(gain) if len(gain) else np.nan for gain in one.gain], **look)
            number.plot(
                x, [np.nan if found.modes is None else found.modes for found in one.modes], label=one.name, **look
            )
        spread.set(title="Variance, all joints", ylim=(0, 1.05 * spread.get_ylim()[1]))
        pace.set(title="Progress of a chunk, %", ylim=(0, 1.15 * pace.get_ylim()[1]))
        top = max((found.modes or 1) for one in analysis.sets for found in one.modes)
        number.set(title="Modes", ylim=(0.5, top + 0.7))
        number.set_yticks(range(1, top + 1))
        for axes in (spread, pace, number):
            axes.set_xticks(x, band_labels(analysis.settings.bands), fontsize=7.5)
        _legend(number, analysis)
        return _png(sheet)


def _over_joints(variance: np.ndarray) -> np.ndarray:
    """(B, J) to (B,): the sum over the joints; nan for a band of which no joint is known, which is not a band without
    variance."""
    return np.where(np.isnan(variance).all(axis=1), np.nan, np.nansum(variance, axis=1))


def _bars(axes: Any, analysis: Analysis, values: list[np.ndarray]) -> None:
    n = len(values)
    for number, (one, row, colour) in enumerate(zip(analysis.sets, values, COLOURS, strict=False)):
        x = np.arange(len(row)) + _offset(number, n)
        bars = axes.bar(x, row, 0.7 / n, color=colour, label=one.name, alpha=0.9)
        axes.bar_label(bars, [f"{value:,}" for value in row], padding=3, fontsize=9, color=MUTED)
    axes.grid(axis="x", visible=False)
    axes.margins(y=0.15)
    _x_bands(axes, analysis)
    _legend(axes, analysis)


def _heat(axes: Any, table: np.ndarray, analysis: Analysis, **look: Any) -> Any:
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_facecolor("#f3f4f6")
    image = axes.imshow(table, aspect="auto", **look)
    axes.set_xticks(range(table.shape[1]), band_labels(analysis.settings.bands), fontsize=7.5)
    axes.set_xlabel("progress")
    return image


def _numbers(axes: Any, table: np.ndarray, image: Any, bold: np.ndarray | None = None) -> None:
    """The value in each cell, light on dark and dark on light."""
    shown = np.ma.filled(image.get_array(), np.nan)
    for (row, column), value in np.ndenumerate(table):
        if not np.isfinite(value):
            continue
        colour = image.cmap(image.norm(shown[row, column])) if np.isfinite(shown[row, column]) else (1, 1, 1, 1)
        dark = 0.3 * colour[0] + 0.59 * colour[1] + 0.11 * colour[2] < 0.55
        weight = "bold" if bold is not None and bold[row, column] else "normal"
        axes.text(
            column,
            row,
            f"{value:.2g}",
            ha="center",
            va="center",
            fontsize=8,
            color="white" if dark else INK,
            weight=weight,
        )


def _x_bands(axes: Any, analysis: Analysis) -> None:
    bands = analysis.settings.bands
    axes.set_xticks(range(bands), band_labels(bands))
    axes.set_xlim(-0.6, bands - 0.4)
    axes.set_xlabel("progress")


def _legend(axes: Any, analysis: Analysis) -> None:
    if len(analysis.sets) > 1:
        _legend_above(axes)


def _legend_above(axes: Any) -> None:
    """Above the titles and not beside them, where long names would lie over them."""
    handles, names = axes.get_legend_handles_labels()
    axes.figure.legend(
        handles, list(map(_short, names)), loc="outside upper right", ncols=2, fontsize=9.5, borderaxespad=0.2
    )


def _short(name: str, most: int = 40) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _offset(number: int, n: int) -> float:
    """Where the ``number``-th of ``n`` marks stands beside the middle of its band."""
    return (number - (n - 1) / 2) * 0.7 / n


def _png(sheet: Any) -> bytes:
    memory = io.BytesIO()
    sheet.savefig(memory, format="png")
    return memory.getvalue()
