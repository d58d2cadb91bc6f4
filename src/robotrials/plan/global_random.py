"""The global random generators of Python, NumPy and torch, from which some simulators and policies draw.

They are one stream for a whole process, and an episode's numbers must not depend on who else draws. So each user of
them, a simulator's episode or a policy's session, has ``Generators``: a stream of its own that stands in the global
place while that user runs. torch is never imported for it; when it is imported later, it is seeded then.
"""

from __future__ import annotations

import contextlib
import ctypes
import random
import sys
import threading
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np

from robotrials.plan.episode import EpisodeSpec

_LOCK = threading.RLock()
_WORDS = 4 * 625
"""Bytes of a Mersenne Twister: 624 words and the place in them (NumPy's ``mt19937_state``)."""


class Generators:
    """The state of the global generators for one user of them, which begins with the seed ``word`` (32 bits)."""

    def __init__(self, word: int) -> None:
        self.word = word
        self._python: Any = None
        self._numpy: _NumpyState | None = None
        self._torch: Any = None
        self._cuda: Any = None

    def load(self) -> None:
        """Put it in the global place."""
        if self._numpy is None:
            random.seed(self.word)
            np.random.seed(self.word)
            self._python, self._numpy = random.getstate(), _NumpyState.now(None)
        else:
            random.setstate(self._python)
            self._numpy.put()
        torch = _loaded_torch()
        if torch is None:
            _Watch.install()
            return
        if self._torch is None:
            self._seed_torch(torch)
        else:
            torch.set_rng_state(self._torch)
        self._load_cuda(torch)

    def save(self) -> bool:
        """Take it back from the global place; whether anything was drawn since it was loaded."""
        python, numpy = random.getstate(), _NumpyState.now(self._numpy)
        drew = python != self._python or numpy is not self._numpy
        self._python, self._numpy = python, numpy
        torch = _loaded_torch()
        if torch is None:
            return drew
        before, self._torch = self._torch, torch.get_rng_state()
        drew = drew or before is None or not torch.equal(before, self._torch)
        return self._save_cuda(torch) or drew

    def _seed_torch(self, torch: Any) -> None:
        torch.default_generator.manual_seed(self.word)
        self._torch = torch.get_rng_state()

    def _load_cuda(self, torch: Any) -> None:
        if not torch.cuda.is_initialized():
            _Queued.for_cuda(torch, self.word)
        elif self._cuda is None:
            torch.cuda.manual_seed_all(self.word)
            self._cuda = torch.cuda.get_rng_state_all()
        else:
            torch.cuda.set_rng_state_all(self._cuda)

    def _save_cuda(self, torch: Any) -> bool:
        if not torch.cuda.is_initialized():
            return False
        before, self._cuda = self._cuda, torch.cuda.get_rng_state_all()
        if before is None:  # CUDA was started meanwhile, with the seed
            devices = [torch.device("cuda", index) for index in range(len(self._cuda))]
            before = [torch.Generator(device).manual_seed(self.word).get_state() for device in devices]
        return any(not torch.equal(a, b) for a, b in zip(before, self._cuda, strict=True))


class _NumpyState:
    """The state of NumPy's global generator.

    ``get_state`` and ``set_state`` take 0.1 ms each, so the Mersenne Twister is copied by the address that NumPy gives.
    What that leaves out, the second normal number of a pair, can have come or gone only if the Twister moved or a
    number was waiting before.
    """

    def __init__(self, words: bytes, full: Any) -> None:
        self._words = words
        self._full = full
        """As ``get_state`` gives it, where a normal number waits or the generator is another."""

    @classmethod
    def now(cls, before: _NumpyState | None) -> _NumpyState:
        """What stands in the global place: ``before`` itself if nothing was drawn since."""
        generator = _bit_generator()
        if type(generator) is not np.random.MT19937:  # somebody has replaced it
            return cls(b"", np.random.get_state(legacy=False))
        words = ctypes.string_at(generator.ctypes.state_address, _WORDS)
        unmoved = before is not None and words == before._words
        if unmoved and before is not None and before._full is None:
            return before
        full: Any = np.random.get_state(legacy=False)
        if unmoved and before is not None and full["has_gauss"]:
            return before
        return cls(words, full if full["has_gauss"] else None)

    def put(self) -> None:
        generator = _bit_generator()
        if self._full is not None:
            np.random.set_state(self._full)
        else:
            np.random.seed(0)  # forgets a normal number that waits
            ctypes.memmove(generator.ctypes.state_address, self._words, _WORDS)


def _bit_generator() -> Any:
    return np.random.mtrand._rand._bit_generator  # ``get_bit_generator`` came with NumPy 1.24


_standing = Generators(0)
"""Whose numbers the global generators give now."""


def seed_global_generators(episode: EpisodeSpec) -> None:
    """Begin ``episode``: its simulator, and whoever else draws from the global generators, sees the same numbers every
    time."""
    global _standing
    with _LOCK:
        _standing = Generators(word_of(episode, "global"))
        _standing.load()


def word_of(episode: EpisodeSpec, stream: str) -> int:
    """The seed (32 bits) of ``episode`` for the global generators; each ``stream`` has its own."""
    return int(episode.rng(stream).integers(2**32))


class Drawn:
    """Whether anything was drawn while a ``standing`` block ran; known when it has ended."""

    drew = False


@contextlib.contextmanager
def standing(generators: Generators) -> Iterator[Drawn]:
    """While the block runs, ``generators`` stand in the global place, for this process and all of its threads; those
    that stood there are put back. One block at a time: other threads wait."""
    global _standing
    with _LOCK:
        before, drawn = _standing, Drawn()
        before.save()
        _standing = generators
        try:
            generators.load()
            yield drawn
        finally:
            drawn.drew = generators.save()
            _standing = before
            before.load()


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """While the block runs, no other thread changes what stands in the global place."""
    with _LOCK:
        yield


def _loaded_torch() -> Any:
    """torch if it is imported, all of it; else None."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "default_generator") and hasattr(torch, "cuda") else None


class _Queued:
    """torch keeps the last seed that was given for CUDA until CUDA is started; giving it is slow."""

    word: int | None = None
    has_cuda: bool | None = None

    @classmethod
    def for_cuda(cls, torch: Any, word: int) -> None:
        if cls.has_cuda is None:
            cls.has_cuda = torch.cuda.device_count() > 0
        if cls.has_cuda and cls.word != word:
            torch.cuda.manual_seed_all(word)
            cls.word = word


class _Watch(MetaPathFinder):
    """Finds torch as the other finders do, and has it seeded as soon as it is imported."""

    @classmethod
    def install(cls) -> None:
        if not any(isinstance(finder, cls) for finder in sys.meta_path):
            sys.meta_path.insert(0, cls())

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "torch":
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if not isinstance(finder, _Watch) else None
            if spec is not None and spec.loader is not None:
                spec.loader = _SeedingLoader(spec.loader)
                return spec
        return None


class _SeedingLoader(Loader):
    """``inner``, after which the generators that stand are given their seed."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._inner.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        module.__loader__ = self._inner
        self._inner.exec_module(module)
        torch = _loaded_torch()
        if torch is not None:
            _standing._seed_torch(torch)
            _standing._load_cuda(torch)
