"""Python's and NumPy's global random generators, from which some simulators and policies draw."""

from __future__ import annotations

import random

import numpy as np

from robotrials.plan.episode import EpisodeSpec


def seed_global_generators(episode: EpisodeSpec) -> None:
    """Whoever draws from them in ``episode`` sees the same numbers every time."""
    word = int(episode.rng("global").integers(2**32))
    random.seed(word)
    np.random.seed(word)
