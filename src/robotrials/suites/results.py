"""The results of suites, a line for each group of tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Row = tuple[str, str, str, str, str, str]


def rows_of(name: str, folder: Path) -> list[Row]:
    """Lines for the run in ``folder``: one overall, and one a group where it has several. A run that has written no
    results is a line that says so."""
    try:
        info = json.loads((folder / "eval_info.json").read_text(encoding="utf-8"))
        groups: dict[str, Any] = info["per_group"]
        rows = [_row(name, info["overall"])]
        return rows + ([_row(f"  {group}", figures) for group, figures in groups.items()] if len(groups) > 1 else [])
    except (OSError, ValueError, KeyError):
        return [(name, "no results", "", "", "", "")]


def _row(name: str, figures: dict[str, Any]) -> Row:
    rate, interval = figures.get("pc_success"), figures.get("pc_success_ci95")
    n, errors, planned = figures.get("n_episodes", 0), figures.get("n_errors", 0), figures.get("n_planned")
    aside = figures.get("n_out_of_order", 0)
    missing = max(0, planned - n - errors - aside) if planned is not None else 0
    return (
        name,
        "–" if rate is None else f"{rate:.1f} %",
        "–" if not interval else f"{interval[0]:.1f} – {interval[1]:.1f}",
        f"{n:,}",
        f"{errors:,}",
        f"{missing:,}",
    )
