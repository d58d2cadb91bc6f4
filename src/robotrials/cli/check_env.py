"""``robotrials check-env NAME``: does a benchmark keep its promises?"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from robotrials.cli import output
from robotrials.cli.positionals import split_words
from robotrials.errors import ConfigError
from robotrials.plan.options import build, coerce

KEPT, BROKEN = 0, 2
_TRUST = "trust_remote_code"

HELP = """\
usage: robotrials check-env NAME [--env.OPTION=VALUE ...] [--steps=N ...]

Try the promises that a benchmark makes, and say which broke, at which step and
by how much: identical observations, pictures and rewards for the same episode
whatever ran before, in whatever process and order; success told at each step;
shapes as declared; the step limit; no growth of memory; nothing printed.

NAME is an --env.type, or a class of yours: my_file.py:MyBenchmark. It runs in
the environment of `robotrials bench install NAME` where there is one.

  --env.OPTION=VALUE  an option of the benchmark, such as --env.task
  --env.python=PATH   another interpreter to check it in
  --trust_remote_code=true
                      for hub and lerobot: run the code of their repository
  --tasks=N           how many of the selected tasks are checked [1]
  --episodes=N        episodes that are compared [3]
  --steps=N           steps of each that are compared [40]
  --memory=N          episodes over which memory must not grow; 0: none [50]
  --memory_seconds=X  no longer than this for them [90]
  --expert=BOOL       let the scripted expert play, where there is one [true]
  --json              findings for programs

Exit status: 0 all promises kept; 1 wrong flags, or not installed; 2 broken, or
interrupted
"""


def run(argv: Sequence[str]) -> int:
    """Parse, check in a process of its own, print; returns the exit status."""
    if any(word in ("--help", "-h") for word in argv) or not argv:
        output.text(HELP)
        return KEPT if argv else 1
    from robotrials.benchmarks.conformance.checks import CheckSettings
    from robotrials.benchmarks.installed import placed
    from robotrials.benchmarks.registry import make_benchmark
    from robotrials.plan import import_path
    from robotrials.plan.config import EnvChoice

    names, options, flags = parse(argv)
    if len(names) != 1:
        raise ConfigError(f"check-env takes one benchmark: robotrials check-env NAME; got {len(names)}")
    as_json = coerce(flags.pop("json", False), bool, "--json")
    settings = build(CheckSettings, flags, "--")
    python = options.pop("python", None)
    choice = placed(EnvChoice(import_path.absolute(names[0]), options, python))
    make_benchmark(choice).tasks()  # wrong options are answered here
    findings: list[dict[str, Any]] = []
    stopped = ""
    try:
        _find(choice, settings, as_json, findings)
    except KeyboardInterrupt:
        stopped = f"interrupted after {len(findings)} promises were tried; the others were not"
    if as_json:
        from robotrials.cli.listing import print_json

        print_json(findings)
    else:
        _sum_up(findings)
    if stopped:
        output.error(stopped)
        return BROKEN
    return BROKEN if any(finding["kept"] is False for finding in findings) else KEPT


def parse(argv: Sequence[str]) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Names, ``--env.*`` options by their name, and the flags of this verb.

    Raises:
        ConfigError: an unknown flag, one given twice, or without its value.
    """
    from robotrials.benchmarks.conformance.checks import CheckSettings

    known = [field.name for field in dataclasses.fields(CheckSettings)] + ["json"]
    written = [word[2:].partition("=")[0].replace("-", "_") for word in argv if word.startswith("--env.")]
    words = split_words(argv, "check-env", [*known, *written, _TRUST], {"json": "true"})
    options = {name.partition(".")[2]: value for name, value in words.flags.items() if name.startswith("env.")}
    flags = {name: value for name, value in words.flags.items() if not name.startswith("env.")}
    if _TRUST in flags:  # as for eval
        options.setdefault(_TRUST, flags.pop(_TRUST))
    return list(words.plain), options, flags


def _find(choice: Any, settings: Any, quiet: bool, findings: list[dict[str, Any]]) -> None:
    """Add to ``findings`` what the check in the benchmark's own interpreter finds; a process that dies is a finding,
    too."""
    from robotrials.benchmarks.child_process import Child
    from robotrials.benchmarks.registry import benchmark_class
    from robotrials.environments import folders
    from robotrials.machine.threads import thread_limits
    from robotrials.rendering.gl import choose_rendering

    python = choice.python or sys.executable
    cls = benchmark_class(choice.type)
    added = folders.variables(cls.installation, choice.python, os.environ)
    gl = choose_rendering("auto", os.environ).of_worker(0) if cls.uses_gl else {}
    environment = {**os.environ, **gl, **thread_limits(1), **added}
    path = filter(None, [environment.get("PYTHONPATH"), os.getcwd()])
    environment["PYTHONPATH"] = os.pathsep.join(path)
    order = {"type": choice.type, "options": dict(choice.options), "settings": dataclasses.asdict(settings)}
    command = [python, "-m", "robotrials.benchmarks.conformance.process", json.dumps(order)]
    try:
        # In a group of its own, which is ended as a whole: Ctrl-C is answered here, and by no traceback from there.
        child = Child(command, environment, 2)
    except OSError as error:
        raise ConfigError(f"--env.python={python} does not run: {error.strerror}") from None
    trying, ended = ("", ""), False
    try:
        for line in child.lines():
            ((kind, content),) = json.loads(line).items()
            if kind == "problem":
                raise ConfigError(content)
            if kind == "begin":
                if content[0] != trying[0] and not quiet:
                    output.text(f"{content[0]}\n")
                trying = (content[0], content[1])
            elif kind == "finding":
                findings.append(content)
                if not quiet:
                    _print(content)
            else:
                ended = True
                break
        status = 0 if ended else child.wait() or 0
    finally:
        child.end()
    if not ended:
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        if not trying[1]:
            raise ConfigError(f"check-env cannot run in {python}: {how}; its words are above")
        what = f"the process died: {how}" if status else "the environment ended the process, with exit status 0"
        findings.append({"task": trying[0], "promise": trying[1], "kept": False, "detail": what})
        if not quiet:
            _print(findings[-1])


def _print(finding: dict[str, Any]) -> None:
    """A line for a promise, as soon as it was tried, and one more for what broke it, or was measured."""
    from robotrials.benchmarks.conformance.promises import PROMISES

    detail = f"\n{'':12}{finding['detail']}" if finding["detail"] else ""
    output.text(f"{_word(finding['kept']):12}{PROMISES[finding['promise']]}{detail}\n")


def _sum_up(findings: list[dict[str, Any]]) -> None:
    tried = [finding for finding in findings if finding["kept"] is not None]
    broken = [finding["promise"] for finding in tried if not finding["kept"]]
    names = f"; broken: {', '.join(dict.fromkeys(broken))}" if broken else ""
    output.text(f"\n{len(tried) - len(broken)} of {len(tried)} promises kept{names}\n")


def _word(kept: bool | None) -> str:
    return {True: "kept", False: "BROKEN", None: "not tried"}[kept]
