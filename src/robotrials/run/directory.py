"""Which directory a run writes to, and whether what lies there is this very run."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from robotrials.errors import ConfigError, IdentityError, RobotrialsError, UnreadableLedgerError
from robotrials.plan.config import RunConfig
from robotrials.results.ledger import Ledger
from robotrials.results.rundir import RunDirectory, differences, load_run_json


def default_directory(config: RunConfig) -> Path:
    """lerobot-eval's default, outputs/eval/DATE/TIME_JOB; with milliseconds where that is taken already."""
    now = datetime.now()
    kinds = [(name or "policy").rpartition(":")[2] for name in (config.env.type, config.policy.type)]
    job = re.sub(r"[^A-Za-z0-9_.-]", "_", config.job_name or "_".join(kinds))
    day = Path("outputs/eval") / f"{now:%Y-%m-%d}"
    first = day / f"{now:%H-%M-%S}_{job}"
    return day / f"{now:%H-%M-%S}.{now.microsecond // 1000:03}_{job}" if first.exists() else first


def usable_directory(path: Path) -> Path:
    """``path``, absolute.

    Raises:
        ConfigError: no file system call or message could name it.
    """
    directory = Path(os.path.abspath(Path(path).expanduser()))
    try:
        str(directory).encode()
        directory.exists()
    except UnicodeEncodeError:
        raise ConfigError(f"{str(path)!a} cannot be read in this locale: set LC_ALL=C.UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be a run directory: {error.strerror or error}") from None
    return directory


def described_run(directory: Path) -> dict[str, Any]:
    """The content of run.json.

    Raises:
        ConfigError: there is none, or it is not a run's.
    """
    content = load_run_json(directory)
    if not all(isinstance(content.get(key), dict) for key in ("config", "identity", "plan")):
        raise ConfigError(f"{directory / 'run.json'} does not describe a run: it lacks config, identity or plan")
    return content


def clear(directory: RunDirectory) -> None:
    """Take away what a run without any outcome has left, so that another can begin there."""
    for path in (directory.run_json, *directory.path.glob("ledger.sqlite*"), *directory.logs.glob("*.log")):
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def removed_when_refused(path: Path) -> Iterator[None]:
    """Remove the run directory, and the folders above it, that a run in this block has made and then been refused in
    before its first episode. One that the message points into stays, for its logs."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        yield
    except RobotrialsError as error:
        if missing and str(path) not in str(error) and not _has_attempts(path):
            shutil.rmtree(path, ignore_errors=True)
            with contextlib.suppress(OSError):  # another run has come to live there
                for folder in missing[1:]:
                    folder.rmdir()
        raise


def _has_attempts(path: Path) -> bool:
    """Whether anything was tried in this run directory; a ledger that cannot be read counts as yes."""
    ledger = path / "ledger.sqlite"
    if not ledger.exists():
        return False
    try:
        with Ledger.open(ledger, read_only=True) as opened:
            return bool(opened.attempt_counts())
    except RobotrialsError:
        return True


_OWN_NAMES = {"run.lock", "videos", "logs", "wandb"}
"""What a run directory holds before its run.json: a run killed that early starts anew."""


def existing_run(output_dir: Path) -> dict[str, Any] | None:
    """The run.json that lies there, None in a new or empty directory.

    Raises:
        ConfigError: other files lie there.
    """
    if not output_dir.exists():
        return None
    if (output_dir / "run.json").exists():
        return described_run(output_dir)
    if not output_dir.is_dir() or {path.name for path in output_dir.iterdir()} - _OWN_NAMES:
        raise ConfigError(f"{output_dir} exists and holds no run: choose another --output_dir, or empty it")
    return None


def progress_so_far(
    output_dir: Path, existing: dict[str, Any] | None, identity: dict[str, Any], config: RunConfig, planned: int
) -> tuple[int, int]:
    """Episodes with a result in ``output_dir``, and how many of these are errors; (0, 0) where another run has left
    nothing but errors.

    Raises:
        IdentityError: another run lives there.
        UnreadableLedgerError: its ledger is damaged, or gone.
    """
    if existing is None:
        return 0, 0
    done = errors = 0
    path = output_dir / "ledger.sqlite"
    if existing.get("sessions") and not path.exists():
        raise UnreadableLedgerError(
            f"{path} is gone, though run.json tells of earlier sessions: put it back, or start again in another run "
            "directory"
        )
    if path.exists():
        with Ledger.open(path, read_only=True) as ledger:
            for record in ledger.accepted():
                done += 1
                errors += record.is_error
    changes = differences(existing["identity"], identity)
    if not changes:
        return done, errors
    if done == errors:
        return 0, 0  # a typo that was mended, a policy that did not load: nothing is there to be mixed with
    same_plan = all(existing["identity"].get(key) == identity.get(key) for key in ("plan", "shard"))
    if config.allow_mixed and same_plan:
        return done, errors
    if not same_plan:
        plan_in_words = _which_episodes(existing["config"], config)
        changes = plan_in_words + [line for line in changes if not line.startswith(("plan:", "shard"))]
    hint = (
        "start it in another --output_dir, or go on with --allow_mixed=true, which records that the run is mixed"
        if same_plan
        else "these are other episodes: start them in another --output_dir"
    )
    raise IdentityError(
        f"{output_dir} holds another run. What differs (there -> here):\n  " + "\n  ".join(changes) + f"\n{hint}"
    )


def _which_episodes(there: dict[str, Any], here: RunConfig) -> list[str]:
    """What makes the plans differ, in the words of the flags; two hashes would tell nobody anything."""
    old = {
        "--env.task": there["env"]["options"].get("task"),
        "--eval.n_episodes": there["eval"]["n_episodes"],
        "--seed": there["seed"],
        "--eval.num_shards": there["eval"].get("num_shards", 1),
        "--eval.shard_id": there["eval"].get("shard_id", 0),
    }
    new = {
        "--env.task": here.env.options.get("task"),
        "--eval.n_episodes": here.eval.n_episodes,
        "--seed": here.seed,
        "--eval.num_shards": here.eval.num_shards,
        "--eval.shard_id": here.eval.shard_id,
    }
    return differences(old, new) or ["the benchmark's tasks (their sentences, limits or shapes)"]
