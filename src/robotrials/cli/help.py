"""The help pages: made from the dataclasses the flags are read into, so that they cannot drift from them."""

from __future__ import annotations

import dataclasses
import textwrap
from pathlib import Path
from typing import Any

from robotrials.plan.config import SETTINGS, RunConfig, WandbSettings

WIDTH = 80
_COLUMN = 25

OVERVIEW = """\
usage: robotrials VERB ...

Evaluate robot policies on simulation benchmarks: exact, fast, crash-proof, with
error bars.

Verbs
  eval      evaluate a policy on a benchmark: robotrials eval --help
  resume    go on with a run that stopped: robotrials resume DIR
  bench     install, list and remove benchmarks: robotrials bench --help
  tune      how many workers, how long a run will take: robotrials tune --help
  check-env does a benchmark keep its promises: robotrials check-env NAME
  doctor    what a simulator would trip over here: robotrials doctor
  compare   which run is better, and how sure: robotrials compare --help
  metrics   metrics.json, JUnit and a summary for CI: robotrials metrics --help
  export    episodes as Parquet, CSV, JSON: robotrials export --help
  merge     make one run out of shards: robotrials merge --help
  worker    join a run from this machine or another: robotrials worker --help
  serve     put a policy behind an address: robotrials serve --help
  show      the table of a run again, or to paste: robotrials show RUN
  report    one HTML page of runs, with videos: robotrials report --help
  leaderboard
            models by suites, ranked, with ties: robotrials leaderboard --help
  push      put a finished run on the Hub: robotrials push --help
  dataset   look into a LeRobot dataset: robotrials dataset analyze --help
  suite     train on a suite and evaluate on it: robotrials suite --help
  watch     evaluate the checkpoints of a training: robotrials watch --help
  completion
            Tab in bash, zsh and fish: robotrials completion --help

  --help    this page, or the page of a verb
  --version, -V
  --debug   show the traceback of an error

Try
  robotrials eval --policy.type=expert --env.type=metaworld \\
      --env.task=reach-v3 --eval.n_episodes=10
"""

EXIT_STATUS = """\
Exit status
  0  complete: every episode of the plan has an outcome
  1  configuration error: a flag, a file or an installation is not right
  2  finished with errors, or partial (also after Ctrl-C or SIGTERM)
"""

EXAMPLES = """\
Examples
  The scripted experts on two tasks, videos of every failure:
    robotrials eval --policy.type=expert --env.type=metaworld \\
        --env.task=reach-v3,drawer-open-v3 --eval.record=failures
  A network of your own on a whole group, in a directory to come back to:
    robotrials eval --policy.path=policy.onnx --env.type=metaworld \\
        --env.task=easy --eval.n_episodes=20 --output_dir=runs/easy
  A class of yours, settings from a file, one of them changed; first only look:
    robotrials eval --config_path=run.yaml --policy.type=my_policy:MyPolicy \\
        --eval.n_episodes=5 --dry_run
"""

INTRODUCTION = """\
usage: robotrials eval --policy.type=NAME --env.type=NAME --env.task=TASKS ...

Evaluate a policy. Every episode is written down when it ends: a run that stops
goes on with `robotrials resume DIR`, or with the same command and --output_dir.
Flags are written --name=value or --name value; the default is in [brackets].
With --env.type=NAME before it, --help also lists the options of that benchmark.
"""

CONFIG_PATH = "YAML file with these names, nested or dotted; flags win over it"
PUSH = "when done, put it on the Hub; its flags: robotrials push --help"
DRY_RUN = "print the plan (tasks, seeds, limits, workers); start nothing"

PYTHON = "another interpreter, with robotrials installed, that runs the policy"

_METAVARS = {
    "int": "N",
    "float": "X",
    "bool": "BOOL",
    "str": "NAME",
    "Path": "DIR",
    "Mapping": "{A: B}",
    "eval.record": "WHICH",
    "eval.dataset_cameras": "WHICH",
    "eval.recording_repo_id": "REPO",
    "eval.step_timeout": "SECONDS",
    "env.task": "TASKS",
}
"""What a value is called: by its type, or by its flag."""
_DATASET = ("dataset", "dataset_cameras", "recording", "recording_repo_id", "recording_private")
_WRITES = (
    *("eval.record", "eval.record_fps", "output_dir", "job_name", "allow_mixed"),
    *(f"eval.{name}" for name in _DATASET),
    *(f"wandb.{field.name}" for field in dataclasses.fields(WandbSettings)),
)
_WHAT = ("eval.n_episodes", "seed", "rename_map")


def eval_page(env_type: str = "") -> str:
    """The page of ``robotrials eval --help``: at most 80 columns, ends with a newline. ``env_type`` adds its options.

    Raises:
        ConfigError: ``env_type`` is given and is no benchmark.
    """
    from robotrials.benchmarks import registry as benchmarks
    from robotrials.policies import registry as policies

    fields = flag_rows()
    policy_types = ", ".join(policies.names()) + "; or a class of yours: module:Class"
    what = [
        ("--policy.type=NAME", policy_types),
        ("--policy.path=PATH", "weights, a checkpoint, or a file of actions"),
        ("--policy.OPTION=VALUE", "an option of that policy; a wrong name lists them"),
        ("--env.type=NAME", ", ".join(benchmarks.names())),
        ("--env.task=TASKS", "tasks or groups of tasks, with commas; a wrong name lists them"),
        ("--env.OPTION=VALUE", "an option of that benchmark; a wrong name lists them"),
        *(fields.pop(name) for name in _WHAT),
    ]
    write = [*(fields.pop(name) for name in _WRITES), ("--push_to_hub=BOOL", PUSH)]
    python = [("--policy.python=PATH", PYTHON), ("--env.python=PATH", "the same for the benchmark")]
    run = [*fields.values(), *python, ("--config_path=FILE", CONFIG_PATH), ("--dry_run", DRY_RUN)]
    groups = [("What to evaluate", what), ("How to run", run), ("What to write", write)]
    if env_type:
        options = _rows(benchmarks.benchmark_class(env_type).Config, "env.")
        groups.insert(
            1, (f"Options of --env.type={env_type}", [row for name, row in options.items() if name != "env.task"])
        )
        what[4] = options.get("env.task", what[4])
    parts = [INTRODUCTION, *(_group(title, rows) for title, rows in groups), EXAMPLES, EXIT_STATUS]
    return "\n".join(parts)


def flag_rows() -> dict[str, tuple[str, str]]:
    """For every flag that is a dataclass field, by dotted name: how it is written, and its help with the default."""
    rows: dict[str, tuple[str, str]] = {}
    for section, settings in SETTINGS.items():
        rows |= _rows(settings, f"{section}.")
    return rows | _rows(RunConfig, "")


def _rows(cls: Any, prefix: str) -> dict[str, tuple[str, str]]:
    """The fields of one dataclass; those without a help line are sections, not flags."""
    rows: dict[str, tuple[str, str]] = {}
    for field in dataclasses.fields(cls):
        if help_line := field.metadata.get("help"):
            name = prefix + field.name
            rows[name] = (f"--{name}={_metavar(name, field)}", help_line + _default(field))
    return rows


def _metavar(name: str, field: dataclasses.Field[Any]) -> str:
    choices = field.metadata.get("choices")
    if choices:
        return "|".join(map(str, choices))
    kind = str(field.type).split("[")[0].split("|")[0].strip()
    return str(field.metadata.get("metavar") or _METAVARS.get(name) or _METAVARS.get(kind, "VALUE"))


def _default(field: dataclasses.Field[Any]) -> str:
    value = field.default
    if value == "":
        return ""
    if isinstance(value, bool):
        return f" [{str(value).lower()}]"
    if isinstance(value, (int, float, str, Path)):
        return f" [{value:g}]" if isinstance(value, float) else f" [{value}]"
    return ""


def _group(title: str, rows: list[tuple[str, str]]) -> str:
    return "\n".join([title, *(_row(flag, text) for flag, text in rows), ""])


def _row(flag: str, text: str) -> str:
    """Flag left, help right; a flag too long for its column has its help on the next line."""
    indent = " " * (_COLUMN + 2)
    lines = textwrap.wrap(text, WIDTH - len(indent), break_on_hyphens=False, break_long_words=False)
    head = f"  {flag}"
    if len(flag) >= _COLUMN:
        return "\n".join([head, *(indent + line for line in lines)])
    return "\n".join([head.ljust(len(indent)) + lines[0], *(indent + line for line in lines[1:])])
