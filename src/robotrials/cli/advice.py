"""What a finished run's table adds when there were failures: where they gather, and what to look at when all failed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.text import Text

from robotrials.results.compare.diagnosis import failure_clusters, look_at_first
from robotrials.results.ledger import Ledger
from robotrials.results.rundir import load_run_json
from robotrials.results.stored import read_run
from robotrials.run.execute import RunResult
from robotrials.run.prepare import PreparedRun


def advice_lines(prepared: PreparedRun, result: RunResult) -> list[tuple[str, str | Text]]:
    """Lines for the table under the results; none without a failure, or where there is no ledger."""
    overall = result.summary.overall
    ledger_path = result.output_dir / "ledger.sqlite"
    if overall.n_success == overall.n_finished or not ledger_path.exists():
        return []
    episodes = read_run(result.output_dir).episodes
    lines: list[tuple[str, str | Text]] = [
        ("Failures" if i == 0 else "", words) for i, words in enumerate(failure_clusters(episodes))
    ]
    if overall.n_success or overall.n_errors:
        return lines
    with Ledger.open(ledger_path, read_only=True) as ledger:
        signals = list(ledger.signals().values())
    config = prepared.config
    policy = {
        **(load_run_json(result.output_dir).get("policy") or {}),
        "checkpoint_n_action_steps": checkpoint_steps(config.policy.path),
    }
    found = look_at_first(prepared.plan.tasks, episodes, signals, policy, config.policy.options, config.rename_map)
    if found:
        lines.append(
            (f"0 of {overall.n_finished:,}", Text("Nothing succeeded and nothing erred. Look at first:", "bold"))
        )
    for what, words in found:
        lines.append(("", Text(f"{what}: {words.removeprefix('! ')}", "bold red" if words.startswith("!") else "")))
    return lines


def checkpoint_steps(path: str | None) -> int | None:
    """The ``n_action_steps`` that a LeRobot checkpoint's config.json holds; None where it does not say."""
    if path is None:
        return None
    try:
        content: Any = json.loads((Path(path) / "config.json").read_bytes())
    except (OSError, ValueError):
        return None
    steps = content.get("n_action_steps") if isinstance(content, dict) else None
    return steps if isinstance(steps, int) else None
