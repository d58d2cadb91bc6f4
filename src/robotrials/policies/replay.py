"""``--policy.type=replay``: actions from a file, open loop.

``--policy.path`` is one of

- ``actions.npy``: one array (T, A) for every episode;
- ``actions.npz``: one array (T, A) an episode, named ``suite/task/index`` as ``EpisodeSpec.name`` has it:
  ``numpy.savez("actions.npz", **{"reach-v3/reach-v3/0": actions, ...})``;
- a folder that holds the same as ``suite/task/index.npy``;
- the directory of a run with ``--eval.dataset``, or the dataset that it has made: each episode is the recorded one with
  its suite, task, seed and initial state. These keep actions as float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
from robotrials.policies.recordings import open_recordings
from robotrials.version import __version__

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
        ConfigError: an unknown ``after``, or a path that is none of the above.
        """
        if after not in AFTER:
            raise ConfigError(f"--policy.after must be one of {', '.join(AFTER)}; got {after!r}{nearest(after, AFTER)}")
        if after == "error" and n_action_steps > 1:
            raise ConfigError(f"--policy.after=error needs --policy.n_action_steps=1, not {n_action_steps}")
        self._after = after
        self._n_action_steps = at_least_one("n_action_steps", n_action_steps)
        self._recordings = open_recordings(Path(path).expanduser())

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


def validate(choice: PolicyChoice) -> None:
    """Look at what there is to be replayed.

    Raises:
        ConfigError: nothing that can be.
        NotInstalledError: a dataset needs pyarrow.
    """
    open_recordings(_place(choice))


def revision(choice: PolicyChoice) -> str:
    """This package's version, and a hash of the recorded actions: of a run or a dataset, not of its videos and logs."""
    return f"builtin-{__version__} sha256:{open_recordings(_place(choice)).digest()}"


def check_plan(choice: PolicyChoice, plan: Plan) -> None:
    """Look for a recording of every episode, and at the first one of every task.

    Raises:
        ContractError: an episode has none, or it is no (T, A) array for its task.
    """
    recordings = open_recordings(_place(choice))
    seen: set[tuple[str, str]] = set()
    for episode in plan:
        task = plan.task_of(episode)
        if task.key not in seen or not recordings.has(episode):
            _check(recordings.of(episode), task, f"{recordings.path}, episode {episode.name}")
            seen.add(task.key)


def _place(choice: PolicyChoice) -> Path:
    return Path(str(choice.path)).expanduser()


def _check(actions: np.ndarray, task: TaskSpec, what: str) -> None:
    """Raises ContractError unless ``actions`` is (T, A) numbers with T >= 1 and A the task's."""
    if actions.dtype.kind not in "fiu" or actions.ndim != 2 or len(actions) < 1 or actions.shape[1] != task.action.dim:
        raise ContractError(
            f"{what}: {actions.dtype}{list(actions.shape)} is recorded, "
            f"but task {task.name} takes [T, {task.action.dim}] numbers, T at least 1"
        )
