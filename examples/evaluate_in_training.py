"""Evaluate the policy that is being trained, where it lies in memory, and keep the better one.

python examples/evaluate_in_training.py

"Training" is a few random steps in the two numbers of a policy that moves PushT's pusher about; put your own
loop in its place. `robotrials.evaluate` takes the object itself: no checkpoint has to be written, and the simulators
run in processes of their own. Both policies play the same episodes, so they are compared pair by pair.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import robotrials
from robotrials.benchmarks.base import Observation
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.results.compare.comparison import compare_runs
from robotrials.results.stored import read_run


class Circling(Policy):
    """Moves the pusher on a circle around the middle of the table: ``radius`` in pixels, ``speed`` in radians a
    step."""

    def __init__(self, radius: float, speed: float) -> None:
        self.radius, self.speed = radius, speed

    def spec(self) -> PolicySpec:
        """Only the pusher's position is looked at, so nothing is rendered."""
        return PolicySpec("circling", {"observation.state": None}, action_dim=2)

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        """(B, 1, 2): the next target, a little further round than the pusher is now."""
        places = np.stack([np.asarray(o["observation.state"])[:2] for o in observations]) - 256.0
        angles = np.arctan2(places[:, 1], places[:, 0]) + self.speed
        return (256.0 + self.radius * np.stack([np.cos(angles), np.sin(angles)], axis=-1))[:, None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=4)
    parser.add_argument("--output_dir", type=Path, default=Path("outputs/in_training"))
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    best, best_reward, kept = np.array([120.0, 0.3]), -np.inf, None
    for step in range(args.steps):
        candidate = best + rng.normal(0.0, [20.0, 0.1]) if step else best
        result = robotrials.evaluate(
            Circling(*candidate),
            "pusht",
            n_episodes=args.episodes,
            record="none",
            output_dir=args.output_dir / f"step-{step}",
        )
        reward = result.summary.overall.avg_max_reward or 0.0
        print(f"step {step}: radius {candidate[0]:.0f}, speed {candidate[1]:.2f}: reward {reward:.3f}, {result}")
        if kept is not None:
            (comparison,) = compare_runs([read_run(kept), read_run(result.directory)]).against_first
            print(f"  {comparison.verdict.words}")
        if reward > best_reward:
            best, best_reward, kept = candidate, reward, result.directory
    assert kept is not None, "--steps is at least 1"
    rows = robotrials.load_run(kept, frame="records")
    print(
        f"kept: radius {best[0]:.0f}, speed {best[1]:.2f}; {len(rows)} episodes, seeds {[row['seed'] for row in rows]}"
    )


if __name__ == "__main__":
    main()
