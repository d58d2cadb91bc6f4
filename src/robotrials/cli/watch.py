"""``robotrials watch TRAIN_DIR``: evaluate each checkpoint of a training as it appears."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from robotrials.cli import output
from robotrials.errors import ConfigError
from robotrials.plan.config import RunConfig
from robotrials.plan.options import coerce, nearest

if TYPE_CHECKING:
    from robotrials.suites.training import TrainingFolder

COMPLETE, PARTIAL = 0, 2
OWN = {"poll_s": "30", "once": "false"}

HELP = """\
usage: robotrials watch TRAIN_DIR --env.type=NAME [--env.task=TASKS] [flags]

Evaluate each new checkpoint of a running lerobot-train as it appears, all on
the same episodes, and draw success over training steps. TRAIN_DIR is the
--output_dir of lerobot-train. A checkpoint that is half written is not taken.
Ends when the training has written its last and that is evaluated. The same
command again goes on where this one stopped.

  --poll_s=SECONDS        how often to look for a new checkpoint [30]
  --once                  evaluate those that are there, do not wait
  --output_dir=DIR        default TRAIN_DIR/evaluation: a run in DIR/STEP for
                          each checkpoint, index.html (links to their reports;
                          renews itself while this goes on), curve.json, and
                          curve.png where matplotlib is installed

All other flags are those of robotrials eval (its --help has them), without
--policy.path.

Example
  robotrials watch outputs/train/act_pusht --env.type=pusht \\
      --eval.n_episodes=50 --policy.device=cpu
"""


@dataclass(frozen=True)
class WatchCall:
    """``config`` is the run of every checkpoint, but for its path and directory."""

    train_dir: Path
    output_dir: Path
    config: RunConfig
    poll_s: float
    once: bool


def run(argv: Sequence[str]) -> int:
    """Parse, wait, evaluate, draw; returns the exit status."""
    if any(word in ("--help", "-h") for word in argv):
        output.text(HELP)
        return COMPLETE
    call = parse(argv)
    from robotrials.suites.training import TrainingFolder
    from robotrials.suites.watch import PAGE, check_before_waiting, read_curve, write_curve

    check_before_waiting(call.config)
    training = TrainingFolder(call.train_dir)
    title = f"{call.train_dir.resolve().name} on {call.config.env.type.rpartition(':')[2]}"
    there = "" if training.folder.is_dir() else ", which is not there yet"
    output.line(f"watching {training.folder / 'checkpoints'}{there}")
    if read_curve(call.output_dir):
        write_curve(call.output_dir, title, goes_on=True)
    try:
        status = _evaluate_all(call, training, title)
    finally:  # however it ended: the page no longer renews itself
        if read_curve(call.output_dir):
            write_curve(call.output_dir, title)
    if status is None:
        return PARTIAL
    if not read_curve(call.output_dir):
        raise ConfigError(f"{training.folder} has no whole checkpoint yet; without --once this waits for one")
    output.text(f"{call.output_dir / PAGE}\n")
    return status


def _evaluate_all(call: WatchCall, training: TrainingFolder, title: str) -> int | None:
    """The status of the worst run; None when a signal stopped one: what has finished is written down."""
    from robotrials.cli.runner import carry_out
    from robotrials.run.prepare import prepare
    from robotrials.suites.watch import arrivals, config_for, read_curve, write_curve

    status = COMPLETE
    for checkpoint in arrivals(training, call.poll_s, call.once):
        prepared = prepare(config_for(call.config, checkpoint, call.output_dir))
        if prepared.is_finished and any(point.step == checkpoint.step for point in read_curve(call.output_dir)):
            output.line(f"step {checkpoint.step:,}: evaluated already")
            continue
        output.line(f"step {checkpoint.step:,}:")
        ended = carry_out(prepared, dry_run=False)
        status = max(status, ended)
        points = write_curve(call.output_dir, title, goes_on=True)
        here = [point for point in points if point.step == checkpoint.step]
        if not here or here[0].finished + here[0].errors < here[0].planned:
            return None
    return status


def parse(argv: Sequence[str]) -> WatchCall:
    """Read the words after ``robotrials watch``.

    Raises:
        ConfigError: no directory or more than one, a flag of neither this verb nor ``eval``, or ``--policy.path``.
    """
    from robotrials.cli.flags import parse_eval

    directories: list[str] = []
    own: dict[str, str] = {}
    rest: list[str] = []
    words = list(argv)
    while words and not words[0].startswith("-"):
        directories.append(words.pop(0))
    while words:
        word = words.pop(0)
        name, equals, value = word[2:].partition("=")
        name = name.replace("-", "_")
        if name in own:
            raise ConfigError(f"--{name} is given twice")
        if name not in OWN:
            rest.append(word)
        elif equals:
            own[name] = value
        else:
            own[name] = "true" if name == "once" else words.pop(0) if words else ""
    if len(directories) != 1:
        raise ConfigError(f"watch takes one directory, first: robotrials watch TRAIN_DIR ...; got {len(directories)}")
    train_dir = Path(directories[0]).expanduser().absolute()
    _refuse_misspelt(rest)
    if any(word.replace("-", "_").startswith("__policy.path") for word in rest):
        raise ConfigError("watch takes no --policy.path: it evaluates the checkpoints of TRAIN_DIR")
    # A path is what tells eval that checkpoints are of LeRobot; each checkpoint's own takes its place.
    parsed = parse_eval([*rest, f"--policy.path={train_dir}"])
    config = parsed.config
    if parsed.dry_run:
        raise ConfigError("watch has no --dry_run; robotrials eval shows the plan: --policy.path=CHECKPOINT --dry_run")
    poll_s = coerce(own.get("poll_s", OWN["poll_s"]), float, "--poll_s")
    if poll_s <= 0:
        raise ConfigError(f"--poll_s must be above 0, got {poll_s:g}")
    once = coerce(own.get("once", OWN["once"]), bool, "--once")
    output_dir = (config.output_dir or train_dir / "evaluation").absolute()
    for what, folder in (("TRAIN_DIR", train_dir), ("--output_dir", output_dir)):
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"{what} must be a folder, and {folder} is a file")
    return WatchCall(train_dir, output_dir, config, poll_s, once)


def _refuse_misspelt(words: Sequence[str]) -> None:
    """A flag that is nearer to one of this verb than to any of ``eval``, which would not know the right name.

    Raises:
        ConfigError: there is one.
    """
    from robotrials.cli.flags import KNOWN

    own, others = [f"--{name}" for name in OWN], [f"--{name}" for name in KNOWN]
    for word in words:
        name = word.partition("=")[0]
        hint = nearest(name.replace("-", "_").replace("__", "--", 1), [*own, *others])
        if name.startswith("--") and any(hint == f" (did you mean {flag}?)" for flag in own):
            raise ConfigError(f"unknown flag {name}{hint}")
