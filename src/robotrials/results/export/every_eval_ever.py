"""A run as an aggregate record of Every Eval Ever (schema 0.3.0, package every-eval-ever 0.3.0).

The aggregate alone: that schema's rows for single samples describe text, not episodes of a robot.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from pathlib import PurePosixPath
from typing import Any

from robotrials.errors import ConfigError
from robotrials.results.export.eval_info import interval_words
from robotrials.results.reopened import RunFigures
from robotrials.results.summary import Rates
from robotrials.version import __version__

SCHEMA_VERSION = "0.3.0"
_DESCRIPTION = (
    "Share of finished episodes that the simulator reports as successful; tasks weigh the same. "
    "Episodes that ended in an error are neither success nor failure."
)
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_NOT_PORTABLE = re.compile(r"[^A-Za-z0-9._-]")


def aggregate(run: RunFigures, model_id: str | None = None, organization: str = "unknown") -> dict[str, Any]:
    """The record: success rates over all, per suite and per task, each with its interval; nothing that has no rate.

    ``model_id`` is ``developer/model`` (None: the policy's Hub name, or ``local/<name>``), ``organization`` who
    evaluated.

    Raises:
        ConfigError: no episode has finished, or ``model_id`` is not of that form.
    """
    overall = run.summary.overall
    if overall.rate is None:
        raise ConfigError(f"{run.path}: no episode has finished, so there is no result to export")
    model = model_id or _model_id(run.policy)
    if not _HUB_NAME.fullmatch(model):
        raise ConfigError(f"--model_id must be developer/model, got {model!r}")
    started = min((s["started_at"] for s in run.described.get("sessions", ())), default=0.0)
    policy = run.config["policy"]
    details = {
        "deployment_type": "self_deployed",
        "model_availability": "unknown",
        "policy_type": str(policy.get("type")),
        **{f"policy.{key}": str(value) for key, value in policy.get("options", {}).items()},
    }
    suites = [figures for suite in run.summary.suites for figures in (suite, *suite.tasks)]
    named = [("overall", overall)] + [(_name(run, figures), figures) for figures in suites]
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{run.env}/{model}/{started:.3f}",
        "evaluation_timestamp": f"{started:.3f}",
        "retrieved_timestamp": f"{started:.3f}",
        "source_metadata": {
            "source_name": "robotrials",
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "robotrials",
            "version": str(run.described.get("identity", {}).get("robotrials", __version__)),
        },
        "model_info": {"name": run.policy, "id": model, "additional_details": details},
        "evaluation_results": [_result(run, name, figures) for name, figures in named if figures.rate is not None],
    }


def relative_path(run: RunFigures, record: dict[str, Any]) -> PurePosixPath:
    """``data/<benchmark>/<developer>/<model>/<uuid4>.json``: where a collection keeps it. The same run has the same
    name."""
    developer, model = record["model_info"]["id"].split("/")
    identity = str(run.described.get("identity_hash", "")) + record["evaluation_id"]
    number = uuid.UUID(bytes=hashlib.sha256(identity.encode()).digest()[:16], version=4)
    return PurePosixPath("data", _portable(run.env), developer, model, f"{number}.json")


def _model_id(policy: str) -> str:
    if _HUB_NAME.fullmatch(policy):
        return policy
    telling = [
        p for p in PurePosixPath(policy).parts if not re.fullmatch(r"/|pretrained_model|checkpoints?|last|\d+", p)
    ]
    return f"local/{_portable(telling[-1] if telling else policy)}"


def _portable(name: str) -> str:
    return _NOT_PORTABLE.sub("-", name.rpartition(":")[2]).strip(".-") or "policy"


def _name(run: RunFigures, figures: Rates) -> str:
    """A suite goes by its name, a task by both."""
    for suite in run.summary.suites:
        if figures is suite:
            return suite.name
        if any(figures is task for task in suite.tasks):
            return f"{suite.name}/{figures.name}"
    return figures.name


def _result(run: RunFigures, name: str, figures: Rates) -> dict[str, Any]:
    assert figures.rate is not None
    assert figures.interval is not None
    config = run.config
    low, high = figures.interval
    return {
        "evaluation_result_id": f"{name}/success_rate",
        "evaluation_name": name,
        "source_data": {"dataset_name": run.env, "source_type": "other"},
        "metric_config": {
            "evaluation_description": _DESCRIPTION,
            "metric_id": "success_rate",
            "metric_name": "Success rate",
            "metric_kind": "success_rate",
            "metric_unit": "proportion",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
        },
        "score_details": {
            "score": figures.rate,
            "details": {
                "n_success": str(figures.n_success),
                "n_finished": str(figures.n_finished),
                "n_errors": str(figures.n_errors),
                "n_planned": str(figures.n_planned),
                **({"n_out_of_order": str(figures.n_out_of_order)} if figures.n_out_of_order else {}),
                "base_seed": str(config.get("seed")),
            },
            "uncertainty": {
                "confidence_interval": {
                    "lower": low,
                    "upper": high,
                    "confidence_level": 0.95,
                    "method": interval_words(run.summary.method),
                },
                "num_samples": figures.n_finished,
            },
        },
    }
