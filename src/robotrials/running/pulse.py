"""Signs of life: what a worker or policy server tells the coordinator's watchdog, and how it dies with its parent."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass

import zmq

from robotrials.running.messages import Beat
from robotrials.wire.transport import connect_dealer, send

TOKEN_VARIABLE = "ROBOTRIALS_TOKEN"
"""Environment variable in which a child process gets the run's token: a command line is for all to see."""

ADOPTED = 3
"""Exit status of a process whose coordinator is gone."""


@dataclass
class Pulse:
    """Where an episode is: written by the working thread, read by the one that sends heartbeats."""

    lease: int = 0
    count: int = 0
    phase: str = "start"
    step: int = 0

    def enter(self, phase: str) -> None:
        self.phase = phase
        self.count += 1


def start_heart(
    context: zmq.Context[zmq.Socket[bytes]], address: str, name: str, token: str, pulse: Pulse, every: float
) -> None:
    """Send ``pulse`` to the coordinator every ``every`` seconds, for as long as this process and its parent live."""

    def beat() -> None:
        socket = connect_dealer(context, address)  # of its own: ZeroMQ sockets belong to one thread
        parent = os.getppid()
        while True:
            time.sleep(every)
            if os.getppid() != parent:
                os._exit(ADOPTED)
            send(socket, Beat(name, token, pulse.lease, pulse.count, pulse.phase, pulse.step))

    threading.Thread(target=beat, daemon=True, name="heart").start()


def live_with(parent: int) -> None:
    """Die when process ``parent`` dies, so that no kill leaves workers behind."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(ADOPTED)
