"""What strangers cost: connections without a token that send half a message and stop.

    python bench/strangers.py [--strangers=1000] [--seconds=2]

For each kind of listening socket there are two servers, each a process: one is left alone, at the other ``strangers``
connections hold half a message and knock again 5 s after they were dropped. One authorised client asks both by turns,
in blocks of 50 requests, for ``seconds`` each, so that whatever else this machine does falls on both alike.

policy       ``robotrials serve``, and the policy servers of a run with --eval.listen: a state of 8 floats
openpi       ``robotrials serve --protocol=openpi``: the same
coordinator  --eval.listen, where workers join: a heartbeat and its answer

Shown are the medians of one request in microseconds, and how much slower the besieged one is; then how long a client
with the token waits to be let in among strangers. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import socket
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import zmq

from robotrials.benchmarks.base import Observation
from robotrials.control.messages import WORKER_TALK, Alive, Beat
from robotrials.machine.limits import allow_descriptors
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import ActionSpec, Feature, TaskSpec
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.policies.remote.client import ServedPolicy
from robotrials.policies.remote.openpi import OpenpiPolicy
from robotrials.serving.openpi_server import OpenpiServer
from robotrials.serving.server import PolicyServer
from robotrials.wire.envelope import encode
from robotrials.wire.stream import listen
from robotrials.wire.transport import also_bind, bind_router, connect_dealer

TASK = TaskSpec("bench", "bench", 0, "do it", 500, 20.0, {}, ActionSpec(7, (-1.0,) * 7, (1.0,) * 7))
EPISODE = EpisodeSpec(0, "s", "t", 0, 0, None, 500)
SEEN: Observation = {"observation.state": np.zeros(8, np.float32)}
HALF = {"policy": b"\x01", "openpi": b"GET / HTTP/1.1\r\nHost", "coordinator": b"\xff\x00\x00"}
BLOCK = 50
KNOCK_AGAIN_S = 5.0

Ask = Callable[[], object]


class Answering(Policy):
    def spec(self) -> PolicySpec:
        return PolicySpec("answering", {"observation.state": Feature((8,))}, action_dim=7)

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        return np.zeros((len(sessions), 1, 7), np.float32)


def child(target: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            target()
        finally:
            os._exit(0)
    return pid


def end(pid: int) -> None:
    os.kill(pid, 9)
    os.waitpid(pid, 0)


def start(kind: str) -> tuple[int, int]:
    """A server of that kind; its pid and port."""
    if kind == "coordinator":
        probe = socket.create_server(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
        probe.close()
        return child(lambda: coordinate(port)), port
    listener = listen("tcp://127.0.0.1:0")
    port = int(listener.getsockname()[1])
    made = PolicyServer if kind == "policy" else OpenpiServer
    pid = child(lambda: made(Answering(), listener, "secret").serve())
    listener.close()
    return pid, port


def coordinate(port: int) -> None:
    """Answer heartbeats, as a coordinator does."""
    router = bind_router(zmq.Context(), f"ipc:///tmp/robotrials-bench-{os.getpid()}")
    also_bind(router, f"tcp://127.0.0.1:{port}")
    while True:
        identity, data = router.recv_multipart()
        WORKER_TALK.decode(data)
        router.send_multipart([identity, encode(Alive())])


def asker(kind: str, port: int) -> Ask:
    """One request to that server."""
    if kind == "coordinator":
        dealer = connect_dealer(zmq.Context.instance(), f"tcp://127.0.0.1:{port}")

        def beat() -> object:
            dealer.send(encode(Beat("w0", "secret", 1, 1, "simulate", 1)))
            return WORKER_TALK.decode(dealer.recv())

        return beat
    policy: Policy
    if kind == "policy":
        policy = ServedPolicy(f"tcp://127.0.0.1:{port}", "secret", "bench")
    else:
        os.environ["ROBOTRIALS_POLICY_TOKEN"] = "secret"
        policy = OpenpiPolicy(url=f"ws://127.0.0.1:{port}", keys={"observation/state": "observation.state"})
    session = policy.new_session(EPISODE, TASK)
    return lambda: policy.act([session], [SEEN])


def besiege(port: int, n: int, half: bytes) -> None:
    """Hold ``n`` connections that have sent ``half`` a message."""
    selector = selectors.DefaultSelector()
    due = [0.0] * n
    while True:
        now = time.monotonic()
        while due and due[0] <= now:
            due.pop(0)
            try:
                connection = socket.create_connection(("127.0.0.1", port), timeout=5)
                connection.sendall(half)
                selector.register(connection, selectors.EVENT_READ, connection)
            except OSError:
                due.append(now + KNOCK_AGAIN_S)
        for key, _ in selector.select(0.2):
            connection = key.data
            try:
                is_open = bool(connection.recv(4096))
            except OSError:
                is_open = False
            if not is_open:
                selector.unregister(connection)
                connection.close()
                due.append(time.monotonic() + KNOCK_AGAIN_S)


def block(ask: Ask, times: list[float]) -> None:
    for _ in range(BLOCK):
        began = time.perf_counter()
        ask()
        times.append(time.perf_counter() - began)


def measure(kind: str, n: int, seconds: float) -> dict[str, float]:
    alone, besieged = start(kind), start(kind)
    asks = [asker(kind, alone[1]), asker(kind, besieged[1])]
    strangers = child(lambda: besiege(besieged[1], n, HALF[kind]))
    time.sleep(1.0)  # until all of them hold their half message
    times: list[list[float]] = [[], []]
    until = time.perf_counter() + 2 * seconds
    while time.perf_counter() < until:
        for which in (0, 1):
            block(asks[which], times[which])
    began = time.perf_counter()
    asker(kind, besieged[1])()
    let_in_s = time.perf_counter() - began
    for pid in (strangers, alone[0], besieged[0]):
        end(pid)
    quiet, held = (1e6 * statistics.median(each[len(each) // 10 :]) for each in times)
    return {
        f"{kind}_alone_us": round(quiet, 1),
        f"{kind}_besieged_us": round(held, 1),
        f"{kind}_slower_percent": round(100 * (held / quiet - 1), 1),
        f"{kind}_let_in_ms": round(1e3 * let_in_s, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--strangers", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=2.0)
    arguments = parser.parse_args()
    allow_descriptors(arguments.strangers + 256)
    figures: dict[str, float] = {}
    for kind in HALF:
        figures |= measure(kind, arguments.strangers, arguments.seconds)
    for name, value in figures.items():
        print(f"{name:32} {value:>12}")
    print(json.dumps({"bench": "strangers", "python": sys.version.split()[0], "n": arguments.strangers, **figures}))


if __name__ == "__main__":
    main()
