"""Round trip of one observation by protocol: what a policy elsewhere costs, without a network between.

    python bench/remote.py

An observation of 301 kB (two 224x224 images, 8 floats), a policy that answers at once, both ends here. Median wall
microseconds from the call of ``act`` to its actions, and CPU microseconds of the client. openpi and vla-eval are
spoken by our client; their servers are ours (openpi) and a bare echo (vla-eval). The last line is one JSON object.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

import numpy as np
from websockets.sync.server import ServerConnection, serve

from robotrials.benchmarks.base import Observation
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import ActionSpec, TaskSpec
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.policies.remote.client import ServedPolicy
from robotrials.policies.remote.openpi import OpenpiPolicy
from robotrials.policies.remote.vla_eval import VlaEvalPolicy
from robotrials.serving.openpi_server import OpenpiServer
from robotrials.serving.server import PolicyServer
from robotrials.wire.plain_arrays import decode_plain, encode_vla_eval
from robotrials.wire.stream import address_of, listen

IMAGES = ("observation.images.image", "observation.images.image2")
TASK = TaskSpec("bench", "bench", 0, "do it", 500, 20.0, {}, ActionSpec(7, (-1.0,) * 7, (1.0,) * 7))
EPISODE = EpisodeSpec(0, "bench", "bench", 0, 0, None, 500)
KEYS = {
    "observation/image": IMAGES[0],
    "observation/wrist_image": IMAGES[1],
    "observation/state": "observation.state",
    "prompt": "task",
}
N = 1500


class Answering(Policy):
    """Zero actions at once."""

    def spec(self) -> PolicySpec:
        return PolicySpec("answering", dict.fromkeys(KEYS.values()))

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        return np.zeros((len(sessions), 1, 7), np.float32)


def in_child(address: str, run: Callable[..., None]) -> tuple[int, str]:
    """``run(listener)`` in a forked process; its pid and address."""
    listener = listen(address)
    pid = os.fork()
    if pid == 0:
        run(listener)
        os._exit(0)
    return pid, address_of(listener)


def echo(connection: ServerConnection) -> None:
    """A vla-eval server that thinks of nothing."""
    for data in connection:
        message = decode_plain(data)  # type: ignore[arg-type]
        kind = {"hello": "hello", "observation": "action"}.get(message["type"])
        if kind:
            payload = {"protocol_version": 1} if kind == "hello" else {"actions": np.zeros(7, np.float32)}
            connection.send(
                encode_vla_eval({"type": kind, "payload": payload, "seq": message["seq"], "timestamp": 0.0})
            )


def serve_echo(listener: object) -> None:
    serve(echo, sock=listener, compression=None, max_size=None).serve_forever()  # type: ignore[arg-type]


def measure(policy: Policy, pid: int) -> tuple[float, float]:
    """Median wall microseconds and mean CPU microseconds of one ``act``."""
    rng = np.random.default_rng(0)
    seen: Observation = {key: rng.integers(0, 255, (224, 224, 3), dtype=np.uint8) for key in IMAGES}
    seen |= {"observation.state": rng.random(8).astype(np.float32), "task": "do it"}
    session = policy.new_session(EPISODE, TASK)
    times, cpu = [], time.process_time()
    for _ in range(N):
        began = time.perf_counter()
        policy.act([session], [seen])
        times.append(time.perf_counter() - began)
    cpu = time.process_time() - cpu
    policy.close()  # type: ignore[attr-defined]
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return statistics.median(times[N // 10 :]) * 1e6, cpu / N * 1e6


def main() -> None:
    figures: dict[str, float] = {}

    def note(name: str, pair: tuple[float, float]) -> None:
        figures[f"{name}_us"], figures[f"{name}_client_cpu_us"] = (round(value, 1) for value in pair)

    def ours(listener: object) -> None:
        PolicyServer(Answering(), listener, "secret").serve()  # type: ignore[arg-type]

    with tempfile.TemporaryDirectory() as folder:
        for name, address in (
            ("robotrials_shared_memory", f"unix://{folder}/server"),
            ("robotrials_tcp", "tcp://127.0.0.1:0"),
        ):
            pid, where = in_child(address, ours)
            note(name, measure(ServedPolicy(where, "secret", "bench"), pid))
    pid, where = in_child("tcp://127.0.0.1:0", lambda listener: OpenpiServer(Answering(), listener, "").serve())
    note("openpi", measure(OpenpiPolicy(where.replace("tcp", "ws"), KEYS), pid))
    pid, where = in_child("tcp://127.0.0.1:0", serve_echo)
    cameras = {"agentview": IMAGES[0], "wrist": IMAGES[1]}
    note("vla_eval", measure(VlaEvalPolicy(where.replace("tcp", "ws"), cameras), pid))
    for name, value in figures.items():
        print(f"{name:44} {value:>12}")
    print(json.dumps({"bench": "remote", "python": sys.version.split()[0], **figures}))


if __name__ == "__main__":
    main()
