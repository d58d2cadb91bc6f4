"""Why nothing succeeds, and where failures gather: what to look at first, in words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from robotrials.plan.task import TaskSpec
from robotrials.results.record import Signals
from robotrials.results.stored import StoredEpisode
from robotrials.stats.multiple import holm
from robotrials.stats.unpaired import fewer

_TINY_SHARE = 0.02
"""Actions within so little of the allowed range hardly move anything."""
_MANY_SATURATED = 0.5
_LEVEL = 0.05
_MOST_CLUSTERS = 5


def look_at_first(
    tasks: Sequence[TaskSpec],
    episodes: Sequence[StoredEpisode],
    signals: Sequence[Signals],
    policy: Mapping[str, Any] | None,
    options: Mapping[str, Any],
    rename_map: Mapping[str, str],
) -> list[tuple[str, str]]:
    """(what, words) for a run in which no episode succeeded and none erred; empty for any other.

    ``policy`` is what run.json says of the loaded policy, ``options`` its ``--policy.*``. What is surely wrong comes
    first, marked with an exclamation mark.
    """
    if not episodes or any(episode.success is not False for episode in episodes):
        return []
    lines = [
        *_images(signals),
        *_actions(tasks, signals),
        *_steps(tasks, episodes),
        *_chunks(policy or {}, options),
        *_keys(tasks, policy or {}, rename_map),
    ]
    return sorted(lines, key=lambda line: not line[1].startswith("!"))


def _images(signals: Sequence[Signals]) -> list[tuple[str, str]]:
    lines = []
    blank = sorted({key for each in signals for key in each.blank})
    if blank:
        lines.append(
            ("Images", f"! {', '.join(blank)}: one colour all over when first looked at; is rendering broken?")
        )
    still = sorted(set.intersection(*(set(each.still) for each in signals))) if signals else []
    still = [key for key in still if key not in blank]
    if still:
        lines.append(
            ("Images", f"! {', '.join(still)} never changed: does the robot move, is the right thing looked at?")
        )
    return lines


def _actions(tasks: Sequence[TaskSpec], signals: Sequence[Signals]) -> list[tuple[str, str]]:
    watched = [each for each in signals if each.action_low]
    if not watched:
        return []
    low = [min(numbers) for numbers in zip(*(each.action_low for each in watched), strict=True)]
    high = [max(numbers) for numbers in zip(*(each.action_high for each in watched), strict=True)]
    bounds = [(lo, hi) for lo, hi in zip(tasks[0].action.low, tasks[0].action.high, strict=False)]
    allowed = f"[{min(tasks[0].action.low):g}, {max(tasks[0].action.high):g}]" if bounds else "unknown"
    saturated = sum(each.saturated for each in watched) / len(watched)
    words = f"between {min(low):.3g} and {max(high):.3g}, allowed {allowed}; "
    words += f"{100 * saturated:.0f} % at or beyond the bounds"
    if saturated >= _MANY_SATURATED:
        return [("Actions", f"! {words}: wrong units, or normalisation statistics that are not the checkpoint's?")]
    spans = [
        (hi_seen - lo_seen) / (hi - lo)
        for lo_seen, hi_seen, (lo, hi) in zip(low, high, bounds, strict=False)
        if 0.0 < hi - lo < math.inf
    ]
    if spans and max(spans) < _TINY_SHARE:
        return [("Actions", f"! {words}: they hardly move; are they normalised once too often?")]
    return [("Actions", words)]


def _steps(tasks: Sequence[TaskSpec], episodes: Sequence[StoredEpisode]) -> list[tuple[str, str]]:
    limits = sorted({task.max_steps for task in tasks})
    n_limit = sum(episode.end == "time_limit" for episode in episodes)
    shown = f"{limits[0]}" if len(limits) == 1 else f"{limits[0]} to {limits[-1]}"
    hz = tasks[0].control_hz
    seconds = f" ({limits[0] / hz:.0f} s at {hz:g} Hz)" if hz and len(limits) == 1 else ""
    words = f"{n_limit:,} of {len(episodes):,} episodes ran to the step limit of {shown}{seconds}"
    return [("Steps", words + ("; is it what the policy was trained for?" if n_limit else ""))]


def _chunks(policy: Mapping[str, Any], options: Mapping[str, Any]) -> list[tuple[str, str]]:
    played = policy.get("n_action_steps")
    if played is None:
        return []
    own = policy.get("checkpoint_n_action_steps")
    if own is not None and own != played:
        return [
            (
                "Chunks",
                f"! {played} actions of each chunk are played, the checkpoint says {own}: --policy.n_action_steps",
            )
        ]
    asked = f", asked for by --policy.n_action_steps={options['n_action_steps']}" if "n_action_steps" in options else ""
    how_many = "1 action is" if played == 1 else f"{played} actions are"
    return [("Chunks", f"{how_many} played before the policy looks again{asked}; the training's number?")]


def _keys(tasks: Sequence[TaskSpec], policy: Mapping[str, Any], rename_map: Mapping[str, str]) -> list[tuple[str, str]]:
    reads = list(policy.get("observations") or {})
    if not reads:
        return []
    names = {theirs: ours for ours, theirs in rename_map.items()}
    shown = ", ".join(f"{key} (is {names[key]})" if key in names else key for key in reads)
    offered = [key for key in tasks[0].observations if key not in reads and key not in rename_map]
    unread = f"; does not read {', '.join(offered)}" if offered else ""
    return [("Reads", f"{shown}{unread}; is each the view it was trained on, the right way up?")]


# -- clusters


def failure_clusters(episodes: Sequence[StoredEpisode]) -> list[str]:
    """Where failures gather: tasks and initial states that fail more often than the others (Fisher's exact test,
    corrected for their number by Holm), and how failed episodes ended. Empty without a failure."""
    finished = [episode for episode in episodes if episode.success is not None]
    failed = [episode for episode in finished if not episode.success]
    if not failed or len(failed) == len(finished):
        return _endings(failed) if failed else []
    lines = _gathered(finished, lambda e: f"{e.suite}/{e.task}" if e.suite != e.task else e.task)
    if any(episode.init_state is not None for episode in finished):
        lines += _gathered(finished, lambda e: f"initial state {e.init_state}")
    return [*_endings(failed), *lines]


def _endings(failed: Sequence[StoredEpisode]) -> list[str]:
    words = {"time_limit": "at the step limit", "exception": "by an exception that means failure"}
    ends = Counter(words.get(e.end, "ended before it") for e in failed)
    line = ", ".join(f"{n:,} {how}" for how, n in ends.most_common())
    early = sorted(e.steps for e in failed if e.end != "time_limit" and e.steps is not None)
    if early:
        line += (
            f" (after {early[0]:,} to {early[-1]:,} steps)" if early[0] != early[-1] else f" (after {early[0]:,} steps)"
        )
    return [f"{len(failed):,} failed: {line}"]


def _gathered(finished: Sequence[StoredEpisode], name: Callable[[StoredEpisode], str]) -> list[str]:
    counts: dict[str, list[int]] = {}
    for episode in finished:
        own = counts.setdefault(name(episode), [0, 0])
        own[0] += bool(episode.success)
        own[1] += 1
    if len(counts) < 2:
        return []
    k, n = sum(own[0] for own in counts.values()), len(finished)
    names = list(counts)
    p_values = holm([fewer(tuple(counts[each]), (k - counts[each][0], n - counts[each][1])) for each in names])  # type: ignore[arg-type]
    found = sorted((p, each) for p, each in zip(p_values, names, strict=True) if p <= _LEVEL)
    lines = []
    for _, each in found[:_MOST_CLUSTERS]:
        own_k, own_n = counts[each]
        others = f"{n - own_n - (k - own_k):,} of {n - own_n:,}"
        lines.append(f"{each}: {own_n - own_k:,} of {own_n:,} failed, {others} elsewhere")
    if len(found) > _MOST_CLUSTERS:
        lines.append(f"and {len(found) - _MOST_CLUSTERS} more")
    return lines
