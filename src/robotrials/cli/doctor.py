"""``robotrials doctor``: what a simulator would trip over on this machine, before it does."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

from robotrials.cli import output
from robotrials.cli.positionals import split_words
from robotrials.errors import ConfigError

FINE, PROBLEMS = 0, 1

HELP = """\
usage: robotrials doctor [--json]

What a simulator would trip over on this machine, and what to do about it:

  cores, memory, /dev/shm   what this process may really use
  EGL, OSMesa, GPU          what draws without a display, and whether it is the
                            GPU that CUDA_VISIBLE_DEVICES leaves visible
  benchmarks                every one that is installed is imported, for real
  versions                  those known not to work together
  system packages           those missing, with the line that installs them

Exit status: 0 no problem (warnings may be there); 1 wrong flags, or a problem
"""


def run(argv: Sequence[str]) -> int:
    """Parse, examine, print; returns the exit status."""
    if any(word in ("--help", "-h") for word in argv):
        output.text(HELP)
        return FINE
    words = split_words(argv, "doctor", ("json",), {"json": "true"})
    if words.plain:
        raise ConfigError(f"doctor takes no {words.plain[0]!r}: robotrials doctor [--json]")
    from robotrials.doctor import graphics, machine, simulators

    findings = [*machine.examine(), *graphics.examine(os.environ), *simulators.examine()]
    if words.truth("json"):
        from robotrials.cli.listing import print_json

        print_json([dataclasses.asdict(finding) for finding in findings])
    else:
        _print([(f.level, f.check, f.what, f.todo) for f in findings])
    return PROBLEMS if any(finding.level == "problem" for finding in findings) else FINE


def _print(findings: Sequence[tuple[str, str, str, str]]) -> None:
    width = max(len(check) for _, check, _, _ in findings)
    for level, check, what, todo in findings:
        output.text(f"{level:<9}{check:<{width}}  {what}\n")
        if todo:
            output.text(f"{'':{9 + width}}  -> {todo}\n")
