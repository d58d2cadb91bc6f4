"""``robotrials suite list|train|eval|all``: train a policy on a suite's dataset, evaluate it on the suite's tasks."""

from __future__ import annotations

import dataclasses
import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from robotrials.cli import output
from robotrials.cli.positionals import flag_lines, split_words
from robotrials.errors import ConfigError, RobotrialsError
from robotrials.plan.options import build, nearest
from robotrials.suites.commands import (
    SuiteSettings,
    count_gpus,
    eval_words,
    given_policy,
    parse_forwarded,
    train_command,
)
from robotrials.suites.registry import SUITES, Suite, find

ACTIONS = ("list", "train", "eval", "all")
COMPLETE, MISCONFIGURED, PARTIAL = 0, 1, 2
GIVEN = "given"
"""In the place of a checkpoint's step: the folder of a policy that was named, not trained here."""
_METAVARS = {"policy_name": "NAME", "hub_user": "USER", "output_dir": "DIR", "train_python": "PATH"}
_METAVARS |= {"dry_run": "BOOL", "slurm": "BOOL"}

HELP = f"""\
usage: robotrials suite list [FILE.yaml]
       robotrials suite train|eval|all SUITE[,SUITE] [--name=value ...]
                        [-- flags of lerobot-train] [-- flags of eval]

Train a policy on a suite's dataset with lerobot-train, evaluate it on all tasks
of the suite in one plan, or both. The same command again goes on where this
one stopped. SUITE is one of
{", ".join(SUITES)},
or a YAML file of yours.
Flags after -- override what the suite says; `eval` takes one such part, `all`
takes the one of training first.

{flag_lines(SuiteSettings, _METAVARS)}
Examples
  robotrials suite all pusht --policy_name=act --dry_run
  robotrials suite train libero --hub_user=me -- --steps=50000
  robotrials suite eval libero,metaworld -- --policy.path=lerobot/smolvla_base
"""


@dataclass(frozen=True)
class SuiteCall:
    """One command line: ``argv`` is how it was written, for a script that repeats it."""

    action: str
    suites: tuple[Suite, ...]
    settings: SuiteSettings
    for_train: tuple[str, ...]
    for_eval: tuple[str, ...]
    argv: tuple[str, ...]


def run(argv: Sequence[str]) -> int:
    """Parse, train, evaluate, print; returns the exit status."""
    own = list(argv[: argv.index("--")] if "--" in argv else argv)
    if any(word in ("--help", "-h") for word in own):
        output.text(HELP)
        return COMPLETE
    call = parse(argv)
    if call.action == "list":
        _list(call.suites or tuple(SUITES.values()))
        return COMPLETE
    if call.settings.slurm:
        _print_script(call)
        return COMPLETE
    status = max([_carry_out(suite, call) for suite in call.suites], default=COMPLETE)
    if call.action != "train" and not call.settings.dry_run:
        _side_by_side(call)
    return status


def parse(argv: Sequence[str]) -> SuiteCall:
    """Read the words after ``robotrials suite``.

    Raises:
        ConfigError: an unknown action, suite or flag; too many parts after ``--``; no suite.
    """
    parts: list[list[str]] = [[]]
    for word in argv:
        if word == "--":
            parts.append([])
        else:
            parts[-1].append(word)
    own, *forwarded = parts
    known = [field.name for field in dataclasses.fields(SuiteSettings)]
    words = split_words(own, "suite", known, {"dry_run": "true", "slurm": "true"})
    action, *names = words.plain or [""]
    if action not in ACTIONS:
        raise ConfigError(f"suite does what? One of {', '.join(ACTIONS)}; got {action!r}{nearest(action, ACTIONS)}")
    if len(forwarded) > (2 if action == "all" else 1):
        raise ConfigError(f"suite {action} takes {'two parts' if action == 'all' else 'one part'} after --, got more")
    suites = tuple(find(name) for word in names for name in word.split(",") if name)
    called = [suite.name for suite in suites]
    if len(set(called)) < len(called):
        raise ConfigError(f"suite {action}: two suites have one name, and would share folders: {', '.join(called)}")
    if not suites and action != "list":
        raise ConfigError(f"suite {action} of what? One of {', '.join(SUITES)}, or a YAML file")
    settings = build(SuiteSettings, words.flags, "--")
    settings.check()
    first, second = (*forwarded, [], [])[:2]
    for_train, for_eval = ([], first) if action == "eval" else (first, second)
    for part in (for_train, for_eval):
        parse_forwarded(part)
    return SuiteCall(action, suites, settings, tuple(for_train), tuple(for_eval), tuple(argv))


def _list(suites: Sequence[Suite]) -> None:
    """A line for each suite; how it is evaluated only where one goes through the bridge."""
    from robotrials.cli.listing import print_table
    from robotrials.suites.commands import is_bridged

    titles: tuple[str, ...] = ("suite", "dataset", "tasks", "episodes", "steps")
    rows: list[tuple[str, ...]] = [
        (s.name, s.dataset, s.tasks or "all", f"{s.n_episodes}", f"{s.steps:,}") for s in suites
    ]
    through = ["lerobot_env" if is_bridged(s.env) else "" for s in suites]
    if any(through):
        titles = (*titles, "through")
        rows = [(*row, bridge) for row, bridge in zip(rows, through, strict=True)]
    print_table(titles, rows, elastic=2)


def _print_script(call: SuiteCall) -> None:
    from robotrials.suites.slurm import batch_script

    gpus = count_gpus() if call.settings.gpus < 0 else call.settings.gpus
    name = given_policy(call.for_eval) if call.action == "eval" else ""
    words = without_flags(call.argv, ("slurm", "dry_run"))
    name = "_".join([name or call.settings.policy_name, *(suite.name for suite in call.suites)])
    output.text(batch_script(name, gpus or (1 if call.settings.gpus < 0 else 0), words))


def without_flags(argv: Sequence[str], names: Sequence[str]) -> list[str]:
    """``argv`` without the flags ``names`` of its own part; what follows ``--`` is for other programs."""
    end = list(argv).index("--") if "--" in argv else len(argv)
    own = [word for word in argv[:end] if word.lstrip("-").partition("=")[0].replace("-", "_") not in names]
    return [*own, *argv[end:]]


def _carry_out(suite: Suite, call: SuiteCall) -> int:
    """One suite; a failure of it is said, and does not keep the others from their turn."""
    try:
        if call.action == "all":
            _check_evaluation(suite, call)
        if call.action in ("train", "all") and (status := _train(suite, call)):
            return status
        return COMPLETE if call.action == "train" else _evaluate(suite, call)
    except RobotrialsError as error:
        if len(call.suites) == 1:
            raise
        output.error(f"{suite.name}: {error}")
        return MISCONFIGURED


def _check_evaluation(suite: Suite, call: SuiteCall) -> None:
    """Refuse before the training what would be refused after it: a wrong flag, a task or a simulator that is not there.

    A dry run does without the simulator, and then without a check of the tasks.
    """
    from robotrials.benchmarks.registry import make_benchmark
    from robotrials.cli.flags import parse_eval
    from robotrials.cli.push import take_from_eval
    from robotrials.engine.launchers.container import ENGINES
    from robotrials.suites.checks import TO_COME, check_before_training

    words, _ = take_from_eval(eval_words(suite, call.settings, TO_COME, "0", call.for_eval))
    config = parse_eval(words).config
    if call.settings.dry_run and config.eval.runtime in ENGINES:  # no image is asked
        options = {name: value for name, value in config.env.options.items() if name != "python"}
        make_benchmark(replace(config.env, options=options))
        return
    to_come = not {"policy.path", "policy.type"} & set(parse_forwarded(call.for_eval))
    check_before_training(config, to_come, without_simulator=call.settings.dry_run)


def _train(suite: Suite, call: SuiteCall) -> int:
    settings = call.settings
    training = settings.training(suite, call.for_train)
    steps = settings.n_steps(suite, call.for_train)
    last = training.last
    command = train_command(suite, settings, call.for_train)
    if last is not None and last.step >= steps:
        training.require_dataset(parse_forwarded(call.for_train).get("dataset.repo_id", suite.dataset))
        output.line(f"{suite.name}: trained already, {last.step:,} steps in {training.folder}")
        return COMPLETE
    if settings.dry_run:
        output.text(shlex.join(command) + "\n")
        return COMPLETE
    if aside := training.set_aside():
        output.note(f"{training.folder} had no whole checkpoint: it is now {aside}")
    doing = "training" if last is None else f"going on from step {last.step:,}"
    output.line(f"{suite.name}: {doing}\n  {shlex.join(command)}")
    status = _call(command)
    if status == 0 and training.last is None:
        output.error(f"{suite.name}: lerobot-train ended without a checkpoint in {training.folder}")
        return PARTIAL
    if status:
        output.error(f"{suite.name}: lerobot-train ended with status {status}; the same command goes on")
        return PARTIAL
    return COMPLETE


def _call(command: Sequence[str]) -> int:
    """Run ``command`` and wait; Ctrl-C and SIGTERM reach it, and its end is waited for."""
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise


def _evaluate(suite: Suite, call: SuiteCall) -> int:
    policy, step = _policy(suite, call)
    words = eval_words(suite, call.settings, policy, step, call.for_eval)
    if call.settings.dry_run:
        output.text(shlex.join(["robotrials", "eval", *words]) + "\n")
        return COMPLETE
    from robotrials.cli.eval import run as evaluate

    return evaluate(words)


def _policy(suite: Suite, call: SuiteCall) -> tuple[str, str]:
    """What to evaluate, and the name of the folder it goes to: the last checkpoint, else the repository."""
    if given_policy(call.for_eval):
        return parse_forwarded(call.for_eval).get("policy.path", ""), GIVEN
    training = call.settings.training(suite, call.for_train)
    last = training.last
    if last is not None:
        return str(last.policy), f"{last.step:06d}"
    if call.settings.dry_run and call.action == "all":
        steps = call.settings.n_steps(suite, call.for_train)
        name = f"{steps:0{max(6, len(str(steps)))}d}"
        return str(training.folder / "checkpoints" / name / "pretrained_model"), name
    if repository := call.settings.repository(suite):
        return repository, "hub"
    raise ConfigError(
        f"{suite.name}: nothing to evaluate: {training.folder} has no whole checkpoint. Train first "
        f"(robotrials suite train {suite.name}), give --hub_user, or a policy: -- --policy.path=..."
    )


def _side_by_side(call: SuiteCall) -> None:
    """The results of all suites of this command in one table; those not evaluated say so."""
    from robotrials.cli.listing import print_table
    from robotrials.suites.results import rows_of

    folders: list[tuple[str, Path]] = []
    for suite in call.suites:
        try:
            policy, step = _policy(suite, call)
        except RobotrialsError:
            continue
        words = eval_words(suite, call.settings, policy, step, call.for_eval)
        folders.append((suite.name, Path(parse_forwarded(words)["output_dir"])))
    rows = [row for name, folder in folders for row in rows_of(name, folder)]
    if len(rows) > 1:
        output.text("\n")
        print_table(("suite", "success", "95 % interval", "episodes", "errors", "missing"), rows, elastic=0)
