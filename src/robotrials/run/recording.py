"""``--eval.record``: which episodes are filmed."""

from __future__ import annotations

from dataclasses import dataclass

from robotrials.errors import ConfigError
from robotrials.plan.episode import EpisodeSpec


@dataclass(frozen=True)
class RecordRule:
    """``mode(episode)`` is ``no``, ``yes`` or ``on_failure``.

    Example: ``RecordRule.parse("first:2")`` films episodes 0 and 1 of every task.
    """

    first: int | None
    """Films episodes with an index below this; None: all."""
    failures_only: bool = False

    @classmethod
    def parse(cls, text: str) -> RecordRule:
        """
        Raises:
            ConfigError: not one of none, failures, all, first:N.
        """
        if text == "none":
            return cls(first=0)
        if text == "all":
            return cls(first=None)
        if text == "failures":
            return cls(first=None, failures_only=True)
        kind, _, count = text.partition(":")
        if kind == "first" and count.isdecimal():
            return cls(first=int(count))
        raise ConfigError(f"--eval.record must be none, failures, all or first:N (such as first:10), got {text!r}")

    def mode(self, episode: EpisodeSpec) -> str:
        if self.failures_only:
            return "on_failure"
        return "yes" if self.first is None or episode.index < self.first else "no"
