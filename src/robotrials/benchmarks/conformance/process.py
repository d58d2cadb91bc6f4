"""Does a benchmark keep its promises? ``check`` tries them one by one and says which broke, at which step, by how much.

From the command line: ``robotrials check-env NAME``. From pytest::

    report = check(EnvChoice("my_package.sim:MySim", {"task": "reach"}))
    assert not report.broken, report
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from robotrials.benchmarks.child_process import keep_to_itself
from robotrials.benchmarks.conformance.checks import CheckSettings, PromiseResult, TaskChecker
from robotrials.benchmarks.registry import benchmark_class, make_benchmark, require_installed
from robotrials.errors import ConfigError
from robotrials.plan.config import EnvChoice


@dataclass(frozen=True)
class Report:
    """All findings, in the order in which they were made."""

    findings: tuple[PromiseResult, ...]

    @property
    def broken(self) -> list[PromiseResult]:
        return [finding for finding in self.findings if finding.kept is False]

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings))


def check(
    choice: EnvChoice,
    settings: CheckSettings | None = None,
    on_finding: Callable[[PromiseResult], None] = lambda finding: None,
    on_begin: Callable[[str, str], None] = lambda task, promise: None,
) -> Report:
    """Try every promise of the benchmark that ``choice`` names, in this process and in fresh ones of this interpreter.

    Raises:
        ConfigError: the benchmark or its options do not exist, or it is not installed here.
    """
    settings = settings or CheckSettings()
    if settings.episodes < 2 or settings.steps < 2:
        raise ConfigError("check-env compares at least 2 episodes of 2 steps")
    require_installed(benchmark_class(choice.type))
    benchmark = make_benchmark(choice)
    findings: list[PromiseResult] = []
    for number in range(min(settings.tasks, len(benchmark.tasks()))):
        checker = TaskChecker(choice, settings, benchmark, number)
        for finding in checker.run(on_begin):
            findings.append(finding)
            on_finding(finding)
    return Report(tuple(findings))


def main() -> None:
    """``python -m robotrials.benchmarks.conformance.process JSON FD``: a JSON line for what is begun and for what is
    found, on that file descriptor, and one for the end. Simulators may print on the others, and may take the process
    with them."""
    order, descriptor = json.loads(sys.argv[1]), int(sys.argv[2])
    keep_to_itself(descriptor)
    with os.fdopen(descriptor, "w") as pipe:

        def tell(kind: str, content: Any) -> None:
            pipe.write(json.dumps({kind: content}) + "\n")
            pipe.flush()

        try:
            check(
                EnvChoice(order["type"], order["options"]),
                CheckSettings(**order["settings"]),
                lambda finding: tell("finding", asdict(finding)),
                lambda task, promise: tell("begin", [task, promise]),
            )
        except ConfigError as error:
            tell("problem", str(error))
        else:
            tell("end", None)
    os._exit(0)


if __name__ == "__main__":
    main()
