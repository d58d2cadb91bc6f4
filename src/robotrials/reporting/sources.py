"""What a leaderboard is made from: run directories, ``eval_info.json`` files of any age, and repositories of the Hub.

Whatever the file, it becomes successes and finished episodes by task, so that every rate of a leaderboard has the same
meaning and an interval. Nothing in these files is trusted: they are data, read with limits, and shown as text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robotrials.errors import ConfigError, RobotrialsError
from robotrials.reporting.loading import policy_name
from robotrials.results.compare.same_tasks import ignores_suites
from robotrials.results.stored import StoredRun, read_run

LARGEST_FILE = 64 * 2**20
"""Bytes of one JSON file; 100,000 episodes need 10 MB."""


@dataclass
class Counts:
    """One task of a suite, or a whole suite of which only the sum is known."""

    successes: int = 0
    finished: int = 0
    errors: int = 0
    missing: int = 0
    out_of_order: int = 0


@dataclass(frozen=True)
class TrainingFacts:
    """How the policy was trained, where a train_config.json says so."""

    policy_type: str = ""
    dataset: str = ""
    steps: int | None = None
    batch_size: int | None = None


@dataclass(frozen=True)
class Source:
    """One file of results. ``suites`` maps a suite to its tasks' counts, by the tasks' numbers (None: only a sum is
    known). ``env`` is empty where nothing says which benchmark it was; ``repo_id`` is where it came from on the Hub;
    ``conditions`` are the benchmark's options and its packages' versions, of a run directory."""

    model: str
    env: str
    label: str
    suites: Mapping[str, Mapping[int | None, Counts]]
    training: TrainingFacts = field(default_factory=TrainingFacts)
    repo_id: str | None = None
    conditions: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """Of a benchmark in which a task is the same in every suite: the tasks' names, by suite and number."""


def read_source(
    path: Path, model: str | None = None, label: str | None = None, training: TrainingFacts | None = None
) -> Source:
    """The results at ``path``: a run directory, a directory with an eval_info.json, or such a file.

    ``model`` is what the model is called; by default what the configuration beside the results says, else its folder's
    name.

    Raises:
        ConfigError: there are no results, or they cannot be read.
        LedgerError: the ledger of a run directory cannot be read.
    """
    file = path / "eval_info.json" if path.is_dir() else path
    if not (path / "run.json").is_file():
        _check_size(file)
    names: dict[tuple[str, int], str] = {}
    try:
        run = read_run(path)
        suites = _by_task(run)
        if ignores_suites(run.env):
            names = {(task.suite, task.id): task.name for task in run.tasks if task.name != str(task.id)}
        described = _json(path / "run.json") if (path / "run.json").is_file() else {}
    except ConfigError:
        suites, described = ({} if _lists_episodes(file) else _sums(file)), {}
        if not suites:
            raise
    except RecursionError:
        raise ConfigError(f"{file} is nested too deeply to be an eval_info.json") from None
    config = described.get("config") or _json(file.parent / "eval_config.json")
    policy, env = _map(config.get("policy")), _map(config.get("env"))
    named = policy_name({**policy, "path": policy.get("path") or policy.get("pretrained_path")}) if policy else ""
    return Source(
        model=model or named or file.parent.name,
        env=str(env.get("type") or "").rpartition(":")[2],
        label=label or str(path),
        suites=suites,
        training=training or _training_of(policy),
        conditions=_conditions(described),
        names=names,
    )


def _conditions(described: Mapping[str, Any]) -> dict[str, str]:
    """Of a run.json: what could make its figures no match for another's. The video's size is no such thing."""
    benchmark = _map(_map(described.get("identity")).get("benchmark"))
    options = {f"--env.{key}": value for key, value in _map(benchmark.get("options")).items()}
    packages = {f"version of {key}": value for key, value in _map(benchmark.get("packages")).items()}
    return {key: str(value)[:80] for key, value in {**options, **packages}.items() if ".visualization_" not in key}


def read_training(file: Path, policy_type: str = "") -> TrainingFacts:
    """What LeRobot's train_config.json says; empty where it is missing or says nothing."""
    config = _json(file)
    return TrainingFacts(
        policy_type=_text(_map(config.get("policy")).get("type")) or policy_type,
        dataset=_text(_map(config.get("dataset")).get("repo_id")),
        steps=_whole(config.get("steps")),
        batch_size=_whole(config.get("batch_size")),
    )


def _training_of(policy: Mapping[str, Any]) -> TrainingFacts:
    path = str(policy.get("path") or policy.get("pretrained_path") or "")
    kind = _text(policy.get("type"))
    return read_training(Path(path).expanduser() / "train_config.json", kind) if path else TrainingFacts(kind)


def _by_task(run: StoredRun) -> dict[str, dict[int | None, Counts]]:
    number = {(task.suite, task.name): task.id for task in run.tasks}
    suites: dict[str, dict[int | None, Counts]] = {}
    for task in run.tasks:
        suites.setdefault(task.suite, {})[task.id] = Counts()
    for episode in run.episodes:
        counts = suites[episode.suite][number[(episode.suite, episode.task)]]
        if episode.success is None:
            counts.errors += 1
        else:
            counts.finished += 1
            counts.successes += episode.success
    if not run.is_complete:  # a plan holds equally many episodes of every task
        each = run.planned // max(1, len(run.tasks))
        for tasks in suites.values():
            for counts in tasks.values():
                counts.missing = max(0, each - counts.finished - counts.errors)
        for episode in run.out_of_order:
            counts = suites[episode.suite][number[(episode.suite, episode.task)]]
            counts.out_of_order += 1
            counts.missing = max(0, counts.missing - 1)
    return suites


def _lists_episodes(file: Path) -> bool:
    """Then its sums are of these episodes, and no better than they are."""
    content = _json(file)
    return bool(content.get("per_task") or content.get("per_episode"))


def _sums(file: Path) -> dict[str, dict[int | None, Counts]]:
    """Of a file without episodes: the rate and the number of each group, as lerobot-eval sums them up."""
    content = _json(file)
    groups = content.get("per_group")
    if not isinstance(groups, dict) or not groups:
        total = content.get("overall") or content.get("aggregated")
        groups = {"all": total} if isinstance(total, dict) else {}
    suites: dict[str, dict[int | None, Counts]] = {}
    for name, group in groups.items():
        rate, n = (
            (group.get("pc_success"), _whole(group.get("n_episodes"))) if isinstance(group, dict) else (None, None)
        )
        if isinstance(rate, (int, float)) and 0 <= rate <= 100 and n:
            suites[str(name)] = {None: Counts(round(rate / 100 * n), n)}
    return suites


def _json(file: Path) -> dict[str, Any]:
    """The object in ``file``; empty when there is none or it is not JSON."""
    try:
        if file.stat().st_size > LARGEST_FILE:
            return {}
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _check_size(file: Path) -> None:
    if file.is_file() and file.stat().st_size > LARGEST_FILE:
        raise ConfigError(f"{file} has more than {LARGEST_FILE // 2**20} MB: it is no eval_info.json")


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def read_list(file: Path) -> list[str]:
    """The lines of a list of repositories: ``user/model``, blank lines and what follows a # left out.

    Raises:
        ConfigError: the file cannot be read, or names nothing.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"{file} cannot be read: {why}") from None
    names = [name for line in lines if (name := line.partition("#")[0].strip())]
    if not names:
        raise ConfigError(f"{file} names no repository: write one a line, such as user/model")
    return list(dict.fromkeys(names))


def read_local(paths: Sequence[Path]) -> tuple[list[Source], list[str]]:
    """All results at ``paths``, and a line for each that cannot be read, so that none is missing silently. A directory
    that is no run but holds some (outputs/eval) gives all of them.

    Raises:
        ConfigError: a path is not there or holds no results, or some would count twice.
    """
    places: list[Path] = []
    for path in paths:
        if not path.exists():
            raise ConfigError(f"{path} holds no results: there is no such file or directory")
        if path.is_dir() and not any((path / name).is_file() for name in ("run.json", "eval_info.json")):
            inside = sorted({file.parent for file in path.rglob("eval_info.json")})
            if not inside:
                raise ConfigError(f"{path} holds no results: neither run.json nor eval_info.json, at any depth")
            places += inside
        else:
            places.append(path)
    sources: list[Source] = []
    not_read: list[str] = []
    met: set[Path] = set()
    for place in places:
        same = (place.parent if place.name == "eval_info.json" else place).resolve()
        if same in met:
            raise ConfigError(f"{place} is given twice")
        met.add(same)
        try:
            sources.append(read_source(place))
        except (RobotrialsError, OSError) as error:
            words = str(error).splitlines()[0]
            not_read.append(words if str(place) in words else f"{place}: {words}")
    return sources, not_read
