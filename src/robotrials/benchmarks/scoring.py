"""What of an episode counts: ``--env.success=once|end`` and ``--env.failure_exceptions``."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robotrials.benchmarks.base import Benchmark
from robotrials.errors import ConfigError

ONCE, END = "once", "end"

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
_TOO_WIDE = (BaseException, Exception, SystemExit, KeyboardInterrupt, MemoryError, OSError, RuntimeError)


@dataclass(frozen=True)
class Scoring:
    """``at_end``: the last step decides; else any step does. ``failures``: exceptions, as ``module.Class``, that mean
    failure when ``reset`` or ``step`` raises them."""

    at_end: bool = False
    failures: tuple[str, ...] = ()

    def is_failure(self, error: BaseException) -> bool:
        """Whether ``error`` is of a named class or derived from one, under its own name or one it is imported by."""
        classes = type(error).__mro__
        own = {f"{cls.__module__}.{cls.__qualname__}" for cls in classes}
        return any(name in own or _imported(name) in classes for name in self.failures)


def scoring_of(benchmark: Benchmark) -> Scoring:
    """
    Raises:
        ConfigError: one of the two options is invalid.
    """
    if not isinstance(benchmark.config.success, str):  # a benchmark's own option of that name
        return Scoring(failures=_names(benchmark.config.failure_exceptions))
    place, when = split_success(benchmark.config.success)
    if place and not benchmark.says_where_success_is:
        raise ConfigError(f"--env.success={benchmark.config.success}: {benchmark.name} takes {ONCE} or {END}")
    return Scoring(when == END, _names(benchmark.config.failure_exceptions))


def split_success(text: str) -> tuple[str, str]:
    """Where success is, and when it counts, of ``--env.success``: ``info:won,end`` is ("info:won", "end")."""
    place, _, last = text.strip().rpartition(",")
    if last.strip() in (ONCE, END):
        return place.strip(), last.strip()
    return text.strip(), ONCE


def identity_options(benchmark: Benchmark, options: dict[str, Any]) -> dict[str, Any]:
    """The options without these two where they change nothing."""
    if isinstance(options["success"], str):
        place, when = split_success(options.pop("success"))
        parts = [part for part in (place, END if when == END else "") if part]
        options = {**options, **({"success": ",".join(parts)} if parts else {})}
    failures = sorted(options.pop("failure_exceptions"))
    return {**options, **({"failure_exceptions": failures} if failures else {})}


def _names(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"--env.failure_exceptions={name}: write module.Class, comma-separated: rlbench.backend.exceptions."
                "InvalidActionError"
            )
        wide = name.startswith("robotrials.") or name in {f"builtins.{cls.__name__}" for cls in _TOO_WIDE}
        if wide:
            raise ConfigError(f"--env.failure_exceptions={name}: too wide, crashes would be counted as failures")
    return tuple(names)


def _imported(name: str) -> object:
    """The class of that name where its module was imported; None where it was not."""
    module, _, attribute = name.rpartition(".")
    return getattr(sys.modules.get(module), attribute, None)
