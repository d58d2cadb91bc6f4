"""How workers that the run has not started find it: a file in its directory that only its owner can read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from robotrials.control.messages import SESSION_FILE, Ready
from robotrials.errors import ConfigError

CONNECT_FILE = "connect.json"


@contextmanager
def join_file(run_dir: Path, address: str | None, token: str, session: str) -> Iterator[None]:
    """While a session is on: its mark, by which a worker knows the folder, and, where workers may join, the address."""
    mark, door = run_dir / SESSION_FILE, run_dir / CONNECT_FILE
    mark.write_text(session)
    if address is not None:
        door.unlink(missing_ok=True)
        descriptor = os.open(door, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump({"address": address, "token": token}, file)
    try:
        yield
    finally:
        mark.unlink(missing_ok=True)
        door.unlink(missing_ok=True)


def read_join_file(run_dir: Path) -> tuple[str, str]:
    """Address and token of the session that is on in ``run_dir``.

    Raises:
        ConfigError: none is on, or it takes no workers.
    """
    try:
        found = json.loads((run_dir / CONNECT_FILE).read_text(encoding="utf-8"))
        return str(found["address"]), str(found["token"])
    except FileNotFoundError:
        raise ConfigError(
            f"{run_dir} takes no workers: no run is on there, or it was started without --eval.listen"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{run_dir / CONNECT_FILE} cannot be read: {error}") from None


def joining_rule(identity: Mapping[str, Any]) -> Callable[[Ready], str | None]:
    """Who may join a run of this identity: a worker whose Python and packages would give the same outcomes."""
    expected = {key: identity[key] for key in ("robotrials", "python")} | dict(identity["benchmark"]["packages"])

    def may_join(ready: Ready) -> str | None:
        found = {"python": ready.python, **ready.packages}
        wrong = [
            f"{name} {found.get(name, 'missing')} instead of {version}"
            for name, version in expected.items()
            if found.get(name) != version
        ]
        return f"other versions could give other outcomes: {', '.join(wrong)}" if wrong else None

    return may_join
