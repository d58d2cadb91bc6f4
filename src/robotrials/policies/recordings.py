"""Recorded actions of episodes, wherever they lie: arrays of NumPy, a run's directory, a dataset that a run has made.

A run and its dataset know each episode by suite, task, seed and initial state; files by ``EpisodeSpec.name``.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np

from robotrials.errors import ConfigError, ContractError, DatasetError, NotInstalledError, RobotrialsError
from robotrials.plan.episode import EpisodeSpec
from robotrials.policies import files

T = TypeVar("T")

KINDS = (
    "actions.npy, actions.npz, a folder of suite/task/index.npy, the directory of a run with --eval.dataset, or the "
    "dataset that it has made"
)
"""What can be replayed, for messages."""

_Key = tuple[str, str, int, "int | None"]
_WHICH = ("suite", "task_name", "seed", "init_state")
"""Columns of a dataset's episodes (``datasets.arrow.RESULTS``)."""


class Recordings(ABC):
    """The recorded actions behind ``path``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def has(self, episode: EpisodeSpec) -> bool:
        """Whether something is recorded for ``episode``; no actions are read."""

    @abstractmethod
    def read(self, episode: EpisodeSpec) -> np.ndarray:
        """What is recorded for ``episode``, which is there."""

    @abstractmethod
    def known(self) -> list[str]:
        """What is recorded, for a message."""

    @abstractmethod
    def sources(self) -> Iterable[Path]:
        """The files on which the actions depend."""

    def of(self, episode: EpisodeSpec) -> np.ndarray:
        """
        Raises:
            ContractError: nothing is recorded for ``episode``; the message says what is.
        """
        if self.has(episode):
            return self.read(episode)
        known = sorted(self.known())
        some = ", ".join(known[:3]) + (", ..." if len(known) > 3 else "")
        has = f"it has {len(known)}: {some}" if known else "it has none; they are named suite/task/index"
        raise ContractError(f"{self.path} has no recording for episode {self.name_of(episode)}; {has}")

    def name_of(self, episode: EpisodeSpec) -> str:
        """``episode`` as ``known`` would call it."""
        return episode.name

    def digest(self) -> str:
        """First 16 hexadecimal digits of a SHA-256 of the sources."""
        total = hashlib.sha256()
        for source in sorted(self.sources()):
            total.update(f"{source.name}\0{files.digest(source)}\0".encode())
        return total.hexdigest()[:16]


def open_recordings(path: Path) -> Recordings:
    """What ``path`` holds, after a look that reads no actions of a run or a dataset.

    Raises:
        ConfigError: it is missing, nothing that can be replayed, or a run or dataset that lacks what is needed.
        NotInstalledError: a dataset needs pyarrow.
    """
    flag = f"--policy.path={path}"
    if not path.exists():
        raise ConfigError(f"{flag}: no such file or folder")
    if path.is_file():
        if path.suffix not in (".npy", ".npz"):
            raise ConfigError(f"{flag}: replay reads .npy, .npz, or a folder; in all: {KINDS}")
        return _OneArray(path) if path.suffix == ".npy" else _Archive(path)
    for run in (path, path.parent):
        if (run / "run.json").is_file() and (run == path or path.name == "spool"):
            return _of_run(run)
    if (path / "meta" / "info.json").is_file():
        return _Dataset(path)
    if next(path.rglob("*.npy"), None) is None:
        raise ConfigError(f"{flag} holds nothing that replay reads: {KINDS}")
    return _Folder(path)


class _OneArray(Recordings):
    """One array for every episode."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._actions: np.ndarray = _load(path)

    def has(self, episode: EpisodeSpec) -> bool:
        return True

    def read(self, episode: EpisodeSpec) -> np.ndarray:
        return self._actions

    def known(self) -> list[str]:
        return []

    def sources(self) -> Iterable[Path]:
        return [self.path]


class _Archive(Recordings):
    """An array an episode in a .npz file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._arrays: Mapping[str, np.ndarray] = _load(path)

    def has(self, episode: EpisodeSpec) -> bool:
        return episode.name in self._arrays

    def read(self, episode: EpisodeSpec) -> np.ndarray:
        return _read(partial(self._arrays.__getitem__, episode.name), f"{self.path}, episode {episode.name}")

    def known(self) -> list[str]:
        return list(self._arrays)

    def sources(self) -> Iterable[Path]:
        return [self.path]


class _Folder(Recordings):
    """A .npy file an episode."""

    def has(self, episode: EpisodeSpec) -> bool:
        return self._file(episode).is_file()

    def read(self, episode: EpisodeSpec) -> np.ndarray:
        recorded: np.ndarray = _load(self._file(episode))
        return recorded

    def known(self) -> list[str]:
        return [file.relative_to(self.path).with_suffix("").as_posix() for file in self.sources()]

    def sources(self) -> Iterable[Path]:
        return self.path.rglob("*.npy")

    def digest(self) -> str:
        return files.digest(self.path)

    def _file(self, episode: EpisodeSpec) -> Path:
        return self.path / f"{episode.name}.npy"


class _Keyed(Recordings):
    """Episodes that are known by suite, task, seed and initial state."""

    def has(self, episode: EpisodeSpec) -> bool:
        return _key(episode) in self._places

    def known(self) -> list[str]:
        return [_words(key) for key in self._places]

    def name_of(self, episode: EpisodeSpec) -> str:
        return _words(_key(episode))

    @cached_property
    @abstractmethod
    def _places(self) -> Mapping[_Key, Any]:
        """Where each episode lies."""


class _Spool(_Keyed):
    """A run whose workers' files have not become a dataset yet."""

    def __init__(self, run: Path, places: Mapping[_Key, Path]) -> None:
        super().__init__(run)
        self._folders = places

    @cached_property
    def _places(self) -> Mapping[_Key, Path]:
        return self._folders

    def read(self, episode: EpisodeSpec) -> np.ndarray:
        from robotrials.datasets.spool import load_columns

        try:
            return load_columns(self._folders[_key(episode)])["action"]
        except (DatasetError, KeyError) as error:
            raise ConfigError(f"--policy.path={self.path}: {error}") from None

    def sources(self) -> Iterable[Path]:
        from robotrials.datasets.spool import COLUMNS

        return [folder / COLUMNS for folder in self._folders.values()]


class _Dataset(_Keyed):
    """A dataset of format v3.0 that ``--eval.dataset`` has written. All of its actions are read at first use."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if find_spec("pyarrow") is None:
            raise NotInstalledError(
                f"--policy.path={path}: replaying a dataset needs pyarrow: pip install 'robotrials[dataset]'"
            )
        from robotrials.datasets.analysis.catalogue import open_catalogue

        try:
            self._catalogue = open_catalogue(path)
        except DatasetError as error:
            raise ConfigError(f"--policy.path={path}: {error}") from None
        if not self._places:
            raise ConfigError(
                f"--policy.path={path} is a LeRobot dataset that does not say of its episodes which "
                f"{', '.join(_WHICH)} they had, so none belongs to an episode here; what can be replayed: {KINDS}"
            )

    @cached_property
    def _places(self) -> Mapping[_Key, int]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        found: dict[_Key, int] = {}
        for file in sorted((self.path / "meta" / "episodes").rglob("*.parquet")):
            try:
                if not {*_WHICH, "episode_index"} <= set(pq.read_schema(file).names):
                    return {}
                rows = pq.read_table(file, columns=[*_WHICH, "episode_index"]).to_pylist()
            except (pa.ArrowException, OSError) as error:
                raise ConfigError(f"--policy.path={self.path}: {file} cannot be read: {error}") from None
            found.update({tuple(row[name] for name in _WHICH): row["episode_index"] for row in rows})
        return found

    @cached_property
    def _actions(self) -> Mapping[int, np.ndarray]:
        from robotrials.datasets.analysis.reading import TIME, read_episodes

        try:
            episodes, _ = read_episodes(self._catalogue, self._catalogue.indices, self._catalogue.action_size, TIME)
        except DatasetError as error:
            raise ConfigError(f"--policy.path={self.path}: {error}") from None
        return {episode.index: episode.actions for episode in episodes}

    def read(self, episode: EpisodeSpec) -> np.ndarray:
        return self._actions[self._places[_key(episode)]]

    def sources(self) -> Iterable[Path]:
        return [*self._catalogue.files, *(self.path / "meta" / "episodes").rglob("*.parquet")]


def _of_run(run: Path) -> Recordings:
    """The actions that a run has kept: among its workers' files while there are any, else in its dataset.

    Raises:
        ConfigError: it has kept none, or its files are damaged.
    """
    from robotrials.datasets.spool import spool_folder
    from robotrials.results.ledger import Ledger
    from robotrials.results.rundir import load_run_json
    from robotrials.results.stored import stored_plan

    flag = f"--policy.path={run}"
    try:
        described = load_run_json(run)
        note = described.get("dataset") or {}
        made = run / str(note.get("path", ""))
        if not (run / "spool").is_dir():
            if note.get("written") and (made / "meta" / "info.json").is_file():
                return _Dataset(made)
            gone = f"its dataset {made} is gone" if note.get("written") else "it was run without --eval.dataset=DIR"
            raise ConfigError(f"{flag} is the directory of a run that keeps no actions: {gone}")
        plan = stored_plan(described, run)
        with Ledger.open(run / "ledger.sqlite", read_only=True) as ledger:
            records = [record for record in ledger.accepted() if not record.is_error and record.episode in plan]
    except ConfigError:
        raise
    except RobotrialsError as error:
        raise ConfigError(f"{flag}: {error}") from None
    places = {_key(plan.episode(r.episode)): spool_folder(run, r.episode, r.attempt) for r in records}
    return _Spool(run, {key: folder for key, folder in places.items() if folder.is_dir()})


def _key(episode: EpisodeSpec) -> _Key:
    return (episode.suite, episode.task, episode.seed, episode.init_state)


def _words(key: _Key) -> str:
    suite, task, seed, init_state = key
    return f"{suite}/{task} seed {seed}" + ("" if init_state is None else f" initial state {init_state}")


def _load(path: Path) -> Any:
    """The array of a .npy file, or the open collection of a .npz file."""
    return _read(partial(np.load, path, allow_pickle=False), str(path))


def _read(read: Callable[[], T], what: str) -> T:
    try:
        return read()
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        raise ConfigError(f"{what} cannot be read as a plain numpy array (pickled ones are refused): {error}") from None
