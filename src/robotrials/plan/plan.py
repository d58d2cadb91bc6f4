"""The plan: every episode of a run, laid down before anything runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from robotrials.errors import ConfigError
from robotrials.plan.config import MAX_SEED
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec


@dataclass(frozen=True)
class Plan:
    """All tasks and all episodes of a run, in the order asked for. Of a whole plan ``episodes[k].id == k``; a shard's
    (``plan/shards.py``) has some of the episodes, under the ids that they have in the whole."""

    tasks: tuple[TaskSpec, ...]
    episodes: tuple[EpisodeSpec, ...]

    def __len__(self) -> int:
        return len(self.episodes)

    def __iter__(self) -> Iterator[EpisodeSpec]:
        return iter(self.episodes)

    def task_of(self, episode: EpisodeSpec) -> TaskSpec:
        return self._by_key[(episode.suite, episode.task)]

    def __contains__(self, number: object) -> bool:
        return number in self._by_id

    def episode(self, number: int) -> EpisodeSpec:
        """The episode whose id is ``number``; KeyError if it is not of this plan."""
        return self._by_id[number]

    @property
    def _by_id(self) -> dict[int, EpisodeSpec]:
        cached: dict[int, EpisodeSpec] | None = self.__dict__.get("_episode_index")
        if cached is None:
            cached = {episode.id: episode for episode in self.episodes}
            object.__setattr__(self, "_episode_index", cached)
        return cached

    @property
    def _by_key(self) -> dict[tuple[str, str], TaskSpec]:
        cached = self.__dict__.get("_task_index")
        if cached is None:
            cached = {task.key: task for task in self.tasks}
            object.__setattr__(self, "_task_index", cached)
        return cached

    def hash(self) -> str:
        """SHA-256 of tasks and episodes in canonical JSON: two runs share it iff they evaluate the same episodes."""
        content = {"tasks": [_content(task) for task in self.tasks], "episodes": [asdict(e) for e in self.episodes]}
        return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _content(task: TaskSpec) -> dict[str, Any]:
    """The task as it is hashed. A group that is not set is left out, so that plans from before there were groups keep
    their hash, and their runs can be resumed."""
    content = asdict(task)
    if not task.group:
        del content["group"]
    return content


MAX_EPISODES = 2_000_000
"""Episodes that one plan may have: it is held whole, at 0.7 kB for each while it is hashed (measured)."""


def check_extent(n_tasks: int, n_episodes: int, base_seed: int) -> None:
    """
    Raises:
        ConfigError: more episodes than a plan holds, or seeds beyond those that simulators take.
    """
    if n_tasks * n_episodes > MAX_EPISODES:
        raise ConfigError(
            f"--eval.n_episodes={n_episodes} (number of tasks: {n_tasks:,}) is {n_tasks * n_episodes:,} episodes; "
            f"a run has at most {MAX_EPISODES:,}"
        )
    if base_seed + n_episodes - 1 > MAX_SEED:
        raise ConfigError(
            f"--seed={base_seed}: with --eval.n_episodes={n_episodes} the last seed is {base_seed + n_episodes - 1:,}; "
            f"seeds lie between 0 and {MAX_SEED:,} (32 bits, as NumPy takes them)"
        )


def build_plan(tasks: Sequence[TaskSpec], n_episodes: int, base_seed: int) -> Plan:
    """Lay out ``n_episodes`` episodes of every task: episode i has seed ``base_seed + i`` and initial state
    ``i mod n_init_states``.

    Raises:
        ConfigError: no task, no episode, a negative seed, or a task asked for twice.
    """
    if not tasks:
        raise ConfigError("the plan is empty: --env.task names no task")
    if n_episodes < 1:
        raise ConfigError(f"--eval.n_episodes is per task and must be at least 1, got {n_episodes}")
    if base_seed < 0:
        raise ConfigError(f"--seed must not be negative (simulators refuse negative seeds), got {base_seed}")
    suite_of: dict[str, str] = {}
    for task in tasks:
        if task.name in suite_of:
            raise ConfigError(
                f"task {task.name} is asked for twice, in {suite_of[task.name]} and in {task.suite}: "
                "its episodes would count twice; leave one out of --env.task"
            )
        suite_of[task.name] = task.suite
    episodes: list[EpisodeSpec] = []
    for task in tasks:
        for index in range(n_episodes):
            init_state = index % task.n_init_states if task.n_init_states else None
            episodes.append(
                EpisodeSpec(len(episodes), task.suite, task.name, index, base_seed + index, init_state, task.max_steps)
            )
    return Plan(tuple(tasks), tuple(episodes))
