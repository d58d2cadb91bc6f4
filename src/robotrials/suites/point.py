"""What one checkpoint came to: a point of the curve of success over steps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """The result of one checkpoint. ``rate`` and ``interval`` (95 %) lie in [0, 1], None while nothing has finished;
    ``groups`` the same by suite: name to (rate, low, high). ``report`` is the run's page, from the folder of the
    curve's."""

    step: int
    rate: float | None
    interval: tuple[float, float] | None
    finished: int
    errors: int
    planned: int
    groups: dict[str, tuple[float, float, float]]
    report: str | None = None

    @property
    def complete(self) -> bool:
        return self.finished == self.planned
