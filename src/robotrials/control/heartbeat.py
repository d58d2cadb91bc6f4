"""Signs of life: what a worker or policy server tells the coordinator's watchdog, and how it dies with its parent."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass

import zmq

from robotrials.control.messages import WORKER_TALK, Alive, Beat, Stop
from robotrials.wire.transport import connect_dealer, send

TOKEN_VARIABLE = "ROBOTRIALS_TOKEN"
"""Environment variable in which a child process gets the run's token: a command line is for all to see."""

ADOPTED = 3
"""Exit status of a process whose coordinator is gone."""
UNREACHED = 5
"""Exit status of a worker that nobody has ever answered."""
UNFIT = 6
"""Exit status of a worker that joined, and may not or cannot play the run's episodes; the end of its log says why."""
UNWANTED = 4
"""Exit status of a worker whose coordinator has given it up in the middle of an episode."""

ENDING = "end"
"""Phase of a worker that is on its way out by itself."""
COORDINATOR_SILENT_S = 60.0
"""A worker that is apart waits so long for a sign of its coordinator: longer than a network may be cut."""
_GRACE_S = 5.0
_LOADING_S = 600.0
"""Outside of an episode a process may hold Python's lock so much longer than within: it loads libraries and models."""


@dataclass
class Heartbeat:
    """Where an episode is: written by the working thread, read by the one that sends heartbeats. The other way round
    goes ``server``, where a worker's policy server is, once the coordinator has said so.

    ``hung_s``: code that holds Python's lock for so long in an episode ends this process, whose log says where it hung.
    None: somebody else sees to it.
    """

    lease: int = 0
    count: int = 0
    phase: str = "start"
    step: int = 0
    server: str | None = None
    hung_s: float | None = None

    def take(self, lease: int) -> None:
        """An episode begins."""
        self.lease, self.step = lease, 0
        self.go_on()

    def go_on(self) -> None:
        """Python's lock can be had: wait for the next sign of that."""
        if self.hung_s is not None:  # a timer in C, which needs no lock
            limit = self.hung_s + _GRACE_S + (0.0 if self.lease else _LOADING_S)
            faulthandler.dump_traceback_later(limit, exit=True)

    def enter(self, phase: str) -> None:
        self.phase = phase
        self.count += 1


def start_heartbeat(
    context: zmq.Context[zmq.Socket[bytes]],
    address: str,
    name: str,
    token: str,
    heartbeat: Heartbeat,
    every: float,
    answered: bool = False,
) -> None:
    """Send ``heartbeat`` to the coordinator every ``every`` seconds, for as long as this process and its parent live.

    ``answered``: the coordinator answers every beat, as it does to workers that are apart. Where it says stop, or
    nothing for ``COORDINATOR_SILENT_S``, this process ends, even one that hangs in a simulator's native code.
    """

    def beat() -> None:
        socket = connect_dealer(context, address)  # of its own: ZeroMQ sockets belong to one thread
        parent = os.getppid()
        heard = time.monotonic()
        while True:
            heartbeat.go_on()
            time.sleep(every)
            if os.getppid() != parent:
                os._exit(ADOPTED)
            send(socket, Beat(name, token, heartbeat.lease, heartbeat.count, heartbeat.phase, heartbeat.step))
            if not answered:
                continue
            while socket.poll(0):
                heard = time.monotonic()
                answer = WORKER_TALK.decode(socket.recv())
                if isinstance(answer, Stop) and heartbeat.phase != ENDING:
                    os._exit(UNWANTED)
                if isinstance(answer, Alive):
                    heartbeat.server = answer.server
            if time.monotonic() - heard > COORDINATOR_SILENT_S:
                os._exit(ADOPTED)

    threading.Thread(target=beat, daemon=True, name="heart").start()


def live_with(parent: int) -> None:
    """Die when process ``parent`` dies, so that no kill leaves workers behind."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(ADOPTED)
