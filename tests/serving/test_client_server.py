"""A policy behind a server answers as it does in the process, over both transports; wrong peers are refused."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from robotrials.benchmarks.base import Observation
from robotrials.errors import ContractError, RobotrialsError, WireError
from robotrials.plan.plan import build_plan
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.policies.remote.client import PolicyServerError, ServedPolicy
from robotrials.policies.remote.protocol import SERVER_TALK, Act, Attach, Attached, Chunk, Open, Share
from robotrials.serving.server import PolicyServer
from robotrials.wire.arrays import ArrayLayout
from robotrials.wire.envelope import encode
from robotrials.wire.stream import ConnectionLostError, Stream, address_of, connect, listen
from tests import toy

TASK = toy.Toy(toy.ToyConfig(task="a")).tasks()[0]
EPISODES = build_plan([TASK], 4, 1000).episodes


@contextmanager
def serving(policy: Policy, address: str) -> Iterator[str]:
    listener = listen(address)
    stop = threading.Event()
    server = PolicyServer(policy, listener, "secret")
    thread = threading.Thread(target=server.serve, args=(lambda: not stop.is_set(),))
    thread.start()
    try:
        yield address_of(listener)
    finally:
        stop.set()
        thread.join()
        listener.close()


@pytest.fixture(params=["unix", "tcp"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"unix://{tmp_path}/policy" if request.param == "unix" else "tcp://127.0.0.1:0"


def observation(seed: int) -> Observation:
    rng = np.random.default_rng(seed)
    return {
        "observation.image": rng.integers(0, 255, (32, 32, 3), dtype=np.uint8),
        "observation.state": rng.random(2).astype(np.float32),
        "task": f"sentence {seed}",
    }


def test_served_policy_acts_bit_for_bit_as_the_policy_itself(address: str) -> None:
    alone = toy.Seer()
    with serving(toy.Seer(), address) as where:
        client = ServedPolicy(where, "secret", "w0")
        assert client.spec() == alone.spec()
        for episode in EPISODES[:2]:
            served, direct = client.new_session(episode, TASK), alone.new_session(episode, TASK)
            for look in range(5):
                seen = observation(look)
                np.testing.assert_array_equal(client.act([served], [seen]), alone.act([direct], [seen]))
        client.close()


def test_observation_arrives_unchanged_whatever_its_layout(address: str) -> None:
    class Mirror(Policy):
        def spec(self) -> PolicySpec:
            return PolicySpec("mirror")

        def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
            (seen,) = observations
            assert seen["task"] == "étude"
            arrays = [np.asarray(v, np.float64).ravel() for v in seen.values() if isinstance(v, np.ndarray)]
            return np.concatenate(arrays).reshape(1, -1, 1)

    rng = np.random.default_rng(0)
    with serving(Mirror(), address) as where:
        client = ServedPolicy(where, "secret", "w0")
        session = client.new_session(EPISODES[0], TASK)
        for shape in ((3, 5), (300, 500, 3), (1,), (0, 4), (2, 3, 5)):
            image = rng.integers(0, 255, shape, dtype=np.uint8)
            state = rng.random(7)
            got = client.act([session], [{"image": image, "state": state, "task": "étude"}])
            np.testing.assert_array_equal(got.ravel(), np.concatenate([image.ravel().astype(float), state]))
        client.close()


def test_many_sessions_at_once_get_what_each_gets_alone(address: str) -> None:
    alone = toy.Seer()
    results: dict[int, np.ndarray] = {}

    def play(number: int, where: str) -> None:
        client = ServedPolicy(where, "secret", f"w{number}")
        session = client.new_session(EPISODES[number], TASK)
        results[number] = np.concatenate([client.act([session], [observation(look)]) for look in range(30)])
        client.close()

    with serving(toy.Seer(), address) as where:
        threads = [threading.Thread(target=play, args=(number, where)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for number, got in results.items():
        session = alone.new_session(EPISODES[number], TASK)
        right = np.concatenate([alone.act([session], [observation(look)]) for look in range(30)])
        np.testing.assert_array_equal(got, right)
    assert len(results) == 4


def test_error_of_the_policy_reaches_its_worker_with_its_message(address: str) -> None:
    class Moody(toy.Seer):
        def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
            if observations[0]["task"] == "sentence 1":
                raise KeyError("no such token")
            if observations[0]["task"] == "sentence 2":
                raise ContractError("the image is upside down")
            return super().act(sessions, observations)

    with serving(Moody(), address) as where:
        client = ServedPolicy(where, "secret", "w0")
        session = client.new_session(EPISODES[0], TASK)
        with pytest.raises(PolicyServerError, match="raised KeyError: 'no such token'"):
            client.act([session], [observation(1)])
        with pytest.raises(ContractError, match="upside down"):
            client.act([session], [observation(2)])
        assert client.act([session], [observation(3)]).shape == (1, 5, 1)
        client.close()


def test_wrong_token_is_refused(address: str) -> None:
    with serving(toy.Seer(), address) as where, pytest.raises(RobotrialsError, match="the token is not the one"):
        ServedPolicy(where, "guess", "w0").spec()


def test_server_that_dies_is_noticed_and_its_successor_is_used(tmp_path: Path) -> None:
    address = f"unix://{tmp_path}/policy"
    with serving(toy.Seer(), address):
        client = ServedPolicy(address, "secret", "w0")
        session = client.new_session(EPISODES[0], TASK)
        client.act([session], [observation(0)])
    with pytest.raises(ConnectionLostError):
        client.act([session], [observation(1)])
    (tmp_path / "policy").unlink()
    with serving(toy.Seer(), address):
        session = client.new_session(EPISODES[0], TASK)
        assert client.act([session], [observation(0)]).shape == (1, 5, 1)
        client.close()


def false_server(listener: socket.socket, *replies: object) -> None:
    """Attaches, then answers the first Act with ``replies``."""
    connection, _ = listener.accept()
    stream = Stream(connection)
    assert isinstance(SERVER_TALK.decode(stream.receive().header), Attach)
    stream.send(encode(Attached(PolicySpec("false"))))
    while not isinstance(message := SERVER_TALK.decode(stream.receive().header), Act):
        pass
    actions = np.full((1, 1), 666.0)
    for change in replies:
        chunk = Chunk(message.request, message.session, actions.dtype.str, actions.shape, 0.0, 1)
        stream.send(encode(change(chunk)), actions.data.cast("B"))  # type: ignore[operator]
    stream.close()


@pytest.mark.parametrize("field", ["request", "session"])
def test_reply_to_another_request_is_never_an_action(tmp_path: Path, field: str) -> None:
    listener = listen(f"unix://{tmp_path}/policy")
    change = lambda chunk: replace(chunk, **{field: getattr(chunk, field) - 1})  # noqa: E731
    thread = threading.Thread(target=false_server, args=(listener, change))
    thread.start()
    client = ServedPolicy(address_of(listener), "secret", "w0")
    session = client.new_session(EPISODES[0], TASK)
    with pytest.raises(WireError, match="of another request"):
        client.act([session], [observation(0)])
    thread.join()
    listener.close()


def test_episode_that_the_policy_cannot_begin_errs_alone(address: str) -> None:
    with serving(toy.Seer(), address) as where:
        good, bad = (ServedPolicy(where, "secret", name) for name in ("good", "bad"))
        session = good.new_session(EPISODES[0], TASK)
        impossible = bad.new_session(replace(EPISODES[0], seed=0), TASK)
        bad._tell(Open(impossible.number, replace(EPISODES[0], seed=-1), TASK))  # type: ignore[attr-defined]
        with pytest.raises(PolicyServerError, match="the policy raised ValueError"):
            bad.act([impossible], [observation(0)])
        assert good.act([session], [observation(0)]).shape == (1, 5, 1)
        good.close()
        bad.close()


def test_body_longer_than_the_declared_observation_is_refused_unread(address: str) -> None:
    with serving(toy.Seer(), address) as where:
        stream = connect(where, 5.0)
        stream.send(encode(Attach("w0", "secret")))
        stream.receive()
        layout = ArrayLayout.of({"observation.state": np.zeros(2)})
        stream.send(encode(Open(1, EPISODES[0], TASK)))
        stream.send(encode(Share(layout, shared=False)))
        stream.send(encode(Act(1, 1, {})), memoryview(bytes(layout.n_bytes + 1)))
        with pytest.raises(ConnectionLostError):
            stream.receive()
        stream.close()


def closed_by_peer(end: socket.socket) -> bool:
    """After the last byte this side will ever send."""
    try:
        end.shutdown(socket.SHUT_WR)
        return end.recv(100) == b""
    except ConnectionResetError:  # it was closed with bytes unread
        return True


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 64,
        b"\x00" * 12,
        encode(Attach("w0", "secret"))[:20],
        b"\x04\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\x7fabcd",
    ],
    ids=["http", "all-ones", "zeros", "cut-off", "body-too-large"],
)
def test_garbage_costs_its_sender_the_connection_and_nobody_else(tmp_path: Path, data: bytes) -> None:
    with serving(toy.Seer(), f"unix://{tmp_path}/policy") as where:
        good = ServedPolicy(where, "secret", "w0")
        session = good.new_session(EPISODES[0], TASK)
        bad = socket.socket(socket.AF_UNIX)
        bad.connect(where.removeprefix("unix://"))
        bad.settimeout(5)
        bad.sendall(data)
        assert closed_by_peer(bad)
        assert good.act([session], [observation(0)]).shape == (1, 5, 1)
        good.close()
        bad.close()


def test_act_before_attach_or_layout_is_refused(address: str) -> None:
    with serving(toy.Seer(), address) as where:
        for opening in ([], [Attach("w0", "secret"), Open(1, EPISODES[0], TASK)]):
            stream = connect(where, 5.0)
            for message in opening:
                stream.send(encode(message))
            stream.send(encode(Act(1, 1, {})))
            if opening:
                assert isinstance(SERVER_TALK.decode(stream.receive().header), Attached)
            with pytest.raises(ConnectionLostError):
                stream.receive()
            stream.close()


def test_layout_that_lies_about_shared_memory_is_refused(tmp_path: Path) -> None:
    with serving(toy.Seer(), f"unix://{tmp_path}/policy") as where:
        stream = connect(where, 5.0)
        stream.send(encode(Attach("w0", "secret")))
        stream.receive()
        layout = ArrayLayout.of({"observation.state": np.zeros(1_000_000)})
        read, write = socket.socketpair()
        stream.send(encode(Share(layout, shared=True)), descriptor=read.fileno())
        with pytest.raises(ConnectionLostError):
            stream.receive()
        for end in (read, write):
            end.close()
        stream.close()
