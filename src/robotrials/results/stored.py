"""Runs read back from disk, without the benchmark or the policy that made them: a run directory, or an
``eval_info.json``.

>>> run = read_run(Path("outputs/eval/run"))
>>> [episode.success for episode in run.episodes]
[True, False, ...]
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from robotrials.errors import ConfigError
from robotrials.plan.plan import Plan, build_plan
from robotrials.plan.shards import shard_of
from robotrials.plan.task import ActionSpec, TaskSpec
from robotrials.results.counting import what_counts
from robotrials.results.ledger import Ledger
from robotrials.results.record import EpisodeRecord
from robotrials.results.rundir import load_run_json


@dataclass(frozen=True, slots=True)
class StoredEpisode:
    """One episode of the plan that has a result. ``success`` is None for an error. ``seed`` and ``init_state`` are
    None where the file does not say; ``record`` is None for a run that is known from an ``eval_info.json`` alone."""

    suite: str
    task: str
    group: str
    index: int
    seed: int | None
    init_state: int | None
    success: bool | None
    end: str
    steps: int | None = None
    reward_sum: float | None = None
    reward_max: float | None = None
    video: str | None = None
    error: str | None = None
    record: EpisodeRecord | None = None

    @property
    def name(self) -> str:
        return f"{self.suite}/{self.task}/{self.index}"

    @property
    def is_error(self) -> bool:
        return self.success is None


@dataclass(frozen=True)
class StoredRun:
    """A run as it lies on disk. ``source`` is "robotrials" or "eval_info"; ``planned`` counts the episodes that the
    run was to have; ``episodes`` those with a result that counts, in the order of the plan. ``out_of_order`` have a
    result that does not count yet, because the run is unfinished (``counting.py``); ``surplus`` finished after the run
    had decided to stop early. ``described`` is run.json (empty without one)."""

    path: Path
    source: str
    policy: str
    env: str
    tasks: tuple[TaskSpec, ...]
    episodes: tuple[StoredEpisode, ...]
    planned: int
    out_of_order: tuple[StoredEpisode, ...] = ()
    surplus: tuple[StoredEpisode, ...] = ()
    described: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """What the paths of videos are relative to."""
        return self.path if self.path.is_dir() else self.path.parent

    @property
    def n_errors(self) -> int:
        return sum(episode.is_error for episode in self.episodes)

    @property
    def n_missing(self) -> int:
        return max(0, self.planned - len(self.episodes) - len(self.out_of_order))

    @property
    def is_complete(self) -> bool:
        """Every planned episode has a result, if only an error: then all count."""
        return self.planned <= len(self.episodes)

    @property
    def stopping(self) -> Mapping[str, Any] | None:
        """How ``--until`` ended it, None for a run of fixed length."""
        stopped: Mapping[str, Any] | None = self.described.get("stopping")
        return stopped

    def video_of(self, episode: StoredEpisode) -> str | None:
        return None if episode.video is None else str(self.folder / episode.video)


def read_run(path: Path) -> StoredRun:
    """The run at ``path``: a run directory, a directory with an ``eval_info.json`` of ours or of lerobot-eval, or that
    file.

    Takes no lock, so a run can be read while it goes on.

    Raises:
        ConfigError: there is no run, or it cannot be read.
        LedgerError: its ledger cannot be read.
    """
    path = Path(path).expanduser()
    if path.is_dir() and (path / "run.json").exists() and (path / "ledger.sqlite").exists():
        return _read_directory(path)
    file = path / "eval_info.json" if path.is_dir() else path
    if not file.is_file():
        raise ConfigError(f"{path} is no run: neither a directory with run.json and ledger.sqlite nor eval_info.json")
    return _read_eval_info(file)


# -- run directories


def stored_plan(described: Mapping[str, Any], where: Path) -> Plan:
    """The plan of a run, laid out again from its run.json; what only the benchmark knows (observations, actions) is
    empty.

    Raises:
        ConfigError: run.json does not describe a plan.
    """
    try:
        config = described["config"]
        n, seed = int(config["eval"]["n_episodes"]), int(config["seed"])
        shard, count = int(config["eval"].get("shard_id", 0)), int(config["eval"].get("num_shards", 1))
        entries = described["plan"]["tasks"]
        tasks = [_task(entry, number) for number, entry in enumerate(entries)]
        # A shard may have episodes of some tasks only: each task says its place in the whole plan.
        places = {t.key: int(entry.get("position", i)) for i, (t, entry) in enumerate(zip(tasks, entries, strict=True))}
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{where / 'run.json'} does not describe the plan of a run: {_misshapen(error)}") from None
    episodes = []
    for episode in build_plan(tasks, n, seed):
        place = places[(episode.suite, episode.task)]
        if shard_of(place, episode.index, n, count) == shard:
            episodes.append(replace(episode, id=place * n + episode.index))
    return Plan(tuple(tasks), tuple(episodes))


def _task(entry: Mapping[str, Any], position: int) -> TaskSpec:
    return TaskSpec(
        suite=str(entry["suite"]),
        name=str(entry["task"]),
        id=int(entry.get("id", position)),
        instruction=str(entry.get("instruction", "")),
        max_steps=int(entry.get("max_steps", 0)),
        control_hz=float(entry.get("control_hz", 0.0)),
        observations={},
        action=ActionSpec(0, (), ()),
        n_init_states=entry.get("n_init_states"),
        group=str(entry.get("group", "")),
    )


def _read_directory(path: Path) -> StoredRun:
    described = load_run_json(path)
    plan = stored_plan(described, path)
    policy, env = described["config"]["policy"], described["config"]["env"]
    with Ledger.open(path / "ledger.sqlite", read_only=True) as ledger:
        settled, tried = dict(_episodes(ledger, plan)), ledger.attempt_counts()
    counting = what_counts(described, plan, settled, tried)

    def those(ids: frozenset[int]) -> tuple[StoredEpisode, ...]:
        return tuple(episode for number, episode in settled.items() if number in ids)

    return StoredRun(
        path=path,
        source="robotrials",
        policy=str(policy.get("path") or policy.get("type")),
        env=str(env.get("type")),
        tasks=plan.tasks,
        episodes=those(counting.counted),
        planned=len(counting.planned),
        out_of_order=those(counting.out_of_order),
        surplus=those(counting.surplus),
        described=described,
    )


def _episodes(ledger: Ledger, plan: Plan) -> Iterator[tuple[int, StoredEpisode]]:
    """(id, episode), in the order of the plan."""
    groups = {task.key: task.group for task in plan.tasks}
    specs = {episode.id: episode for episode in plan}
    for record in ledger.accepted():
        spec = specs.get(record.episode)
        if spec is None:
            raise ConfigError(
                f"{ledger.path} holds episode {record.episode}, which run.json does not plan: they belong to two runs"
            )
        episode = StoredEpisode(
            suite=spec.suite,
            task=spec.task,
            group=groups[(spec.suite, spec.task)],
            index=spec.index,
            seed=spec.seed,
            init_state=spec.init_state,
            success=record.success,
            end=record.end.value,
            steps=record.steps,
            reward_sum=record.reward_sum,
            reward_max=record.reward_max,
            video=record.video,
            error=record.error,
            record=record,
        )
        yield record.episode, episode


# -- eval_info.json


def _read_eval_info(file: Path) -> StoredRun:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read as JSON: {error}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{file} must hold a JSON object, found {type(content).__name__}")
    tasks: list[TaskSpec] = []
    episodes: list[StoredEpisode] = []
    out_of_order: list[StoredEpisode] = []
    planned = 0
    try:
        if isinstance(content.get("per_task"), list):
            for entry in content["per_task"]:
                task, own, wanted = _listed_task(entry, file)
                if any(task.key == before.key for before in tasks):
                    raise ConfigError(f"{file} lists the task {task.suite}/{task.name} twice")
                tasks.append(task)
                episodes += own
                out_of_order += _set_aside(entry, task, file)
                planned += wanted
        elif isinstance(content.get("per_episode"), list):  # lerobot-eval before it knew several tasks
            tasks.append(_bare_task("all", "all", 0))
            episodes = [_old_episode(entry, file) for entry in content["per_episode"]]
            planned = len(episodes)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{file} has not the shape of an eval_info.json: {_misshapen(error)}") from None
    if not tasks:
        raise ConfigError(f"{file} lists no episodes: it has neither per_task nor per_episode")
    met: set[str] = set()
    for episode in (*episodes, *out_of_order):
        if episode.name in met:
            raise ConfigError(f"{file} lists the episode {episode.name} twice")
        met.add(episode.name)
    env = _env_beside(file)
    return StoredRun(
        path=file,
        source="eval_info",
        policy=file.parent.name,
        env=env,
        tasks=tuple(tasks),
        episodes=tuple(episodes),
        planned=planned,
        out_of_order=tuple(out_of_order),
    )


def _misshapen(error: Exception) -> str:
    """What was wrong with JSON of another shape, in words."""
    return f"it lacks {error.args[0]}" if isinstance(error, KeyError) else str(error)


def _env_beside(file: Path) -> str:
    """The benchmark that the eval_config.json beside ``file`` names; empty where nothing does."""
    try:
        env = json.loads(file.with_name("eval_config.json").read_bytes())["env"]["type"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
    return env if isinstance(env, str) else ""


def _outcome(value: Any, file: Path, task: str) -> bool | None:
    """
    Raises:
        ConfigError: it is no outcome. Python finds "false", NaN and 2 true, so nothing is guessed.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise ConfigError(f"{file}: the success of an episode of {task} is true, false, 0, 1 or null; found {value!r}")


def _end(success: bool | None) -> str:
    return "error" if success is None else "success" if success else "failure"


def _listed_task(entry: Mapping[str, Any], file: Path) -> tuple[TaskSpec, list[StoredEpisode], int]:
    """lerobot-eval's parallel lists of one task, with our additions where they are."""
    suite, number, metrics = str(entry["task_group"]), int(entry["task_id"]), entry["metrics"]
    name = str(entry.get("task", number))
    successes = [_outcome(value, file, f"{suite}/{name}") for value in metrics["successes"]]
    n = len(successes)

    def column(key: str) -> Sequence[Any]:
        values = metrics.get(key) or []
        return values if len(values) == n else [None] * n

    # A list of videos names no episodes: lerobot-eval films the first ones, ours may film the failures alone.
    videos: list[Any] = list(metrics.get("video_paths") or [])
    if len(videos) != n:
        videos = [None] * n if "episodes" in metrics else (videos + [None] * n)[:n]
    episodes = []
    for i, success in enumerate(successes):
        index = column("episodes")[i]
        steps, seed = column("steps")[i], column("seeds")[i]
        episodes.append(
            StoredEpisode(
                suite,
                name,
                "",
                i if index is None else int(index),
                seed,
                None,
                success,
                _end(success),
                steps,
                column("sum_rewards")[i],
                column("max_rewards")[i],
                videos[i],
            )
        )
    errors = metrics.get("errors") or []
    for error in errors:
        episodes.append(
            StoredEpisode(
                suite, name, "", int(error["episode"]), error.get("seed"), None, None, "error", error=error.get("error")
            )
        )
    episodes.sort(key=lambda episode: episode.index)
    return _bare_task(suite, name, number), episodes, int(metrics.get("n_planned", len(episodes)))


def _set_aside(entry: Mapping[str, Any], task: TaskSpec, file: Path) -> list[StoredEpisode]:
    """The results of one task that our file lists apart, because the run was unfinished."""
    return [
        StoredEpisode(
            suite=task.suite,
            task=task.name,
            group="",
            index=int(found["episode"]),
            seed=found.get("seed"),
            init_state=None,
            success=(success := _outcome(found.get("success"), file, f"{task.suite}/{task.name}")),
            end=str(found.get("end") or _end(success)),
            steps=found.get("steps"),
            reward_sum=found.get("sum_reward"),
            reward_max=found.get("max_reward"),
            video=found.get("video"),
            error=found.get("error"),
        )
        for found in entry["metrics"].get("out_of_order") or []
    ]


def _old_episode(entry: Mapping[str, Any], file: Path) -> StoredEpisode:
    success = _outcome(entry["success"], file, "all/all")
    return StoredEpisode(
        "all",
        "all",
        "",
        int(entry["episode_ix"]),
        entry.get("seed"),
        None,
        success,
        _end(success),
        None,
        entry.get("sum_reward"),
        entry.get("max_reward"),
    )


def _bare_task(suite: str, name: str, number: int) -> TaskSpec:
    return TaskSpec(suite, name, number, "", 0, 0.0, {}, ActionSpec(0, (), ()))
