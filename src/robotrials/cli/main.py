"""``robotrials VERB ...``: finds the verb, and turns errors that are meant for people into one clean message."""

from __future__ import annotations

import importlib
import signal
import sys
import threading
import traceback
from collections.abc import Sequence

from robotrials.cli import output
from robotrials.errors import ConfigError, LedgerError, RobotrialsError, UnreadableLedgerError
from robotrials.machine.limits import is_out_of_space, remedy
from robotrials.version import __version__

VERBS = (
    "eval",
    "resume",
    "worker",
    "bench",
    "tune",
    "check-env",
    "doctor",
    "compare",
    "metrics",
    "export",
    "merge",
    "serve",
    "show",
    "report",
    "leaderboard",
    "push",
    "dataset",
    "suite",
    "watch",
    "completion",
)
"""Each is a module of this package (a dash: an underscore) with ``run(argv) -> int``, imported when it is asked for."""

COMPLETE, MISCONFIGURED, PARTIAL = 0, 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (default: this process's) and return its exit status; see ``robotrials --help``."""
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    output.open_streams()
    _let_sigterm_interrupt()
    try:
        return _dispatch([word for word in words if word != "--debug"])
    except RobotrialsError as error:
        if debug:
            traceback.print_exc()
        output.error(str(error))
        # A ledger that cannot be written ends a run in the middle: what it holds is part of a result.
        began = isinstance(error, LedgerError) and not isinstance(error, UnreadableLedgerError)
        return PARTIAL if began else MISCONFIGURED
    except (OSError, MemoryError, RuntimeError) as error:
        hint = remedy(error)
        if hint is None or debug:
            raise
        output.error(f"{error or type(error).__name__}: {hint}")
        return PARTIAL if is_out_of_space(error) and words[:1] in (["eval"], ["resume"]) else MISCONFIGURED
    except KeyboardInterrupt:
        output.error("interrupted" + (" before any episode began" if words[:1] in (["eval"], ["resume"]) else ""))
        return PARTIAL
    finally:
        output.flush()


def _let_sigterm_interrupt() -> None:
    """Until a run takes over the signals, SIGTERM ends like Ctrl-C: with a line and a true exit status."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("--help", "-h", "help"):
        from robotrials.cli.help import OVERVIEW

        output.text(OVERVIEW)
        return COMPLETE if words else MISCONFIGURED
    if words[0] in ("--version", "-V", "version"):
        output.text(f"robotrials {__version__}\n")
        return COMPLETE
    verb, rest = words[0], words[1:]
    if verb not in VERBS:
        raise ConfigError(_unknown(verb))
    module = importlib.import_module(f"robotrials.cli.{verb.replace('-', '_')}")
    table = getattr(module, "VERB", None)
    if table is not None and any(word in ("--help", "-h") for word in rest):
        output.text(table.page)
        return COMPLETE
    status: int = module.run(rest)
    return status


MEANT = {
    **dict.fromkeys(("run", "evaluate", "test", "play", "start"), "eval"),
    **dict.fromkeys(("view", "table", "results", "status"), "show"),
    **dict.fromkeys(("html", "open"), "report"),
    **dict.fromkeys(("diff", "vs"), "compare"),
    **dict.fromkeys(("continue", "restart"), "resume"),
    **dict.fromkeys(("list", "install"), "bench"),
    **dict.fromkeys(("check", "diagnose"), "doctor"),
}
"""What other programs call these verbs."""


def _unknown(verb: str) -> str:
    from robotrials.plan.options import nearest

    meant = MEANT.get(verb.lstrip("-"))
    if meant is not None:
        more = ", or robotrials report RUN for its page" if meant == "show" else ""
        return f"unknown verb {verb!r}; write: robotrials {meant} ...{more}"
    if verb.startswith("-"):
        from robotrials.cli.flags import MEANT as FLAGS

        name = verb.lstrip("-").partition("=")[0].replace("-", "_")
        right = f"--{FLAGS[name]}=..." if name in FLAGS else verb
        return f"{verb} comes before any verb; write: robotrials eval {right} ..."
    return f"unknown verb {verb!r}{nearest(verb, VERBS)}; verbs: {', '.join(VERBS)}"


if __name__ == "__main__":
    sys.exit(main())
