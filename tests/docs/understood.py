"""Whether the real command line understands a command: what it names exists. Nothing is started."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import tomllib

from robotrials.benchmarks import registry as benchmarks
from robotrials.cli import main as cli
from robotrials.cli.flags import check_names
from robotrials.errors import ConfigError
from robotrials.plan.config import EnvChoice
from robotrials.plan.import_path import is_import_path
from robotrials.plan.options import build
from robotrials.policies import registry as policies
from tests.docs.pages import ROOT

_OTHERS = (
    "uv git hf ssh curl cd export source sbatch squeue scancel lerobot-eval lerobot-train vla-eval ray docker podman "
    "apptainer apt-get sudo mkdir"
)
FOREIGN = frozenset(_OTHERS.split())
"""Programs of others that pages may name; any other first word must be one of ours, and is checked."""

LISTED = frozenset(
    {"metaworld", "pusht", "aloha", "libero", "maniskill", "robosuite", "gymnasium_robotics", "robotwin", "robomme"}
)
"""Benchmarks that list their tasks without a simulator, a checkout or a server: names of tasks are checked, too."""

_MAY_LACK = frozenset({"eval", "serve", "suite", "watch"})
"""Verbs whose commands, within a sentence, need not say everything."""

_ANY = re.compile(r"^(\.\.\.|[A-Z][A-Z_/]*[0-9]?|.*\.\.\..*)$")
"""A word that stands for another: DIR, RUN, SUITE, ..."""


class NotUnderstoodError(AssertionError):
    """Raised when a command names what does not exist."""


def check(words: Sequence[str], loosely: bool = False) -> None:
    """Refuse a command that the program it names would refuse. ``...`` stands for whatever else is needed.

    ``loosely``: it stands within a sentence, and may leave out what matters nothing there.

    Raises:
        ConfigError: the command line of robotrials refuses it.
        NotUnderstoodError: another program, target, script or extra that does not exist.
    """
    program, rest = words[0], list(words[1:])
    if program == "robotrials" or words[:3] == ("python", "-m", "robotrials"):
        _robotrials(rest if program == "robotrials" else rest[2:], loosely)
    elif program == "make":
        _make(rest)
    elif program in ("pip", "python", "python3") and "install" in rest:
        _extras(rest)
    elif program in ("python", "python3"):
        _script(rest)
    elif "/" in program:
        _script(words)
    elif program not in FOREIGN:
        raise NotUnderstoodError(f"{program} is no program that these pages may name")
    else:
        _extras(rest)


def _make(targets: Sequence[str]) -> None:
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for target in targets:
        if "=" not in target and target not in known:
            raise NotUnderstoodError(f"the Makefile has no target {target}")


def _extras(words: Sequence[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for word in words:
        for extras in re.findall(r"robotrials\[([\w,-]+)\]", word):
            for extra in extras.split(","):
                if extra not in project["optional-dependencies"]:
                    raise NotUnderstoodError(f"pyproject.toml has no extra {extra}")


def _script(words: Sequence[str]) -> None:
    scripts = [word for word in words if re.search(r"\.(py|sh)$", word)]
    for script in scripts[:1]:
        if not (ROOT / script).is_file() and not Path(script).name.startswith(("my_", "MY_")):
            raise NotUnderstoodError(f"there is no {script}")


def _robotrials(words: list[str], loosely: bool) -> None:
    if not words or words[0] in ("--help", "--version"):
        return
    verb, rest = words[0], words[1:]
    if verb not in cli.VERBS:
        raise ConfigError(f"there is no verb {verb}")
    if "--help" in rest or "-h" in rest:
        return
    if loosely:
        if any(re.search(r"[][|]", word) for word in rest):
            return  # a synopsis
        rest = [*rest, "..."] if verb in _MAY_LACK else rest
    if not rest and loosely:
        return
    _VERBS.get(verb, _on_its_page(verb))(rest)


def _on_its_page(verb: str) -> Callable[[list[str]], None]:
    """For a verb without a rule of its own: its flags stand on its help page, or are those of ``eval``."""

    def check_flags(words: list[str]) -> None:
        page = help_page(verb)
        for flag in (word.partition("=")[0] for word in words if word.startswith("--") and word != "--"):
            if flag not in page and flag.replace("-", "_").replace("__", "--", 1) not in page:
                check_names([flag[2:].replace("-", "_")])

    return check_flags


def help_page(verb: str, *words: str) -> str:
    """What ``robotrials VERB ... --help`` prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert cli.main([verb, *words, "--help"]) == 0
    return printed.getvalue()


def _eval(words: list[str]) -> None:
    from robotrials.cli.flags import parse_eval
    from robotrials.cli.push import take_from_eval

    left_out = "..." in words or any(word.startswith("--config_path") for word in words)
    words = [word for word in words if word != "..." and not word.startswith(("--config_path", "--policy.token_file"))]
    for flag, stand_in in (("--env.type", "--env.type=pusht"), ("--policy.", "--policy.type=random")):
        if not any(word.startswith(flag) for word in words):
            if not left_out:
                raise ConfigError(f"a command without {flag}")
            words.append(stand_in)
    rest, _ = take_from_eval(words)
    config = parse_eval(rest).config
    _benchmark(config.env)
    if config.policy.path is None and not is_import_path(config.policy.type or ""):
        policies.validate(config.policy)
    elif config.policy.type is not None and not is_import_path(config.policy.type):
        policies.policy_class(config.policy)


def _benchmark(choice: EnvChoice) -> None:
    if _ANY.match(choice.type):
        return
    if is_import_path(choice.type):
        file = choice.type.rpartition(":")[0]
        if not (ROOT / file).is_file() and not file.startswith(("my_", "path/to/")):
            raise NotUnderstoodError(f"there is no {file}")
        return
    cls = benchmarks.benchmark_class(choice.type)
    options = {name: value for name, value in choice.options.items() if value != "..." and name != "python"}
    config = build(cls.Config, options, "--env.")
    if choice.type in LISTED and (config.task or choice.type in ("pusht", "libero")) and not _ANY.match(config.task):
        cls(config).tasks()


def _resume(words: list[str]) -> None:
    from robotrials.cli.resume import parse_resume

    parse_resume(words)


def _bench(words: list[str]) -> None:
    from robotrials.cli.positionals import split_words

    action, rest = words[0], words[1:]
    known = {"list": ("json", "import"), "install": ("python", "force"), "remove": (), "exec": ()}
    if action not in known:
        raise ConfigError(f"bench has no {action}")
    if action == "exec":
        names = rest[:1]
        if len(rest) > 2 and rest[1] in ("python", "pytest"):
            _script(rest[2:])
    else:
        names = list(
            split_words(rest, "bench", known[action], {"force": "true", "import": "true", "json": "true"}).plain
        )
    for name in names:
        if not _ANY.match(name) and name != "my-sim":
            benchmarks.benchmark_class(name)


def _check_env(words: list[str]) -> None:
    from robotrials.cli.check_env import parse

    names, options, _ = parse([word for word in words if word != "..."])
    if len(names) != 1:
        raise ConfigError("check-env takes one name")
    if not _ANY.match(names[0]):
        _benchmark(EnvChoice(names[0], options))


def _serve(words: list[str]) -> None:
    from robotrials.cli.serve import parse_serve

    named = any(word.startswith(("--policy.type", "--policy.path")) for word in words)
    stand_in = ["--policy.type=random"] if "..." in words and not named else []
    parse_serve([word for word in words if word != "..."] + stand_in)


def _suite(words: list[str]) -> None:
    from robotrials.cli.suite import parse

    stand_in = ["pusht" if re.fullmatch(r"SUITE|kitchen\.yaml", word) else word for word in words]
    if "..." in stand_in and not any(not word.startswith("--") for word in stand_in[1:] if word != "..."):
        stand_in.insert(1, "pusht")
    call = parse([word for word in stand_in if word != "..."])
    if call.for_eval:
        _eval([*call.for_eval, "..."])


def _watch(words: list[str]) -> None:
    from robotrials.cli.watch import parse

    stand_in = [] if any(word.startswith("--env.type") for word in words) else ["--env.type=pusht"]
    parse([word for word in words if word != "..."] + stand_in)


def _worker(words: list[str]) -> None:
    from robotrials.cli.worker import VERB, WorkerFlags

    build(WorkerFlags, VERB.parse(words).flags, "--")


def _dataset(words: list[str]) -> None:
    from robotrials.cli.dataset import parse

    parse([word for word in words if word != "..."])


def _push(words: list[str]) -> None:
    from robotrials.cli.push import parse_push

    parse_push([word for word in words if word != "..."])


def _report(words: list[str]) -> None:
    from robotrials.cli.report import parse_report

    parse_report(words)


def _leaderboard(words: list[str]) -> None:
    from robotrials.cli.leaderboard import parse_leaderboard

    parse_leaderboard(words)


def _merge(words: list[str]) -> None:
    from robotrials.cli.merge import parse_merge

    parse_merge(words)


def _flags_of(verb: str) -> Callable[[list[str]], None]:
    """For verbs whose module lists its flags: in a ``VERB``, or in ``FLAGS``, and in ``BARE`` those that may stand
    without a value."""

    def check_flags(words: list[str]) -> None:
        from importlib import import_module

        from robotrials.cli.positionals import split_words

        module = import_module(f"robotrials.cli.{verb}")
        if hasattr(module, "VERB"):
            module.VERB.parse(words)
            return
        bare = getattr(module, "BARE", {"confident": "true", "json": "true"})
        split_words(words, verb, getattr(module, "FLAGS", ("json",)), bare)

    return check_flags


_VERBS: dict[str, Callable[[list[str]], None]] = {
    "eval": _eval,
    "resume": _resume,
    "worker": _worker,
    "bench": _bench,
    "check-env": _check_env,
    "serve": _serve,
    "suite": _suite,
    "watch": _watch,
    "dataset": _dataset,
    "push": _push,
    "report": _report,
    "leaderboard": _leaderboard,
    "merge": _merge,
    **{verb: _flags_of(verb) for verb in ("compare", "metrics", "export", "doctor")},
}
