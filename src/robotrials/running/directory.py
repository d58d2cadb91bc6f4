"""Which directory a run writes to, and whether what lies there is this very run."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

from robotrials.errors import ConfigError, IdentityError
from robotrials.plan.config import RunConfig
from robotrials.results.ledger import Ledger
from robotrials.results.rundir import differences, load_run_json


def default_directory(config: RunConfig) -> Path:
    """lerobot-eval's default: outputs/eval/DATE/TIME_JOB."""
    now = datetime.now()
    kind = (config.policy.type or "policy").rpartition(":")[2]
    job = config.job_name or f"{config.env.type}_{kind}"
    return Path("outputs/eval") / f"{now:%Y-%m-%d}" / f"{now:%H-%M-%S}_{re.sub(r'[^A-Za-z0-9_.-]', '_', job)}"


_OWN_NAMES = {"run.lock", "videos", "logs"}
"""What a run directory holds before its run.json: a run killed that early starts anew."""


def existing_run(output_dir: Path) -> dict[str, Any] | None:
    """The run.json that lies there, None in a new or empty directory.

    Raises:
        ConfigError: other files lie there.
    """
    if not output_dir.exists():
        return None
    if (output_dir / "run.json").exists():
        return load_run_json(output_dir)
    if not output_dir.is_dir() or {path.name for path in output_dir.iterdir()} - _OWN_NAMES:
        raise ConfigError(f"{output_dir} exists and holds no run: choose another --output_dir, or empty it")
    return None


def progress_so_far(
    output_dir: Path, existing: dict[str, Any] | None, identity: dict[str, Any], config: RunConfig, planned: int
) -> tuple[int, int]:
    """Episodes with a result in ``output_dir``, and how many of these are errors.

    Raises:
        IdentityError: another run lives there.
    """
    if existing is None:
        return 0, 0
    changes = differences(existing["identity"], identity)
    same_plan = existing["identity"].get("plan") == identity["plan"]
    if not same_plan:
        changes = _which_episodes(existing["config"], config) + [
            line for line in changes if not line.startswith("plan:")
        ]
    if changes and not (config.allow_mixed and same_plan):
        hint = (
            "start it in another --output_dir, or go on with --allow_mixed=true, which records that the run is mixed"
            if same_plan
            else "these are other episodes: start them in another --output_dir"
        )
        raise IdentityError(
            f"{output_dir} holds another run. What differs (there -> here):\n  " + "\n  ".join(changes) + f"\n{hint}"
        )
    path = output_dir / "ledger.sqlite"
    if not path.exists():
        return 0, 0
    with Ledger.open(path, read_only=True) as ledger:
        done = errors = 0
        for record in ledger.accepted():
            done += 1
            errors += record.is_error
    return done, errors


def _which_episodes(there: dict[str, Any], here: RunConfig) -> list[str]:
    """What makes the plans differ, in the words of the flags; two hashes would tell nobody anything."""
    old = {
        "--env.task": there["env"]["options"].get("task"),
        "--eval.n_episodes": there["eval"]["n_episodes"],
        "--seed": there["seed"],
    }
    new = {
        "--env.task": here.env.options.get("task"),
        "--eval.n_episodes": here.eval.n_episodes,
        "--seed": here.seed,
    }
    return differences(old, new) or ["the benchmark's tasks (their sentences, limits or shapes)"]
