"""``--policy.type=replay``: actions from a file, open loop.

``--policy.path`` is one of

- ``actions.npy``: one array (T, A) for every episode;
- ``actions.npz``: one array (T, A) an episode, named ``suite/task/index`` as ``EpisodeSpec.name`` has it:
  ``numpy.savez("actions.npz", **{"reach-v3/reach-v3/0": actions, ...})``;
- a folder that holds the same as ``suite/task/index.npy``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np

from robotrials.benchmarks.base import Env, Observation
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import PolicyChoice
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.options import nearest
from robotrials.plan.plan import Plan
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.policies.checks import at_least_one

T = TypeVar("T")
AFTER = ("hold", "zero", "error")


@dataclass
class ReplaySession(Session):
    """The actions (T, A) of this episode, and how many of them have been handed out."""

    actions: np.ndarray | None = None
    played: int = 0


class ReplayPolicy(Policy):
    """Plays recorded actions in order, ``n_action_steps`` at a time.

    ``after`` says what follows the last one: it again (``hold``), zeros (``zero``), or a ContractError (``error``).
    Precision is the file's. Pickled arrays are refused.
    """

    draws_globally = False
    plain = True

    def __init__(self, path: str, after: str = "hold", n_action_steps: int = 1) -> None:
        """Raises:
        ConfigError: an unknown ``after``, or a path that is none of the three above.
        """
        if after not in AFTER:
            raise ConfigError(f"--policy.after must be one of {', '.join(AFTER)}; got {after!r}{nearest(after, AFTER)}")
        if after == "error" and n_action_steps > 1:
            raise ConfigError(f"--policy.after=error needs --policy.n_action_steps=1, not {n_action_steps}")
        self._after = after
        self._n_action_steps = at_least_one("n_action_steps", n_action_steps)
        self._recordings = _Recordings(Path(path).expanduser())

    def spec(self) -> PolicySpec:
        return PolicySpec("replay", n_action_steps=self._n_action_steps)

    def new_session(self, episode: EpisodeSpec, task: TaskSpec, env: Env | None = None) -> ReplaySession:
        """Raises:
        ContractError: nothing is recorded for this episode, or it is no (T, A) array for this task.
        """
        actions = self._recordings.of(episode)
        _check(actions, task, f"{self._recordings.path}, episode {episode.name}")
        return ReplaySession(episode, task, episode.rng("policy"), env, actions)

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        """(B, n_action_steps, A)."""
        return np.stack([self._next_chunk(session) for session in sessions])

    def _next_chunk(self, session: Session) -> np.ndarray:
        assert isinstance(session, ReplaySession)
        assert session.actions is not None
        chunk = session.actions[session.played : session.played + self._n_action_steps]
        lacking = self._n_action_steps - len(chunk)
        if lacking and self._after == "error":
            raise ContractError(
                f"episode {session.episode.name} goes on after its {len(session.actions)} recorded actions, "
                "and --policy.after=error"
            )
        session.played += self._n_action_steps
        last = session.actions[-1:]
        fill = np.zeros_like(last) if self._after == "zero" else last
        return np.concatenate([chunk, np.repeat(fill, lacking, axis=0)])


class _Recordings:
    """The arrays behind ``path``, read one episode at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            raise ConfigError(f"--policy.path={path}: no such file or folder")
        if path.is_file() and path.suffix not in (".npy", ".npz"):
            raise ConfigError(f"--policy.path={path}: replay reads .npy, .npz, or a folder of .npy files")
        self._one: np.ndarray | None = _load(path) if path.suffix == ".npy" else None
        self._many: Mapping[str, np.ndarray] | None = _load(path) if path.suffix == ".npz" else None

    def has(self, episode: EpisodeSpec) -> bool:
        """Whether something is recorded for ``episode``; no array is read."""
        if self._many is not None:
            return episode.name in self._many
        return self._one is not None or (self.path / f"{episode.name}.npy").is_file()

    def of(self, episode: EpisodeSpec) -> np.ndarray:
        """What is recorded for ``episode``; ContractError when nothing is."""
        if self._one is not None:
            return self._one
        if self._many is not None:
            if episode.name not in self._many:
                raise self._nothing_for(episode, list(self._many))
            return _read(partial(self._many.__getitem__, episode.name), f"{self.path}, episode {episode.name}")
        file = self.path / f"{episode.name}.npy"
        if not file.is_file():
            known = [p.relative_to(self.path).with_suffix("").as_posix() for p in self.path.rglob("*.npy")]
            raise self._nothing_for(episode, known)
        recorded: np.ndarray = _load(file)
        return recorded

    def _nothing_for(self, episode: EpisodeSpec, known: list[str]) -> ContractError:
        some = ", ".join(sorted(known)[:3]) + (", ..." if len(known) > 3 else "")
        has = f"it has {len(known)}: {some}" if known else "it has none; they are named suite/task/index"
        return ContractError(f"{self.path} has no recording for episode {episode.name}; {has}")


def check_plan(choice: PolicyChoice, plan: Plan) -> None:
    """Look for a recording of every episode, and at the first one of every task.

    Raises:
        ContractError: an episode has none, or it is no (T, A) array for its task.
    """
    recordings = _Recordings(Path(str(choice.path)).expanduser())
    seen: set[tuple[str, str]] = set()
    for episode in plan:
        task = plan.task_of(episode)
        if task.key not in seen or not recordings.has(episode):
            _check(recordings.of(episode), task, f"{recordings.path}, episode {episode.name}")
            seen.add(task.key)


def _load(path: Path) -> Any:
    """The array of a .npy file, or the open collection of a .npz file."""
    return _read(partial(np.load, path, allow_pickle=False), str(path))


def _read(read: Callable[[], T], what: str) -> T:
    try:
        return read()
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        raise ConfigError(f"{what} cannot be read as a plain numpy array (pickled ones are refused): {error}") from None


def _check(actions: np.ndarray, task: TaskSpec, what: str) -> None:
    """Raises ContractError unless ``actions`` is (T, A) numbers with T >= 1 and A the task's."""
    if actions.dtype.kind not in "fiu" or actions.ndim != 2 or len(actions) < 1 or actions.shape[1] != task.action.dim:
        raise ContractError(
            f"{what}: {actions.dtype}{list(actions.shape)} is recorded, "
            f"but task {task.name} takes [T, {task.action.dim}] numbers, T at least 1"
        )
