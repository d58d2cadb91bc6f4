"""robotrials: evaluate robot policies on simulation benchmarks, exactly, fast, and with error bars.

>>> import robotrials
>>> result = robotrials.evaluate("expert", "metaworld", task="reach-v3", n_episodes=10)
>>> result.rate, result.interval
(1.0, (0.722..., 1.0))
>>> robotrials.load_run(result.directory)  # a frame, one row an episode
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from robotrials.moved import allow_old_paths
from robotrials.version import __version__

if TYPE_CHECKING:
    from robotrials.api import Evaluation, evaluate
    from robotrials.results.export.frame import load_run

__all__ = ["Evaluation", "__version__", "evaluate", "load_run"]

_LAZY = {
    "Evaluation": "robotrials.api",
    "evaluate": "robotrials.api",
    "load_run": "robotrials.results.export.frame",
}
"""Imported when first used: a worker imports this package too, and needs none of it."""


allow_old_paths()


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
