"""What an analysis can be told; the field's ``help`` is the flag's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from robotrials.errors import ConfigError
from robotrials.plan.config import option


@dataclass(frozen=True)
class AnalysisSettings:
    """Lengths are in frames. The same ``seed`` gives the same figures."""

    output_dir: Path | None = option(None, "where the page goes; default outputs/analysis/NAME")
    chunk: int = option(30, "frames of an action chunk")
    stride: int = option(15, "frames from the start of one chunk to that of the next")
    bands: int = option(5, "equal bands of progress")
    max_episodes: int = option(500, "at most so many episodes, spread evenly over the dataset; 0: all")
    max_joints: int = option(16, "the first so many entries of the action; 0: all")
    min_length: str = option(
        "auto", "leave out episodes shorter than N frames; auto: by the gap in the lengths; 0: none"
    )
    progress: str = option("auto", "column of progress in [0, 1]; auto: the one there is, else time; time")
    split: str = option("auto", "one dataset by its outcome", choices=("auto", "outcome", "none"))
    draws: int = option(20, "resamples of the episodes, and of the null, when modes are counted; 0: none")
    seed: int = option(0, "of the resamples")

    def check(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ConfigError: a number out of its range, or a ``min_length`` that is neither a number nor ``auto``.
        """
        least = {"chunk": 2, "stride": 1, "bands": 1, "max_episodes": 0, "max_joints": 0, "draws": 0, "seed": 0}
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise ConfigError(f"--{name} must be at least {bound}, got {getattr(self, name)}")
        if self.min_length != "auto" and not self.min_length.isdigit():
            raise ConfigError(f"--min_length must be auto or a number of frames, got {self.min_length!r}")

    @property
    def episode_limit(self) -> float:
        return self.max_episodes or math.inf
