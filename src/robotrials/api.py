"""``robotrials.evaluate``: an evaluation from Python, in a notebook or inside a training loop."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robotrials.benchmarks.base import Benchmark
from robotrials.errors import ConfigError
from robotrials.plan.config import EnvChoice, EvalSettings, PolicyChoice, RunConfig, StatsSettings
from robotrials.plan.import_path import is_import_path
from robotrials.plan.options import build, coerce
from robotrials.policies.base import Policy
from robotrials.results.summary import Rates, RunSummary


@dataclass(frozen=True)
class Evaluation:
    """What came of it. The run directory holds everything else: videos, ledger, ``eval_info.json``, the report."""

    directory: Path
    summary: RunSummary
    complete: bool
    """Every episode has an outcome, and none erred."""
    errors: tuple[str, ...] = ()
    """The messages of episodes that erred, most frequent first."""

    @property
    def rate(self) -> float | None:
        """Success, 0 to 1, the mean over tasks; None when nothing has finished."""
        return self.summary.overall.rate

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of ``rate``."""
        return self.summary.overall.interval

    @property
    def tasks(self) -> dict[str, Rates]:
        """The figures of each task, by ``suite/task``."""
        return {f"{suite.name}/{task.name}": task for suite in self.summary.suites for task in suite.tasks}

    def frame(self, kind: str = "auto") -> Any:
        """One row an episode; ``kind`` as in ``robotrials.load_run``."""
        from robotrials.results.export.frame import load_run

        return load_run(self.directory, kind)

    def __str__(self) -> str:
        overall = self.summary.overall
        if overall.rate is None or overall.interval is None:
            why = self.summary.out_of_order or "no episode has finished"
            return f"{why}, {overall.n_errors} errors; {self.directory}"
        low, high = overall.interval
        words = f"success {100 * overall.rate:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
        return f"{words}, {overall.n_success}/{overall.n_finished}, {overall.n_errors} errors; {self.directory}"


def evaluate(
    policy: str | Path | type[Policy] | Policy,
    env: str | type[Benchmark],
    *,
    task: str = "",
    n_episodes: int = 50,
    seed: int | None = 1000,
    output_dir: str | Path | None = None,
    env_options: Mapping[str, Any] | None = None,
    policy_options: Mapping[str, Any] | None = None,
    rename_map: Mapping[str, str] | None = None,
    progress: bool = False,
    interval: str = "wilson",
    until: str | None = None,
    **settings: Any,
) -> Evaluation:
    """Evaluate ``policy`` on ``env`` as ``robotrials eval`` does, and wait for it.

    ``policy``: a type (``"expert"``, ``"package.module:Class"``), a path or Hub name of weights, a ``Policy`` class,
    or a ``Policy`` object. An object, and a class that no other process could import (defined in a notebook, or in a
    function), acts in this process: workers send it their observations. So the policy that is being trained is
    evaluated as it is, on the device it lies on; only it must not be used elsewhere until the call returns. ``env``: a
    benchmark's type, import path or class. ``settings`` are the options of ``--eval.*`` (``batch_size``, ``record``,
    ...), ``env_options`` and ``policy_options`` those of ``--env.*`` and ``--policy.*``. ``until`` stops early, as
    ``--until`` does (``"width<=0.06"``, ``"vs=RUN"``). ``progress`` shows it on stderr.

    The directory of a finished or interrupted run is gone on with, as on the command line; without ``output_dir`` each
    call makes a new one. Ctrl-C ends it in order; ``complete`` is False then.

    Raises:
        ConfigError: something cannot be meant; nothing has run.
        ContractError: policy and benchmark do not fit.
    """
    from robotrials.run.execute import execute
    from robotrials.run.prepare import prepare
    from robotrials.tuning.remembered import laid_out

    if not isinstance(policy, (str, Path, type)) and not callable(getattr(policy, "act", None)):
        raise ConfigError(f"evaluate: policy is a type, a path, a Policy class or a Policy object; got {policy!r}")
    if not isinstance(env, (str, type)):
        raise ConfigError(f"evaluate: env is a benchmark's type, import path or class; got {env!r}")
    with _choice(policy, _options(policy_options, "policy_options")) as choice:
        config = RunConfig(
            policy=choice,
            env=EnvChoice(_env_type(env), {**({"task": task} if task else {}), **_options(env_options, "env_options")}),
            eval=build(EvalSettings, {"n_episodes": n_episodes, **settings}, "evaluate: "),
            seed=coerce(seed, int | None, "evaluate: seed"),
            output_dir=coerce(output_dir, Path | None, "evaluate: output_dir"),
            rename_map=_options(rename_map, "rename_map"),
            stats=build(StatsSettings, {"interval": interval}, "evaluate: "),
            until=coerce(until, str | None, "evaluate: until"),
        )
        with _observer(progress) as observer:
            prepared, _ = laid_out(prepare(config))
            result = execute(prepared, observer)
    return Evaluation(result.output_dir, result.summary, result.complete, tuple(result.failures))


def _options(given: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    made: dict[str, Any] = coerce({} if given is None else given, dict, f"evaluate: {name}")
    for key in made:
        if not isinstance(key, str):
            raise ConfigError(f"evaluate: {name} maps names to values, got {key!r} as a name")
    return made


@contextlib.contextmanager
def _choice(policy: str | Path | type[Policy] | Policy, options: dict[str, Any]) -> Iterator[PolicyChoice]:
    """How a worker reaches ``policy``: by name, or through this process while the block lasts."""
    if isinstance(policy, (str, Path)):
        yield _named(policy, options)
        return
    if isinstance(policy, type):
        name = _import_name(policy)
        if name is not None:
            yield PolicyChoice(name, None, options)
            return
        policy, options = policy(**options), {}
    if options:
        raise ConfigError("policy_options are for a policy that is yet to be made; this one is an object already")
    from robotrials.serving.in_process import serve_here

    with serve_here(policy) as place:
        yield PolicyChoice("remote", None, place)


def _named(policy: str | Path, options: dict[str, Any]) -> PolicyChoice:
    from robotrials.policies import registry

    text = str(policy)
    is_type = isinstance(policy, str) and (text in registry.names() or (is_import_path(text) and not _is_place(text)))
    return PolicyChoice(text, None, options) if is_type else PolicyChoice(options.pop("type", None), text, options)


def _is_place(text: str) -> bool:
    return text.startswith("builtin:")


def _env_type(env: str | type[Benchmark]) -> str:
    if isinstance(env, str):
        return env
    name = _import_name(env)
    if name is None:
        raise ConfigError(
            f"env={env.__qualname__}: workers are other processes and cannot import it from here; put the class at the "
            "top level of a file"
        )
    return name


def _import_name(cls: type) -> str | None:
    """``module:Class`` or ``file.py:Class``; None for a class that only this process has."""
    if "<locals>" in cls.__qualname__ or "." in cls.__qualname__:
        return None
    if cls.__module__ != "__main__":
        return f"{cls.__module__}:{cls.__qualname__}"
    file = getattr(sys.modules["__main__"], "__file__", None)
    return f"{Path(file).absolute()}:{cls.__qualname__}" if file and Path(file).is_file() else None


@contextlib.contextmanager
def _observer(progress: bool) -> Iterator[Any]:
    if not progress:
        from robotrials.engine.observer import SilentObserver

        yield SilentObserver()
        return
    from robotrials.cli.display import Heading, open_display

    with open_display(Heading("robotrials.evaluate")) as observer:
        yield observer
