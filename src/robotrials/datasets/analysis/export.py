"""An analysis as JSON, and the folder that holds all of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from robotrials.datasets.analysis.analyse import Analysis, SetResult
from robotrials.datasets.analysis.modes import ModeCount
from robotrials.errors import DatasetError
from robotrials.results.export.eval_info import strict_json
from robotrials.results.filesystem import write_atomically
from robotrials.version import __version__

PAGE, NUMBERS, FIGURES = "index.html", "analysis.json", "figures"


def check_writable(folder: Path) -> None:
    """Refuse before the analysis, which takes minutes, a ``folder`` that could not be written. Makes nothing.

    Raises:
        DatasetError: it, or what it would be made in, is a file or closed to writing.
    """
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise DatasetError(f"--output_dir={folder} cannot be written: {there} is a file")
    if not os.access(there, os.W_OK | os.X_OK):
        raise DatasetError(f"--output_dir={folder} cannot be written: no permission in {there}")


def write(analysis: Analysis, folder: Path) -> Path:
    """Write ``index.html``, ``analysis.json`` and ``figures/*.png`` into ``folder``; the path of the page.

    Raises:
        DatasetError: the folder cannot be written.
        NotInstalledError: matplotlib is missing.
    """
    from robotrials.datasets.analysis.catalogue import require
    from robotrials.datasets.analysis.page import page

    require("matplotlib", "robotrials dataset analyze")
    from robotrials.datasets.analysis.plots import draw_all

    figures = draw_all(analysis)
    numbers = to_json(analysis)
    try:
        (folder / FIGURES).mkdir(parents=True, exist_ok=True)
        for name, png in figures.items():
            write_atomically(folder / FIGURES / f"{name}.png", png)
        write_atomically(folder / NUMBERS, strict_json(numbers).encode())
        write_atomically(folder / PAGE, page(analysis, figures).encode())
    except OSError as error:
        raise DatasetError(f"{folder} cannot be written: {error.strerror or error}") from error
    return folder / PAGE


def to_json(analysis: Analysis) -> dict[str, Any]:
    """All numbers; what does not exist (a variance of two chunks) is null."""
    settings = {
        name: str(value) if isinstance(value, Path) else value for name, value in vars(analysis.settings).items()
    }
    return {
        "robotrials": __version__,
        "settings": settings,
        "fps": analysis.fps,
        "joints": list(analysis.joints),
        "bands": [
            [i / analysis.settings.bands, (i + 1) / analysis.settings.bands] for i in range(analysis.settings.bands)
        ],
        "min_length": {"frames": analysis.threshold, "from": analysis.threshold_from},
        "sets": [_set(one, analysis) for one in analysis.sets],
        "variance_ratio": None
        if analysis.ratio is None
        else {"value": _plain(analysis.ratio.value), "ci95": [_plain(analysis.ratio.low), _plain(analysis.ratio.high)]},
        "pca_explained": _plain(analysis.scatter.explained),
    }


def _set(one: SetResult, analysis: Analysis) -> dict[str, Any]:
    return {
        "name": one.name,
        "path": one.path,
        "episodes": {"all": len(one.lengths), "long_enough": one.kept, "analysed": one.analysed},
        "frames": {
            "min": int(one.lengths.min()),
            "median": float(np.median(one.lengths)),
            "max": int(one.lengths.max()),
        },
        "progress": one.progress,
        "chunks": _plain(one.counts),
        "variance": _plain(one.spread.variance),
        "progress_of_a_chunk": [
            None
            if not len(gain)
            else dict(
                zip(("p5", "p25", "p50", "p75", "p95"), _plain(np.percentile(gain, [5, 25, 50, 75, 95])), strict=True)
            )
            for gain in one.gain
        ],
        "modes": [_modes(found) for found in one.modes],
        **({"modes_by_task": _by_task(one)} if one.by_task else {}),
        "modes_at_permuted_progress": list(one.null),
    }


def _by_task(one: SetResult) -> dict[str, Any]:
    return {name: [_modes(found) for found in counts] for name, counts in one.by_task.items()}


def _modes(found: ModeCount) -> dict[str, Any]:
    fit = found.fit
    return {
        "chunks": found.n,
        "modes": found.modes,
        "before_resampling": fit.modes if fit else None,
        "components": fit.components if fit else None,
        "dimensions": fit.dims if fit else None,
        "bic": list(fit.bic) if fit else None,
        "resampled": list(found.resampled),
    }


def _plain(values: np.ndarray) -> Any:
    return np.asarray(values).tolist()
