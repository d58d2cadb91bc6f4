"""``robotrials tune``: what holds a run back, and how to lay it out, measured on its policy and simulator."""

from __future__ import annotations

import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robotrials.cli import draw, output
from robotrials.errors import ConfigError
from robotrials.plan.options import coerce

if TYPE_CHECKING:
    from robotrials.run.prepare import PreparedRun
    from robotrials.tuning.advise import Advice
    from robotrials.tuning.costs import MeasuredCosts
    from robotrials.tuning.model import Prediction, RunLayout

HELP = """\
usage: robotrials tune [--seconds=60] [--json] FLAGS OF robotrials eval

Measure a run before it is made: the policy on batches, then workers that play
its own tasks with it, all cores at once. Prints what everything takes, what
holds the run back, how many workers and policy servers to use, the batch, what
draws, how long the run will take, and the command to paste.

  --seconds=S   for how long to measure, besides loading [60]
  --json        all figures as one JSON object

The flags are those of robotrials eval. Layout flags among them
(--eval.batch_size, --eval.policy_servers) are what the advice is compared with.
Measure while nothing else runs: busy cores are measured as slow ones. No run is
begun. What was measured is remembered: later runs of this policy and benchmark
on this machine that leave --eval.batch_size at 0 are laid out by it.

Exit status
  0  measured
  1  a flag is not right, or the policy or simulator cannot be used
"""

_LAYOUT = ("eval.batch_size", "eval.instance_count", "eval.policy_servers", "policy.max_batch", "render.device")


def run(argv: Sequence[str]) -> int:
    """Parse, measure, advise, print; returns the exit status."""
    if any(word in ("--help", "-h") for word in argv):
        output.text(HELP)
        return 0
    began = time.monotonic()
    words, seconds, as_json = _own_flags(argv)
    from robotrials.cli.flags import parse_eval

    call = parse_eval(words)
    from robotrials.run.prepare import prepare
    from robotrials.tuning.advise import advise
    from robotrials.tuning.measure import measure
    from robotrials.tuning.model import RunLayout
    from robotrials.tuning.remembered import plan_tasks, remember

    with _somewhere() as folder:
        prepared = prepare(replace(call.config, output_dir=folder / "run"))
        planned_s = time.monotonic() - began
        figures = measure(prepared, seconds, lambda text: output.line(f"measuring {text}"), planned_s)
    usual = RunLayout(prepared.n_workers, prepared.n_servers)
    advice = advise(figures, plan_tasks(prepared), usual)
    command = command_for(words, prepared, figures, advice)
    try:
        remember(prepared, figures)
    except OSError as error:
        output.note(f"not remembered for later runs: {error}")
    if as_json:
        from robotrials.cli.listing import print_json

        print_json(as_object(prepared, figures, advice, command))
    else:
        _show(prepared, figures, advice, command)
    return 0


def _own_flags(argv: Sequence[str]) -> tuple[list[str], float, bool]:
    """What is left for ``parse_eval``, and our own flags.

    Raises:
        ConfigError: ``--seconds`` is no positive number.
    """
    rest: list[str] = []
    seconds, as_json, words = 60.0, False, list(argv)
    while words:
        word = words.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if word.startswith("--") and name == "json":
            as_json = coerce(value or "true", bool, "--json")
        elif word.startswith("--") and name == "seconds":
            seconds = coerce(value if equals else (words.pop(0) if words else ""), float, "--seconds")
        else:
            rest.append(word)
    if not 1.0 <= seconds <= 3600.0:
        raise ConfigError(f"--seconds must be between 1 and 3600, got {seconds:g}")
    return rest, seconds, as_json


@contextmanager
def _somewhere() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="robotrials-tune-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def command_for(words: Sequence[str], prepared: PreparedRun, figures: MeasuredCosts, advice: Advice) -> str:
    """``robotrials eval`` with the flags that were given, and the layout that is advised."""
    layout = advice.best.layout
    kept, rest = [], list(words)
    while rest:
        word = rest.pop(0)
        name, equals, _ = word.removeprefix("--").partition("=")
        if name.replace("-", "_") in (*_LAYOUT, "render_device"):
            if not equals and rest and not rest[0].startswith("--"):
                rest.pop(0)
            continue
        kept.append(word)
    kept.append(f"--eval.batch_size={layout.workers}")
    if layout.servers:
        kept.append(f"--eval.policy_servers={layout.servers}")
    batch = layout.max_batch or prepared.config.policy.options.get("max_batch")
    if batch:
        kept.append(f"--policy.max_batch={batch}")
    device = _device(prepared, figures)
    if prepared.config.render.device != "auto" or figures.rendering:
        kept.append(f"--render.device={device}")
    return shlex.join(["robotrials", "eval", *kept])


def _device(prepared: PreparedRun, figures: MeasuredCosts) -> str:
    """What is to draw: the faster one where both were measured."""
    if figures.rendering:
        return min(figures.rendering, key=lambda name: figures.rendering[name])
    rendering = prepared.rendering
    return rendering.device if rendering and rendering.device in ("gpu", "cpu") else prepared.config.render.device


def as_object(prepared: PreparedRun, figures: MeasuredCosts, advice: Advice, command: str) -> dict[str, Any]:
    """All of it, as JSON values; seconds and bytes."""
    from dataclasses import asdict

    content = asdict(figures)
    if figures.memory == float("inf"):
        content["memory"] = None
    return {
        "measured": content,
        "advice": _prediction(advice.best),
        "without_advice": _prediction(advice.usual),
        "bottleneck": advice.bottleneck,
        "why": advice.why,
        "render_device": _device(prepared, figures),
        "episodes": len(prepared.plan),
        "command": command,
    }


def _prediction(prediction: Prediction) -> dict[str, Any]:
    return {
        "workers": prediction.layout.workers,
        "policy_servers": prediction.layout.servers,
        "max_batch": prediction.layout.max_batch,
        "wall_s": prediction.wall_s,
        "start_s": prediction.start_s,
        "cores_busy": prediction.pace.cores_busy,
        "servers_busy": prediction.pace.servers_busy,
        "rows_a_pass": prediction.pace.rows,
        "memory": prediction.memory,
    }


def _show(prepared: PreparedRun, figures: MeasuredCosts, advice: Advice, command: str) -> None:
    from rich.text import Text

    from robotrials.cli.facts import fact_lines
    from robotrials.cli.listing import show

    best, usual = advice.best, advice.usual
    bottleneck = f"{advice.bottleneck}: {advice.why}"
    facts: list[tuple[str, str | Text]] = [
        ("Bottleneck", Text(bottleneck, "bold")),
        ("Workers", _layout_words(best.layout)),
        ("Memory", f"{_mb(best.memory)} of {_mb(figures.memory)} that are free"),
        ("Rendering", _rendering_words(prepared, figures)),
        ("Wall time", f"{draw.duration(best.wall_s)} for {draw.count(len(prepared.plan), 'episode')}"),
        ("As it was", f"{draw.duration(usual.wall_s)} with {_layout_words(usual.layout)}"),
    ]
    head = [Text("Measured", "bold"), *fact_lines(_measured(figures))]
    show([*head, Text(), Text("Advice", "bold"), *fact_lines(facts), Text(), Text(command)])
    for words in notes(prepared, figures, best.layout):
        output.note(words)


def _measured(figures: MeasuredCosts) -> list[tuple[str, str]]:
    facts = [
        ("Cores", str(figures.cores)),
        ("Start-up", f"{figures.start_s:.1f} s a worker, {figures.build_s:.2f} s a task"),
    ]
    for name, cost in list(figures.costs.items())[:8]:
        length = f"{cost.steps:.0f} steps" + (" (none ended sooner)" if cost.is_cut else "")
        words = f"reset {_ms(cost.reset)}, step {_ms(cost.step)}, {length}"
        words += f"; a look every {cost.steps_a_look:.3g} steps: render {_ms(cost.render)}"
        policy = (
            f", policy {_ms(cost.infer)}"
            if figures.server is None
            else f", to the server and back {_ms(cost.transfer)}"
        )
        words += policy
        words += f"; film {_ms(cost.film)} a step" if cost.film else ""
        facts.append((name[:10], words))
    facts.append(("Worker", _mb(figures.worker_memory) + _gpu_words(figures.worker_gpu_memory)))
    if figures.server is not None:
        server = figures.server
        passes = ", ".join(f"{rows}: {_ms(taken)}" for rows, taken in sorted(server.infer.items()))
        facts.append(("Policy", f"loads in {server.load_s:.1f} s, {_mb(server.memory)}{_gpu_words(server.gpu_memory)}"))
        facts.append(("Pass", f"by rows: {passes}"))
        if server.other:
            others = ", ".join(f"{size}: {_ms(taken)}" for size, taken in sorted(server.other.items()))
            facts.append(("", f"full, by --policy.max_batch: {others}"))
    return facts


def notes(prepared: PreparedRun, figures: MeasuredCosts, layout: RunLayout) -> list[str]:
    """What the advice does not know, or what following it changes."""
    found = []
    if layout.max_batch is not None and prepared.config.eval.exact:
        found.append(
            "--policy.max_batch is part of what a run is: its outcomes may differ in the last bits from before"
        )
    if len(figures.rendering) > 1:
        found.append("--render.device is part of what a run is: a GPU's pictures are not the processor's, bit by bit")
    if prepared.config.eval.dataset is not None:
        found.append("--eval.dataset is not in the prediction: every step is then drawn and written")
    if figures.elsewhere:
        found.append("the policy's own server is not ours to measure: it is taken to answer many as fast as one")
    if prepared.stop is not None:
        found.append("--until may stop the run sooner")
    return found


def _layout_words(layout: RunLayout) -> str:
    words = draw.count(layout.workers, "worker")
    if layout.servers:
        words += f", {draw.count(layout.servers, 'policy server')}"
    return words + (f", batches of {layout.max_batch}" if layout.max_batch else "")


def _rendering_words(prepared: PreparedRun, figures: MeasuredCosts) -> str:
    if figures.rendering:
        each = ", ".join(f"{name} {_ms(taken)} a look" for name, taken in figures.rendering.items())
        return f"{_device(prepared, figures)} ({each})"
    return prepared.rendering.words if prepared.rendering else "the benchmark's own"


def _gpu_words(used: float | None) -> str:
    return f", {_mb(used)} on the GPU" if used is not None else ""


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def _mb(size: float) -> str:
    return "unknown memory" if size == float("inf") else f"{size / 2**20:,.0f} MB"
