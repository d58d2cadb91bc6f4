"""Policy server: round trips of an observation, and throughput of the batcher under load.

    python bench/serving.py

1. One worker, a policy that answers at once, an observation of 301 kB (two 224x224 images and 8 floats): median time
   from the call of ``act`` to its actions, by shared memory and over TCP.
2. Eight sessions against a policy that takes 20 + 0.5 n milliseconds for n rows: observations a second against the
   ideal, where every pass holds all eight; once while all run, and once with the last episodes finishing one by one.
3. Requests a second that policy servers answer which compute nothing: two of them, and sixteen workers with states of
   8 floats, all on this machine, each asking as soon as it is answered.
4. The same, where the workers are elsewhere, as nearly as one machine can show it: two processes, each of which asks
   for eight sessions at a time and looks into every hundredth answer only. And a server's own CPU time for a request,
   which says how many servers, each with a core of its own, hold how many requests.
The last line is one JSON object.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing.synchronize import Barrier

import numpy as np
import psutil

from robotrials.benchmarks.base import Observation
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import ActionSpec, TaskSpec
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.policies.remote.client import ServedPolicy
from robotrials.policies.remote.protocol import SERVER_TALK, Act, Attach, Chunk, Open, Share
from robotrials.serving.server import PolicyServer
from robotrials.wire.arrays import ArrayLayout
from robotrials.wire.envelope import encode
from robotrials.wire.shared import SharedBytes
from robotrials.wire.stream import address_of, connect, listen

TASK = TaskSpec("bench", "bench", 0, "do it", 500, 20.0, {}, ActionSpec(7, (-1.0,) * 7, (1.0,) * 7))
FIXED_S, PER_ROW_S = 0.020, 0.0005


class Answering(Policy):
    """Zero actions after ``fixed_s + n * per_row_s`` seconds for n rows."""

    def __init__(self, fixed_s: float, per_row_s: float) -> None:
        self.fixed_s, self.per_row_s = fixed_s, per_row_s
        self.rows: list[int] = []

    def spec(self) -> PolicySpec:
        return PolicySpec("answering", max_batch=16)

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        self.rows.append(len(sessions))
        if self.fixed_s:
            time.sleep(self.fixed_s + self.per_row_s * len(sessions))
        return np.zeros((len(sessions), 1, 7), np.float32)


def in_child(address: str, policy: Policy) -> tuple[int, str]:
    """Serve ``policy`` in a forked process; its pid and address."""
    listener = listen(address)
    pid = os.fork()
    if pid == 0:
        PolicyServer(policy, listener, "secret").serve()
        os._exit(0)
    return pid, address_of(listener)


def observation() -> Observation:
    rng = np.random.default_rng(0)
    images = {f"observation.images.{i}": rng.integers(0, 255, (224, 224, 3), dtype=np.uint8) for i in range(2)}
    return {**images, "observation.state": rng.random(8).astype(np.float32), "task": "do it"}


def round_trip(address: str, n: int = 3000) -> float:
    """Median microseconds."""
    pid, where = in_child(address, Answering(0.0, 0.0))
    client = ServedPolicy(where, "secret", "bench")
    session, seen = client.new_session(EpisodeSpec(0, "s", "t", 0, 0, None, 500), TASK), observation()
    times = []
    for _ in range(n):
        began = time.perf_counter()
        client.act([session], [seen])
        times.append(time.perf_counter() - began)
    client.close()
    end(pid)
    return statistics.median(times[n // 10 :]) * 1e6


def play(ready: Barrier, where: str, length: int, seen: Observation) -> None:
    """One worker: ``length`` requests, each as soon as the last is answered."""
    client = ServedPolicy(where, "secret", "bench")
    session = client.new_session(EpisodeSpec(0, "s", "t", 0, 0, None, 500), TASK)
    ready.wait()
    for _ in range(length):
        client.act([session], [seen])
    client.close()


def throughput(lengths: Sequence[int]) -> tuple[float, float]:
    """Observations a second of one session for each of ``lengths`` (its number of requests), and the ideal."""
    with tempfile.TemporaryDirectory() as folder:
        server, where = in_child(f"unix://{folder}/server", Answering(FIXED_S, PER_ROW_S))
        seen = observation()
        wall = time_of(play, [(where, length, seen) for length in lengths])
        end(server)
    ideal = sum(FIXED_S + PER_ROW_S * sum(length > i for length in lengths) for i in range(max(lengths)))
    return sum(lengths) / wall, sum(lengths) / ideal


def time_of(target: Callable[..., None], clients: Sequence[tuple[object, ...]]) -> float:
    """Seconds that ``clients`` take, each a process: what ``target`` gets, besides the barrier at which all begin."""
    context = multiprocessing.get_context("fork")
    ready = context.Barrier(len(clients) + 1)
    workers = [context.Process(target=target, args=(ready, *arguments)) for arguments in clients]
    for worker in workers:
        worker.start()
    ready.wait()
    began = time.perf_counter()
    for worker in workers:
        worker.join()
        if worker.exitcode:
            raise SystemExit("a process that asked has failed")
    return time.perf_counter() - began


def requests(n_servers: int = 2, n_clients: int = 16, each: int = 8000) -> float:
    """Requests a second that servers of a policy without any work answer together."""
    seen: Observation = {"observation.state": np.zeros(8, np.float32), "task": "do it"}
    with tempfile.TemporaryDirectory() as folder:
        servers = [in_child(f"unix://{folder}/server-{k}", Answering(0.0, 0.0)) for k in range(n_servers)]
        wall = time_of(play, [(servers[k % n_servers][1], each, seen) for k in range(n_clients)])
        for pid, _ in servers:
            end(pid)
    return n_clients * each / wall


def ask_for_many(ready: Barrier, where: str, rounds: int, n_sessions: int = 8) -> None:
    """As that many workers would, for ``rounds`` requests each, at little cost to this machine."""
    layout = ArrayLayout.of({"observation.state": np.zeros(8, np.float32)})
    workers = []
    for number in range(n_sessions):
        stream, memory = connect(where, timeout_s=10.0), SharedBytes.create(layout.n_bytes)
        stream.send(encode(Attach(f"w{number}", "secret")))
        stream.receive()
        stream.send(encode(Open(number, EpisodeSpec(0, "s", "t", 0, 0, None, 500), TASK)))
        stream.send(encode(Share(layout, shared=True)), descriptor=memory.descriptor)
        workers.append((stream, memory))
    ready.wait()
    for request in range(rounds):
        for number, (stream, _) in enumerate(workers):
            stream.send(encode(Act(request, number, {"task": "do it"})))
        for number, (stream, _) in enumerate(workers):
            frame = stream.receive()
            if request % 100 == 0:
                chunk = SERVER_TALK.decode(frame.header)
                assert isinstance(chunk, Chunk)
                assert (chunk.request, chunk.session, len(frame.body)) == (request, number, 28)


def requests_from_elsewhere(n_servers: int = 2, rounds: int = 8000) -> tuple[float, float]:
    """Requests a second that servers of a policy without any work answer together, and a server's CPU microseconds of
    one."""
    with tempfile.TemporaryDirectory() as folder:
        servers = [in_child(f"unix://{folder}/server-{k}", Answering(0.0, 0.0)) for k in range(n_servers)]
        wall = time_of(ask_for_many, [(where, rounds) for _, where in servers])
        cpu = sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid, _ in servers)
        for pid, _ in servers:
            end(pid)
    n = n_servers * 8 * rounds
    return n / wall, 1e6 * cpu / n


def end(pid: int) -> None:
    os.kill(pid, 9)
    os.waitpid(pid, 0)


def main() -> None:
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        figures["round_trip_shared_us"] = round(round_trip(f"unix://{folder}/server"), 1)
    figures["round_trip_tcp_us"] = round(round_trip("tcp://127.0.0.1:0"), 1)
    for name, lengths in (("steady", [150] * 8), ("finishing", [20 * (i + 1) for i in range(8)])):
        reached, ideal = throughput(lengths)
        figures[f"{name}_obs_per_s"] = round(reached, 1)
        figures[f"{name}_ideal_obs_per_s"] = round(ideal, 1)
        figures[f"{name}_share_of_ideal"] = round(reached / ideal, 3)
    figures["requests_per_s"] = round(requests())
    asked, cost = requests_from_elsewhere()
    figures["requests_from_elsewhere_per_s"] = round(asked)
    figures["server_cpu_us_per_request"] = round(cost, 1)
    for name, value in figures.items():
        print(f"{name:32} {value:>12}")
    print(json.dumps({"bench": "serving", "python": sys.version.split()[0], **figures}))


if __name__ == "__main__":
    main()
