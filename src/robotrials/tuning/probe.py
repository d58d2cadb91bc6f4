"""What the processes that `robotrials tune` measures with have in common: how they begin and end."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from robotrials.control.heartbeat import live_with
from robotrials.errors import RobotrialsError
from robotrials.tuning.protocol import read_task, tell
from robotrials.wire.envelope import Message


def play_part(module: str, part: Callable[[Path, str, Message], None]) -> None:
    """Give ``part`` the folder, this probe's name and its task; a mistake that it finds is told. Ends the process."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("--connect", type=Path, required=True, help="the folder with this probe's task")
    parser.add_argument("--name", required=True)
    parser.add_argument("--parent", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.parent:
        live_with(arguments.parent)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    folder, name = arguments.connect, arguments.name
    try:
        part(folder, name, read_task(folder, name))
    except RobotrialsError as error:
        tell(folder, name, "refused", reason=str(error))
    sys.stderr.flush()
    os._exit(0)  # as workers do: no teardown of GL
