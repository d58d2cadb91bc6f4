"""``robotrials push DIR``, and ``robotrials eval --push_to_hub=true``: put a finished run on the Hub."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robotrials.cli import output
from robotrials.cli.positionals import Words, split_words
from robotrials.errors import ConfigError

if TYPE_CHECKING:  # `eval` reads its flags before anything large is imported
    from robotrials.reporting.hub import PushOptions

HELP = """\
usage: robotrials push DIR --repo_id=USER/MODEL [--benchmark_dataset_id=ID] ...

Put a finished run on the Hub: eval_info.json, eval_config.json, metrics.json
and the videos under eval/<env>/, and the scores as official evaluation results.
In somebody else's repository this opens a pull request. A partial run is
refused.
`robotrials eval --push_to_hub=true` takes the same flags, not in its file.
An earlier result of the same benchmark is replaced, videos and all; it says so.

  --repo_id=USER/MODEL            default: where the policy came from
  --benchmark_dataset_id=ID       the benchmark's dataset: writes .eval_results/
  --benchmark_task_id=NAME        one score over all tasks; default: one a suite
  --eval_result_source_url=URL    default: the artifacts in that repository
  --eval_result_notes=TEXT        before n, interval, seeds and versions, which
                                  go into the notes by themselves
  --model_index                   also the model card's older model-index
  --videos=false                  leave the videos out
  --create_pr=BOOL                default: where the repository is not yours
  --dry_run=FOLDER                write the same files there; no network

Log in with `hf auth login` or HF_TOKEN. Needs robotrials[hub].
Exit status: 0, or 1 when it was refused; then nothing was published.
"""
_TEXTS = {
    "repo_id": "repo_id",
    "benchmark_dataset_id": "dataset_id",
    "benchmark_task_id": "task_id",
    "eval_result_source_url": "source_url",
    "eval_result_notes": "notes",
}
"""Flag to option."""
_TRUTHS = ("model_index", "videos", "create_pr")
FLAGS = (*_TEXTS, *_TRUTHS)
_BARE = {"model_index": "true", "create_pr": "true"}


def run(argv: Sequence[str]) -> int:
    """Parse, push, say where; returns the exit status."""
    if any(word in ("--help", "-h") for word in argv):
        output.text(HELP)
        return 0
    directory, options = parse_push(argv)
    publish(directory, options)
    return 0


def parse_push(argv: Sequence[str]) -> tuple[Path, PushOptions]:
    """The run and the options.

    Raises:
        ConfigError: not one directory, an unknown flag, or a value that cannot be meant.
    """
    words = split_words(argv, "push", {*FLAGS, "dry_run"}, bare={**_BARE, "dry_run": "hub_preview"})
    if len(words.plain) != 1:
        raise ConfigError(f"push takes one run directory: robotrials push DIR; got {len(words.plain)}")
    return Path(words.plain[0]).expanduser(), _options(words)


def _options(words: Words) -> PushOptions:
    from robotrials.reporting.hub import PushOptions

    given: dict[str, Any] = {option: words.flags[flag] for flag, option in _TEXTS.items() if flag in words.flags}
    given.update({flag: words.truth(flag) for flag in _TRUTHS if flag in words.flags})
    if "dry_run" in words.flags:
        given["dry_run"] = Path(words.flags["dry_run"]).expanduser()
    return PushOptions(**given)


def take_from_eval(argv: Sequence[str]) -> tuple[list[str], PushOptions | None]:
    """The words of ``robotrials eval`` without those of a push, and its options; None without ``--push_to_hub``.

    Raises:
        ConfigError: flags of a push without ``--push_to_hub=true``.
    """
    ours, rest = [], []
    words = list(argv)
    while words:
        word = words.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if word.startswith("--") and name.replace("-", "_") == "config_path":
            _refuse_in_file(value if equals else next(iter(words), ""))
        if not word.startswith("--") or name.replace("-", "_") not in (*FLAGS, "push_to_hub"):
            rest.append(word)
            continue
        bare = name.replace("-", "_") in (*_BARE, "push_to_hub", "videos")
        if not equals and words and (not bare or words[0].lower() in ("true", "false")):
            word = f"{word}={words.pop(0)}"
        ours.append(word)
    flags = split_words(ours, "eval", {*FLAGS, "push_to_hub"}, bare={**_BARE, "push_to_hub": "true"})
    if not flags.truth("push_to_hub"):
        unused = [flag for flag in flags.flags if flag != "push_to_hub"]
        if unused:
            raise ConfigError(f"--{unused[0]} means something only with --push_to_hub=true")
        return rest, None
    return rest, _options(flags)


def _refuse_in_file(file: str) -> None:
    """A file says what is run; who publishes it says so himself."""
    from robotrials.cli.config_file import read_config_file

    path = Path(file).expanduser()
    if not path.is_file():
        return  # `eval` says so
    for name in read_config_file(path):
        if name in (*FLAGS, "push_to_hub"):
            raise ConfigError(
                f"{path}: {name} cannot stand in a file, as it publishes: write --{name}=... on the command line"
            )


def publish(directory: Path, options: PushOptions) -> None:
    """Push and say what was done.

    Raises:
        ConfigError: it was refused, here or by the Hub.
    """
    from robotrials.reporting.hub import ARTIFACTS_ONLY, push

    pushed = push(directory, options)
    for score in pushed.scores:
        output.text(f"{score.task_id}  {score.percent:.1f} %  [{score.low:.1f}, {score.high:.1f}]\n")
    if pushed.replaced is not None:
        output.note(pushed.replaced)
    what = "pull request" if pushed.is_pull_request else "folder" if options.dry_run else "commit"
    output.text(f"{len(pushed.files)} files, {what}: {pushed.address}\n")
    if not options.dataset_id:
        output.note(ARTIFACTS_ONLY)
