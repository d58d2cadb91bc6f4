"""``robotrials serve``: a policy behind an address, for any number of runs and workers."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from robotrials.cli import output
from robotrials.cli.verb import Verb, flags_of
from robotrials.errors import ConfigError
from robotrials.plan.config import PolicyChoice, option
from robotrials.plan.options import build

_EVERY_S = 30.0


@dataclass(frozen=True)
class ServeFlags:
    address: str = option(
        "",
        "tcp://HOST:PORT (port 0: any free one), unix:///PATH, or ws://HOST:PORT for openpi [tcp://127.0.0.1:5751]",
    )
    protocol: str = option(
        "robotrials", "what clients speak; openpi: as openpi's own clients do", choices=("robotrials", "openpi")
    )
    token_file: str | None = option(
        None,
        "the secret that clients must show; made if it is not there. Needed unless HOST is this machine's loopback; or "
        "set ROBOTRIALS_POLICY_TOKEN",
    )
    exact: bool = option(True, "as --eval.exact")
    keys: dict[str, Any] = option(
        {},
        "with --protocol=openpi alone: names in the client's observation to the policy's keys [{prompt: task} and the "
        "policy's own keys]",
    )


VERB = Verb(
    name="serve",
    usage=("serve --policy.path=PATH [--address=ADDRESS] ...",),
    about="""
    Load a policy and serve it until Ctrl-C. Runs use it with --policy.type=remote --policy.url=ADDRESS; any number of
    runs and workers may come and go. --policy.type, --policy.path and --policy.OPTION are as for robotrials eval.
    """,
    flags=flags_of(ServeFlags, address="ADDRESS", token_file="FILE", keys="{A: B}"),
    ending="""
Exit status
  0  ended by Ctrl-C or SIGTERM
  1  the policy or the address cannot be used
""",
    is_open=True,
)


def run(argv: Sequence[str]) -> int:
    """Parse, load, serve until a signal; returns the exit status."""
    choice, flags = parse_serve(argv)
    from robotrials.machine.threads import thread_limits

    os.environ.update(thread_limits(1))  # as the servers of a run have it: before any library counts the cores
    from robotrials.serving.standalone import Standalone

    server = Standalone(choice, flags.address, flags.protocol, flags.token_file, flags.exact, flags.keys)
    try:
        with _until_signalled() as goes_on:
            output.line(f"serving {server.name} at {server.address}")
            output.line(server.hint)
            server.serve(_Reporter(server.counts, goes_on))
    finally:
        server.close()
        if output.is_lively(sys.stderr):
            output.line("")  # below the line that was rewritten
    return 0


def parse_serve(argv: Sequence[str]) -> tuple[PolicyChoice, ServeFlags]:
    """The policy, and the flags of ``serve``.

    Raises:
        ConfigError: an unknown, repeated or ill-typed flag, or no policy.
    """
    words = VERB.parse(argv)
    words.refuse_plain()
    values = dict(words.flags)
    policy = {name[len("policy.") :]: values.pop(name) for name in list(values) if name.startswith("policy.")}
    flags = build(ServeFlags, values, "--")
    kind, path = policy.pop("type", None), policy.pop("path", None)
    if not kind and not path:
        raise ConfigError("which policy? Give --policy.path or --policy.type, as for robotrials eval")
    if flags.keys and flags.protocol != "openpi":
        raise ConfigError("--keys needs --protocol=openpi: runs send the policy's own keys")
    return PolicyChoice(kind, path, policy), flags


@contextmanager
def _until_signalled() -> Any:
    """A function that says whether to go on; SIGINT and SIGTERM make it say no."""
    ended = threading.Event()
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: not ended.is_set()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Reporter:
    """Says now and then what the server does: a line that is rewritten on a terminal, one every 30 s elsewhere."""

    def __init__(self, counts: Callable[[], Mapping[str, float]], goes_on: Callable[[], bool]) -> None:
        self._counts, self._goes_on = counts, goes_on
        self._lively = output.is_lively(sys.stderr)
        self._at, self._last = time.monotonic(), counts()

    def __call__(self) -> bool:
        now = time.monotonic()
        if now - self._at >= (1.0 if self._lively else _EVERY_S):
            counts = self._counts()
            if self._lively or counts["requests"] != self._last["requests"]:
                self._say(counts, now - self._at)
            self._at, self._last = now, counts
        return self._goes_on()

    def _say(self, counts: Mapping[str, float], seconds: float) -> None:
        requests = counts["requests"] - self._last["requests"]
        passes = counts["passes"] - self._last["passes"]
        busy = counts["busy_s"] - self._last["busy_s"]
        words = (
            f"{counts['clients']:.0f} clients, {counts['sessions']:.0f} sessions, {requests / seconds:.1f} requests/s, "
            f"batch {requests / passes if passes else 0:.1f}, {100 * busy / seconds:.0f} % busy"
        )
        if self._lively:
            sys.stderr.write(f"\r\033[K{words}")
            sys.stderr.flush()
        else:
            output.line(words)
