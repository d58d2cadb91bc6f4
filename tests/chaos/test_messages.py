"""Replies that belong to another request, come twice, late or cut off: none of them is ever used as an action."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import zmq

from robotrials.control.messages import WORKER_TALK, Done, Hello, Job, Lease, Ready
from robotrials.policies.remote.protocol import SERVER_TALK, Chunk
from robotrials.results.ledger import Ledger
from robotrials.results.record import EndReason, EpisodeRecord
from robotrials.serving.in_process import serve_here
from robotrials.wire.envelope import Message, encode
from robotrials.wire.stream import Frame
from robotrials.wire.transport import connect_dealer, send
from tests.chaos.relay import Garbler, Line
from tests.chaos.runs import TOY, ChaosRun, Outcomes, check, until
from tests.toy import Seer

LAYOUT = ("--eval.n_episodes=8", "--eval.batch_size=2", "--env.step_s=0.005", "--eval.max_attempts=10")
_EVERY = 17
"""Every so many replies one is garbled; an episode has about ten."""


class Garblings:
    """What happens to every 17th reply; ``done`` counts."""

    def __init__(self, kind: str) -> None:
        self._kind, self._seen, self.done = kind, 0, 0
        self._lock = threading.Lock()
        self._kept: tuple[Line, Frame] | None = None

    def __call__(self, line: Line, frame: Frame) -> None:
        with self._lock:
            is_chunk = isinstance(SERVER_TALK.decode(frame.header), Chunk)
            self._seen += is_chunk
            if not is_chunk or self._seen % _EVERY or self.done >= 3:
                line.send(frame)
                return
            getattr(self, self._kind)(line, frame)

    def twice(self, line: Line, frame: Frame) -> None:
        self.done += 1
        line.send(frame)
        line.send(frame)

    def renumbered(self, line: Line, frame: Frame) -> None:
        self.done += 1
        chunk = SERVER_TALK.decode(frame.header)
        assert isinstance(chunk, Chunk)
        line.send(Frame(encode(replace(chunk, request=chunk.request - 1)), frame.body))

    def cut_off(self, line: Line, frame: Frame) -> None:
        self.done += 1
        line.send_half_and_hang_up(frame)

    def never(self, line: Line, frame: Frame) -> None:
        self.done += 1

    def to_another(self, line: Line, frame: Frame) -> None:
        """The replies of two workers change places."""
        if self._kept is None:
            self._kept = (line, frame)
            self._seen -= 1  # the next reply is the other half, if it is another worker's
            return
        other, other_frame = self._kept
        if other.number == line.number:
            line.send(frame)
            return
        self.done += 1
        self._kept = None
        other.send(frame)
        line.send(other_frame)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("twice", "of another request"),
        ("renumbered", "of another request"),
        ("to_another", "of another request"),
        ("cut_off", "in the middle of a message"),
        ("never", "hung: no progress"),
    ],
)
def test_a_garbled_reply_costs_an_attempt_and_is_no_action(
    kind: str, says: str, make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes]
) -> None:
    garble = Garblings(kind)
    with serve_here(Seer()) as options:
        garbler = Garbler(options["url"], garble)
        policy = (
            "--policy.type=remote",
            f"--policy.url={garbler.address}",
            "--policy.token_file=" + options["token_file"],
        )
        run = make_run((*policy, *TOY[1:], *LAYOUT))
        run.begin("--eval.step_timeout=3")
        try:
            status = run.wait()
        finally:
            garbler.close()
    assert garble.done >= 2
    check(run, reference("toy"), status=status, says=[says, "trying again"])
    with Ledger.open(run.directory / "ledger.sqlite", read_only=True) as ledger:
        assert sum(ledger.attempt_counts().values()) > 16


def test_a_policy_server_elsewhere_that_restarts_is_found_again(
    make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes]
) -> None:
    server = make_run((), "server")
    address = f"unix://{server.folder}/policy"
    words = ("serve", "--policy.type=tests.toy:Seer", f"--address={address}")
    first = server.command(*words)
    until(lambda: "serving seer at" in server.said, lambda: server.said)
    slowly = [flag.replace("step_s=0.005", "step_s=0.03") for flag in LAYOUT]
    run = make_run(("--policy.type=remote", f"--policy.url={address}", *TOY[1:], *slowly), "run")
    run.begin()
    run.wait_for_records(2)
    assert not run.is_over
    first.kill()
    first.wait()
    second = server.command(*words)
    status = run.wait()
    second.terminate()
    assert second.wait() == 0
    check(run, reference("toy"), status=status)  # an attempt errs only if it was asking when the server was killed


class Rogue:
    """Speaks the coordinator's protocol, knows the token, and does not do what it says."""

    def __init__(self, address: str, token: str, name: str) -> None:
        self.name = name
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.socket = connect_dealer(self._context, address)
        send(self.socket, Hello(name, os.getpid(), "here", token, joins=True, apart=True))

    def hear(self) -> Message:
        assert self.socket.poll(60_000), "the coordinator says nothing"
        return WORKER_TALK.decode(self.socket.recv())

    def get_ready(self, packages: dict[str, str], python: str) -> None:
        assert isinstance(self.hear(), Job)
        needs = Seer().spec()
        send(self.socket, Ready(self.name, needs, {}, python, packages))

    def lease(self) -> Lease:
        message = self.hear()
        assert isinstance(message, Lease)
        return message

    def close(self) -> None:
        self._context.destroy(linger=200)


@contextmanager
def _rogue(run: ChaosRun, name: str) -> Iterator[Rogue]:
    door = json.loads((run.directory / "connect.json").read_text())
    identity = json.loads((run.directory / "run.json").read_text())["identity"]
    rogue = Rogue(door["address"], door["token"], name)
    try:
        packages = {**identity["benchmark"]["packages"], "robotrials": identity["robotrials"]}
        rogue.get_ready(packages, identity["python"])
        yield rogue
    finally:
        rogue.close()


def _forged(episode: int, attempt: int, worker: str) -> EpisodeRecord:
    return EpisodeRecord(episode, attempt, worker, EndReason.SUCCESS, True, 1, 99.0, 99.0)


def test_results_for_leases_that_a_worker_does_not_hold_change_nothing(
    make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes]
) -> None:
    run = make_run((*TOY, "--eval.n_episodes=8", "--eval.runtime=external", "--eval.listen=tcp://127.0.0.1:0"))
    run.begin()
    until(lambda: (run.directory / "connect.json").exists(), lambda: run.said)
    with _rogue(run, "of-another") as rogue:
        lease = rogue.lease()
        send(rogue.socket, Done(lease.lease, _forged(lease.episode.id + 1, lease.attempt, rogue.name)))
        until(lambda: "with a record of another episode" in run.said, lambda: run.said)
    with _rogue(run, "of-nobody") as rogue:
        lease = rogue.lease()
        send(rogue.socket, Done(lease.lease + 1000, _forged(lease.episode.id, lease.attempt, rogue.name)))
        rogue.socket.send(encode(Done(lease.lease, _forged(lease.episode.id, lease.attempt, rogue.name)))[:-7])
        until(lambda: "ignored a message that is none" in run.said, lambda: run.said)
        send(rogue.socket, Done(lease.lease, _forged(lease.episode.id, lease.attempt + 1, rogue.name)))
        until(lambda: run.said.count("with a record of another episode") == 2, lambda: run.said)
    helper = run.command("worker", f"--run={run.directory}", "--n=2")
    status = run.wait()
    assert run.wait(helper) == 0
    check(run, reference("toy"), status=status)
