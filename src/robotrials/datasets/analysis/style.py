"""The look that all figures share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

COLOURS = ("#2563eb", "#ea580c")
"""First set, second set: told apart also by the colour-blind, and in print by their lightness."""
INK, MUTED, FAINT = "#1f2937", "#6b7280", "#e5e7eb"

_LOOK = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Inter", "Helvetica Neue", "Arial", "DejaVu Sans"],
    "font.size": 10.5,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": "#9ca3af",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "text.parse_math": False,  # a name with two dollar signs is no formula
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "figure.dpi": 100,
    "savefig.dpi": 180,
    "figure.facecolor": "white",
}


@contextmanager
def figure(width: float, height: float, columns: int = 1, **more: Any) -> Iterator[tuple[Any, Any]]:
    """A new figure in inches, without a display and without touching the state of the caller's matplotlib."""
    import logging
    import warnings

    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    finder = logging.getLogger("matplotlib.font_manager")
    level = finder.level
    finder.setLevel(logging.ERROR)  # a font of the list that is not installed is no news
    try:
        with mpl.rc_context(_LOOK), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a name in a script no font here has
            sheet = Figure(figsize=(width, height), layout="constrained")
            FigureCanvasAgg(sheet)
            yield sheet, sheet.subplots(1, columns, **more)
    finally:
        finder.setLevel(level)
