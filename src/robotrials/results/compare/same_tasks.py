"""Which tasks of several runs are the same, whatever their files call them.

A run of ``--env.task=easy`` has the task ``easy/reach-v3``, one of ``--env.task=reach-v3`` has ``reach-v3/reach-v3``:
a suite is a choice of tasks and no part of the scene. So tasks of one benchmark are matched by name, except where that
may be wrong: in benchmarks that draw their scenes from ``EpisodeSpec.rng``, which depends on the suite; in those that
this package does not know; and for a name that one of the runs has in two suites.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from robotrials.plan.task import TaskSpec
from robotrials.results.stored import StoredEpisode, StoredRun

Key = tuple[str, str]
_BRIDGES = frozenset({"lerobot_env", "gym", "hub"})
"""They stand for any benchmark."""
_SUITE_IN_SCENE = frozenset({"vlabench"})


def benchmark_of(env: str) -> str:
    """What ``--env.type`` says the benchmark is; empty where nothing says so or a bridge stands for it."""
    name = env.rpartition(":")[2]
    return "" if name in _BRIDGES else name


def ignores_suites(env: str) -> bool:
    """Whether a task of this benchmark is the same scene in every suite."""
    return ":" not in env and benchmark_of(env) not in _SUITE_IN_SCENE | {""}


def match_tasks(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """The runs with one name for each task: that of the first run. lerobot-eval's files know the number of a task only,
    so theirs is looked up in a run that knows it."""
    numbered = _by_number(runs)
    first = numbered[0]
    return [first, *(renamed(run, other_names(run, first.env, first.tasks)) for run in numbered[1:])]


def other_names(run: StoredRun, env: str, tasks: Sequence[TaskSpec]) -> dict[Key, Key]:
    """What tasks of ``run`` are called in ``tasks`` of a run of ``env``, where another suite holds them there."""
    if run.env != env or not ignores_suites(env):
        return {}
    ours, theirs = _suites_of(run.tasks), _suites_of(tasks)
    return {
        (suite, name): (theirs[name], name) for name, suite in ours.items() if name in theirs and theirs[name] != suite
    }


def renamed(run: StoredRun, names: Mapping[Key, Key]) -> StoredRun:
    """``run`` with its tasks under other names."""
    if not names:
        return run

    def task(old: TaskSpec) -> TaskSpec:
        suite, name = names.get(old.key, old.key)
        return replace(old, suite=suite, name=name)

    def of(episodes: Sequence[StoredEpisode]) -> tuple[StoredEpisode, ...]:
        pairs = ((episode, names.get((episode.suite, episode.task))) for episode in episodes)
        return tuple(replace(e, suite=new[0], task=new[1]) if new else e for e, new in pairs)

    return replace(
        run,
        tasks=tuple(task(old) for old in run.tasks),
        episodes=of(run.episodes),
        out_of_order=of(run.out_of_order),
        surplus=of(run.surplus),
    )


def _suites_of(tasks: Sequence[TaskSpec]) -> dict[str, str]:
    """The suite of each task's name, of names that stand for one task; a number is no name."""
    times = Counter(task.name for task in tasks)
    return {task.name: task.suite for task in tasks if times[task.name] == 1 and task.name != str(task.id)}


def _by_number(runs: Sequence[StoredRun]) -> list[StoredRun]:
    known: dict[tuple[str, int], str] = {}
    for run in runs:
        for task in run.tasks:
            if task.name != str(task.id):
                known.setdefault((task.suite, task.id), task.name)
    found = []
    for run in runs:
        numbers = [task for task in run.tasks if task.name == str(task.id) and (task.suite, task.id) in known]
        found.append(renamed(run, {task.key: (task.suite, known[(task.suite, task.id)]) for task in numbers}))
    return found
