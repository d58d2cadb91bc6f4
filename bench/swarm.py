"""Simulated workers for bench/coordinator_load.py: many sockets, no simulator. Speaks the real protocol."""

from __future__ import annotations

import argparse
import heapq
import os
import socket
import time

import zmq

from robotrials.control.heartbeat import TOKEN_VARIABLE
from robotrials.control.messages import WORKER_TALK, Beat, Done, Hello, Job, Lease, Ready, Stop
from robotrials.policies.base import PolicySpec
from robotrials.results.record import EndReason, EpisodeRecord, Timings
from robotrials.wire.envelope import encode
from robotrials.wire.transport import connect_dealer, send

NEEDS = PolicySpec("simulated")


def result(lease: Lease, worker: str, seconds: float) -> Done:
    episode = lease.episode
    record = EpisodeRecord(
        episode=episode.id,
        attempt=lease.attempt,
        worker=worker,
        end=EndReason.SUCCESS,
        success=True,
        steps=episode.seed % 100,
        reward_sum=float(episode.seed),
        reward_max=1.0,
        looks=10,
        timings=Timings(simulate=seconds, total=seconds),
        started_at=time.time(),
    )
    return Done(lease.lease, record)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--connect", required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--episode-s", type=float, required=True)
    parser.add_argument("--beat-s", type=float, default=1.0)
    arguments = parser.parse_args()
    token = os.environ[TOKEN_VARIABLE]

    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    context.set(zmq.MAX_SOCKETS, arguments.workers + 16)
    poller = zmq.Poller()
    names: dict[zmq.Socket[bytes], str] = {}
    for i in range(arguments.workers):
        dealer = connect_dealer(context, arguments.connect)
        names[dealer] = f"w{i}"
        poller.register(dealer, zmq.POLLIN)
        send(dealer, Hello(f"w{i}", os.getpid(), socket.gethostname(), token))

    due: list[tuple[float, int, zmq.Socket[bytes], bytes]] = []
    free_at: dict[zmq.Socket[bytes], float] = {}
    sent, next_beat = 0, time.monotonic() + arguments.beat_s
    open_sockets = set(names)
    while open_sockets:
        wait = max(0.0, due[0][0] - time.monotonic()) if due else 0.05
        for dealer, _ in poller.poll(round(min(wait, 0.05) * 1000)):
            message = WORKER_TALK.decode(dealer.recv())
            if isinstance(message, Job):
                send(dealer, Ready(names[dealer], NEEDS, {}))
            elif isinstance(message, Lease):
                reply = encode(result(message, names[dealer], arguments.episode_s))
                sent += 1
                # A lease that came ahead begins when the one before it is done.
                free_at[dealer] = max(time.monotonic(), free_at.get(dealer, 0.0)) + arguments.episode_s
                heapq.heappush(due, (free_at[dealer], sent, dealer, reply))
            elif isinstance(message, Stop):
                poller.unregister(dealer)
                open_sockets.discard(dealer)
        now = time.monotonic()
        while due and due[0][0] <= now:
            _, _, dealer, reply = heapq.heappop(due)
            dealer.send(reply)
        if now >= next_beat:
            next_beat = now + arguments.beat_s
            for dealer, name in names.items():
                if dealer in open_sockets:
                    send(dealer, Beat(name, token, 1, sent, "simulate", 1))


if __name__ == "__main__":
    main()
