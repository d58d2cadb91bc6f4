"""``robotrials bench``: benchmarks and the environments that are made for them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

from robotrials.cli import output
from robotrials.cli.positionals import split_words
from robotrials.errors import ConfigError

HELP = """\
usage: robotrials bench list [NAME ...] [--import] [--json]
       robotrials bench install NAME ... [--python=PYTHON] [--force]
       robotrials bench remove NAME ...
       robotrials bench exec NAME COMMAND ...

Benchmarks, and environments of their own for them: isolated, at the versions
that were tested. `robotrials eval --env.type=NAME` runs the workers of a
benchmark in its environment without being told.

  list      every benchmark: where it is installed, at which versions, and what
            is wrong. Those named, or all with --import, are really imported,
            which alone shows that they work
  install   make the environment of a benchmark. A second time it does nothing
            where that works; --force makes it anew in any case, --python
            chooses a path or a version (3.12)
  remove    delete it
  exec      run a command inside it, with the variables its workers start with

They live in $ROBOTRIALS_HOME (default ~/.local/share/robotrials), caches too,
unless UV_CACHE_DIR or PIP_CACHE_DIR say otherwise. uv is used where it is
found, else pip. Nothing asks questions, nothing needs root: where a system
package is missing, the line that installs it is printed.

Exit status: 0 fine; 1 wrong flags, or an installation that failed; list: 0
"""


def run(argv: Sequence[str]) -> int:
    """Parse, do, print; returns the exit status."""
    words = list(argv)
    if words[:1] == ["exec"]:
        return _exec(words[1:])
    if not words or any(word in ("--help", "-h") for word in words):
        output.text(HELP)
        return 0 if words else 1
    deeds = {"list": _list, "install": _install, "remove": _remove}
    if words[0] not in deeds:
        raise ConfigError(f"unknown: bench {words[0]}; it is list, install, remove or exec")
    return deeds[words[0]](words[1:])


def _list(argv: Sequence[str]) -> int:
    words = split_words(argv, "bench list", ("json", "import"), {"json": "true", "import": "true"})
    names = words.plain
    from robotrials.benchmarks.inventory import inventory, location
    from robotrials.benchmarks.registry import benchmark_class
    from robotrials.cli.listing import print_json, print_table

    for name in names:
        benchmark_class(name)
    entries = inventory(names or None, try_import=bool(names) or words.truth("import"))
    if words.truth("json"):
        print_json([dataclasses.asdict(entry) for entry in entries])
        return 0
    rows = []
    for entry in entries:
        versions = [f"Python {entry.python_version}"] if entry.python_version else []
        versions += [f"{package} {version}" for package, version in list(entry.packages.items())[:2]]
        rows.append([entry.name, entry.state, ", ".join(versions), location(entry)])
    print_table(("Benchmark", "State", "Versions", "Where"), rows, elastic=3)
    output.text("".join(f"\n{entry.name}: {entry.note}" for entry in entries if entry.note) + "\n")
    return 0


def _install(argv: Sequence[str]) -> int:
    words = split_words(argv, "bench install", ("python", "force"), {"force": "true"})
    _need_names(words.plain, "install")
    from robotrials.benchmarks.inventory import inventory
    from robotrials.benchmarks.registry import benchmark_class
    from robotrials.environments.installer import install
    from robotrials.rendering.system_packages import install_line, missing

    status = 0
    for name, cls in [(name, benchmark_class(name)) for name in words.plain]:
        lacking = missing(cls.installation.system)
        if lacking:
            output.note(f"{name} needs system packages that are missing here; install them with:")
            output.line(f"  {install_line(lacking)}")

        def say(line: str, name: str = name) -> None:
            output.line(f"{name}: {line}")

        python = words.flags.get("python")
        new = install(cls.installation, name, python, words.truth("force"), say)
        # One that lacks system packages would work no better for being made anew.
        if not new and not lacking and inventory([name])[0].state != "ok":
            say("what is installed does not work; it is made anew")
            new = install(cls.installation, name, python, True, say)
        status = max(status, _prove(name, new))
    return status


def _prove(name: str, new: bool) -> int:
    """Import it there, and say so."""
    from robotrials.benchmarks.inventory import inventory

    (entry,) = inventory([name])
    versions = ", ".join(f"{package} {version}" for package, version in entry.packages.items())
    if entry.state != "ok":
        output.error(f"{name} is installed in {entry.python}, and does not work: {entry.note}")
        if not new:
            output.note(f"once the system packages are there: robotrials bench install {name} --force")
        return 1
    output.line(
        f"{name}: {'installed' if new else 'is installed'} and working (Python {entry.python_version}; {versions})"
    )
    if entry.note:
        output.note(entry.note)
    return 0


def _remove(argv: Sequence[str]) -> int:
    names = split_words(argv, "bench remove", ()).plain
    _need_names(names, "remove")
    from robotrials.environments.installer import remove

    for name in names:
        if not name.replace("-", "_").isidentifier():
            raise ConfigError(f"{name} is no name of a benchmark")
        output.line(f"{name}: removed" if remove(name) else f"{name}: nothing was installed")
    return 0


def _exec(argv: list[str]) -> int:
    if len(argv) < 2 or argv[0].startswith("-"):
        raise ConfigError("bench exec takes a benchmark and a command: robotrials bench exec NAME python script.py")
    from robotrials.benchmarks.registry import benchmark_class
    from robotrials.environments import folders
    from robotrials.rendering.gl import gl_environment

    name, command = argv[0], argv[1:]
    cls = benchmark_class(name)
    environment = folders.find(name)
    if environment is None:
        raise ConfigError(f"{name} has no environment of its own yet: robotrials bench install {name}")
    added = folders.variables(cls.installation, environment.python, os.environ)
    path = f"{Path(environment.python).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    gl = gl_environment(os.environ) if cls.uses_gl else {}
    os.environ.update({**gl, **added, "PATH": path, "VIRTUAL_ENV": environment.prefix})
    output.flush()
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise ConfigError(f"{command[0]} cannot be run: {error.strerror}") from None


def _need_names(names: Sequence[str], deed: str) -> None:
    if not names:
        raise ConfigError(f"which benchmark? robotrials bench {deed} NAME; robotrials bench list shows them")
