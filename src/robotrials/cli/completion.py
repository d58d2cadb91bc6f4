"""``robotrials completion SHELL``: a script by which a shell completes verbs, flags and their values."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence

from robotrials.cli import output
from robotrials.cli.verb import Flag, Verb
from robotrials.errors import ConfigError
from robotrials.plan.options import nearest

SHELLS = ("bash", "zsh", "fish")
VERB = Verb(
    name="completion",
    usage=("completion bash|zsh|fish",),
    about="Print a script that completes verbs, flags and their values.",
    ending="""
  bash   robotrials completion bash > FILE, where FILE is
         ~/.local/share/bash-completion/completions/robotrials
  zsh    robotrials completion zsh > ~/.robotrials.zsh, and in ~/.zshrc, below
         compinit: source ~/.robotrials.zsh
  fish   robotrials completion fish > ~/.config/fish/completions/robotrials.fish

Exit status: 0, or 1 for another shell.
""",
)

_WITH_FLAGS_OF_EVAL = ("eval", "tune", "watch")
_LINES = re.compile(r"^(?:usage: robotrials|       robotrials|  --).*$", re.MULTILINE)
"""Where a help page names a verb's own flags."""
_FLAG = re.compile(r"--([a-z][a-z_.-]*)(?:\[?=([^\s\]]+))?(?![\w.=])")


def run(argv: Sequence[str]) -> int:
    """Parse, print the script; returns the exit status."""
    words = VERB.parse(argv)
    if len(words.plain) != 1 or words.plain[0] not in SHELLS:
        got = " ".join(words.plain)
        raise ConfigError(f"completion of which shell? One of {', '.join(SHELLS)}; got {got!r}{nearest(got, SHELLS)}")
    made = gather()
    output.text(_fish(made) if words.plain[0] == "fish" else _bash(made, zsh=words.plain[0] == "zsh"))
    return 0


def gather() -> dict[str, tuple[Flag, ...]]:
    """Every verb with its flags: from its table, or from its help page, and ``eval``'s from the options."""
    from robotrials.cli.main import VERBS

    of_eval = _flags_of_eval()
    verbs: dict[str, tuple[Flag, ...]] = {}
    for name in VERBS:
        module = importlib.import_module(f"robotrials.cli.{name.replace('-', '_')}")
        table: Verb | None = getattr(module, "VERB", None)
        page = getattr(module, "HELP", None)
        own = table.flags if table is not None else _flags_of_page(page) if isinstance(page, str) else ()
        more = of_eval if name in _WITH_FLAGS_OF_EVAL else ()
        flags = {flag.name: flag for flag in (*more, *own, Flag("help", ""))}
        verbs[name] = tuple(flags.values())
    return verbs


def _flags_of_page(page: str) -> tuple[Flag, ...]:
    """Of a verb that has no table yet."""
    found: dict[str, Flag] = {}
    for line in _LINES.findall(page):
        for name, value in _FLAG.findall(line.partition("  ")[0] if line.startswith("usage") else line.strip()):
            choices = tuple(value.split("|")) if "|" in value else ()
            if not name.endswith(".") and name != "name":
                found.setdefault(name, Flag(name, "", value=value, choices=choices))
            if line.startswith("  --"):
                break  # what follows is its help
    return tuple(found.values())


def _flags_of_eval() -> tuple[Flag, ...]:
    from robotrials.benchmarks import registry as benchmarks
    from robotrials.cli.flags import BOOLEAN, KNOWN
    from robotrials.cli.help import flag_rows
    from robotrials.cli.lerobot_flags import NAMES
    from robotrials.policies import registry as policies

    chosen = {
        "env.type": tuple(benchmarks.names()),
        "policy.type": tuple(policies.names()),
        "eval.record": ("none", "failures", "all", "first:1", "first:10"),
    }
    for name, (written, _) in flag_rows().items():
        if "|" in written:
            chosen[name] = tuple(written.partition("=")[2].split("|"))
    return tuple(
        Flag(name, "", value="BOOL", bare="true")
        if name in BOOLEAN
        else Flag(name, "", value="VALUE", choices=chosen.get(name, ()))
        for name in KNOWN
        if name not in NAMES
    )


def _values(flag: Flag) -> tuple[str, ...]:
    return flag.choices or (("true", "false") if flag.value == "BOOL" else ())


def _bash(verbs: Mapping[str, Sequence[Flag]], zsh: bool) -> str:
    """Candidates are whole words (``--eval.order=longest``); bash splits words at the equals sign, and gets what is
    behind it."""
    cases = []
    for verb, flags in verbs.items():
        names = " ".join(f"--{flag.name}" + ("=" if flag.without_value is None else "") for flag in flags)
        values = " ".join(f"--{flag.name}={value}" for flag in flags for value in _values(flag))
        cases.append(f"    {verb}) flags={_quoted(names)}; values={_quoted(values)} ;;")
    head = "autoload -U +X bashcompinit && bashcompinit\n" if zsh else ""
    return f"""\
# Completion of robotrials; made by: robotrials completion {"zsh" if zsh else "bash"}
{head}_robotrials() {{
  local line word verb flags values found
  line=${{COMP_LINE:0:$COMP_POINT}}
  word=${{line##*[[:space:]]}}
  verb=${{COMP_WORDS[1]}}
  if [[ $COMP_CWORD -le 1 ]]; then
    COMPREPLY=($(compgen -W {_quoted(" ".join([*verbs, "--help", "--version"]))} -- "$word"))
    return
  fi
  case $verb in
{chr(10).join(cases)}
    *) return ;;
  esac
  case $word in
    --*=*) found=$values ;;
    -*) found=$flags ;;
    *) return ;;
  esac
  COMPREPLY=($(compgen -W "$found" -- "$word"))
  if [[ $word == *=* && $COMP_WORDBREAKS == *=* ]]; then
    COMPREPLY=("${{COMPREPLY[@]#*=}}")
  fi
  [[ ${{#COMPREPLY[@]}} -eq 1 && ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace 2>/dev/null
  return 0
}}
complete -o default -F _robotrials robotrials
"""


def _fish(verbs: Mapping[str, Sequence[Flag]]) -> str:
    lines = [
        "# Completion of robotrials; made by: robotrials completion fish",
        f"complete -c robotrials -n __fish_use_subcommand -f -a {_quoted(' '.join(verbs))}",
    ]
    for verb, flags in verbs.items():
        for flag in flags:
            line = f"complete -c robotrials -n '__fish_seen_subcommand_from {verb}' -l {flag.name}"
            if values := _values(flag):
                line += f" -x -a {_quoted(' '.join(values))}"
            elif flag.without_value is None:
                line += " -r"
            lines.append(line + (f" -d {_quoted(flag.help)}" if flag.help else ""))
    return "\n".join(lines) + "\n"


def _quoted(words: str) -> str:
    return "'" + words.replace("'", "'\\''") + "'"
