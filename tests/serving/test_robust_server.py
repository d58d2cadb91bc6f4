"""A policy server outlives whatever its policy hands out or raises, and whoever connects to it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robotrials.benchmarks.base import Observation
from robotrials.errors import ConfigError, ContractError
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.policies.chunks import MAX_CHUNK_BYTES, checked_chunks
from robotrials.policies.remote.client import PolicyServerError, ServedPolicy
from robotrials.policies.remote.protocol import Attach
from robotrials.serving import admission, connections
from robotrials.serving.server import PolicyServer
from robotrials.wire.envelope import encode
from robotrials.wire.ready_stream import ReadyStream
from robotrials.wire.stream import PREFIX, ConnectionLostError, Stream, listen
from tests import toy
from tests.serving.test_client_server import EPISODES, TASK, observation, serving


class Odd(toy.Seer):
    """For the instruction ``sentence 0`` it does as ``odd`` does, otherwise as it should."""

    def __init__(self, odd: Callable[[], Any]) -> None:
        super().__init__()
        self._odd = odd

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        if any(seen["task"] == "sentence 0" for seen in observations):
            return self._odd()  # type: ignore[no-any-return]
        return super().act(sessions, observations)


class UnreadableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def raising(error: BaseException) -> Callable[[], Any]:
    def act() -> Any:
        raise error

    return act


CASES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "none": (lambda: None, ContractError, "returned None as actions"),
    "dict": (lambda: {"action": np.zeros((1, 1, 1))}, ContractError, "returned a dict as actions"),
    "ragged": (lambda: [[[0.0], [0.0, 1.0]]], ContractError, "a ragged list"),
    "objects": (lambda: np.array([[[0.5, None]]], object), ContractError, "dtype object"),
    "texts": (lambda: np.array([[["0.5"]]]), ContractError, "dtype <U3"),
    "complex": (lambda: np.zeros((1, 1, 1), complex), ContractError, "dtype complex128"),
    "records": (lambda: np.zeros((1, 1, 1), [("x", "f4")]), ContractError, "dtype"),
    "raw": (lambda: np.zeros((1, 1, 1), "V2"), ContractError, r"dtype \|V2"),
    "batch": (lambda: np.zeros((2, 1, 1)), ContractError, r"shape \(2, 1, 1\) for 1 sessions"),
    "flat": (lambda: np.zeros(1), ContractError, r"shape \(1,\)"),
    "empty": (lambda: np.zeros((1, 0, 1)), ContractError, r"shape \(1, 0, 1\)"),
    "huge": (lambda: np.broadcast_to(np.float32(0), (1, 1 << 40, 7)), ContractError, "the limit is 16,777,216"),
    "memory": (raising(MemoryError()), PolicyServerError, "raised MemoryError"),
    "exit": (raising(SystemExit(3)), PolicyServerError, "raised SystemExit: 3"),
    "interrupt": (raising(KeyboardInterrupt()), PolicyServerError, "raised KeyboardInterrupt"),
    "surrogate": (raising(ValueError("a\udcffb")), PolicyServerError, r"raised ValueError: a\?b"),
    "long": (raising(ValueError("x" * (1 << 25))), PolicyServerError, r"xxx\.\.\.$"),
    "unreadable": (raising(UnreadableError()), PolicyServerError, "text cannot be read: RuntimeError"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_policy_hands_out_or_raises_is_an_error_of_that_session_alone(tmp_path: Path, case: str) -> None:
    odd, kind, words = CASES[case]
    with serving(Odd(odd), f"unix://{tmp_path}/policy") as where:
        good, bad = ServedPolicy(where, "secret", "good"), ServedPolicy(where, "secret", "bad")
        session, other = good.new_session(EPISODES[0], TASK), bad.new_session(EPISODES[1], TASK)
        for _ in range(2):
            with pytest.raises(kind, match=words):
                bad.act([other], [observation(0)])
            assert good.act([session], [observation(1)]).shape == (1, 5, 1)
        assert bad.act([other], [observation(1)]).shape == (1, 5, 1)
        good.close()
        bad.close()


def test_dtypes_that_numpy_lacks_become_float32_with_the_same_values() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        given = np.array([[[0.5, -1.25, 3.0]]]).astype(getattr(ml_dtypes, name))
        chunks = checked_chunks("p", given, 1)
        assert chunks.dtype == np.float32
        np.testing.assert_array_equal(chunks, [[[0.5, -1.25, 3.0]]])


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f2", "f4", "f8", ">f4"])
def test_dtypes_that_can_be_sent_arrive_as_they_are(tmp_path: Path, dtype: str) -> None:
    given = np.array([[[0, 1], [1, 0]]], dtype)
    with serving(Odd(lambda: given[:, ::-1]), f"unix://{tmp_path}/policy") as where:
        client = ServedPolicy(where, "secret", "w0")
        got = client.act([client.new_session(EPISODES[0], TASK)], [observation(0)])
        assert got.dtype == given.dtype
        np.testing.assert_array_equal(got, given[:, ::-1])
        client.close()


def test_largest_chunk_arrives_whole_and_a_larger_one_is_named(tmp_path: Path) -> None:
    largest = np.arange(MAX_CHUNK_BYTES // 8, dtype=np.float64).reshape(1, -1, 1)
    sizes = iter([largest, np.concatenate([largest, largest[:, :1]], axis=1)])
    with serving(Odd(lambda: next(sizes)), f"unix://{tmp_path}/policy") as where:
        client = ServedPolicy(where, "secret", "w0")
        session = client.new_session(EPISODES[0], TASK)
        np.testing.assert_array_equal(client.act([session], [observation(0)]), largest)
        with pytest.raises(ContractError, match="the limit is"):
            client.act([session], [observation(0)])
        client.close()


def test_session_that_is_none_is_an_error_of_its_episode(tmp_path: Path) -> None:
    class Forgetful(toy.Seer):
        def new_session(self, episode: Any, task: Any, env: Any = None) -> Session:
            return None if episode.index else super().new_session(episode, task, env)  # type: ignore[return-value]

    with serving(Forgetful(), f"unix://{tmp_path}/policy") as where:
        good, bad = ServedPolicy(where, "secret", "good"), ServedPolicy(where, "secret", "bad")
        session, other = good.new_session(EPISODES[0], TASK), bad.new_session(EPISODES[1], TASK)
        with pytest.raises(ContractError, match="new_session of policy seer returned None"):
            bad.act([other], [observation(1)])
        assert good.act([session], [observation(1)]).shape == (1, 5, 1)
        good.close()
        bad.close()


def test_description_that_cannot_be_sent_is_refused_before_anybody_is_served(tmp_path: Path) -> None:
    listener = listen(f"unix://{tmp_path}/policy")
    with pytest.raises(ConfigError, match="describes itself with what cannot be sent"):
        PolicyServer(toy.Seer(), listener, "secret", {"gain": np.float32(1)})
    listener.close()


# Who connects -----------------------------------------------------------------------------------------------------


def strangers(where: str, n: int, data: bytes) -> list[socket.socket]:
    """``n`` connections that send ``data`` and no more."""
    host, _, port = where.removeprefix("tcp://").rpartition(":")
    made = []
    for _ in range(n):
        made.append(socket.create_connection((host, int(port)), timeout=10))
        made[-1].sendall(data)
    return made


def is_closed(connection: socket.socket) -> bool:
    """By the peer; waits for that."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:  # with bytes unread
        return True


HALVES = {
    "silent": b"",
    "one byte": b"\x01",
    "half a prefix": PREFIX.pack(100, 0)[:6],
    "half a header": PREFIX.pack(1000, 0) + b"x" * 400,
    "half an attach": PREFIX.pack(len(encode(Attach("w", "t"))), 0) + encode(Attach("w", "t"))[:-1],
}


@pytest.mark.parametrize("kind", HALVES)
def test_authorised_client_is_answered_while_strangers_hold_half_messages(kind: str) -> None:
    with serving(toy.Seer(), "tcp://127.0.0.1:0") as where:
        held = strangers(where, 100, HALVES[kind])
        began = time.monotonic()
        client = ServedPolicy(where, "secret", "w0")
        session = client.new_session(EPISODES[0], TASK)
        for look in range(20):
            assert client.act([session], [observation(look + 1)]).shape == (1, 5, 1)
        assert time.monotonic() - began < admission.STRANGER_S, "it did not wait for any of them"
        client.close()
        for each in held:
            each.close()


def test_client_that_stops_in_the_middle_of_a_message_holds_up_nobody() -> None:
    with serving(toy.Seer(), "tcp://127.0.0.1:0") as where:
        (half,) = strangers(where, 1, b"")
        stream = Stream(half)
        stream.send(encode(Attach("half", "secret")))
        stream.receive()
        half.sendall(PREFIX.pack(50, 0) + b"x")
        client = ServedPolicy(where, "secret", "w0")
        began = time.monotonic()
        assert client.act([client.new_session(EPISODES[0], TASK)], [observation(1)]).shape == (1, 5, 1)
        assert time.monotonic() - began < connections.CLIENT_S
        client.close()
        stream.close()


def test_oldest_stranger_makes_room_and_a_client_that_is_in_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MAX_STRANGERS", 5)
    with serving(toy.Seer(), "tcp://127.0.0.1:0") as where:
        client = ServedPolicy(where, "secret", "w0")
        session = client.new_session(EPISODES[0], TASK)
        client.act([session], [observation(1)])
        held = strangers(where, 8, b"\x01")
        assert all(is_closed(gone) for gone in held[:3])
        assert client.act([session], [observation(1)]).shape == (1, 5, 1)
        for kept in held[3:]:
            kept.setblocking(False)
            with pytest.raises(BlockingIOError):
                kept.recv(1)
        client.close()
        for each in held:
            each.close()


def test_stranger_that_is_never_let_in_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "STRANGER_S", 0.2)
    with serving(toy.Seer(), "tcp://127.0.0.1:0") as where:
        for each in strangers(where, 2, b"\x01"):
            assert is_closed(each)
            each.close()


def test_server_without_descriptors_drops_strangers_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A listener that says EMFILE, as the kernel does when the limit is reached."""

    class Full(socket.socket):
        full = False

        def accept(self) -> Any:
            if Full.full:
                Full.full = False
                raise OSError(24, "Too many open files")
            return super().accept()

    plain = listen("tcp://127.0.0.1:0")
    address = plain.getsockname()
    listener = Full(fileno=plain.detach())
    stop = threading.Event()
    server = PolicyServer(toy.Seer(), listener, "secret")
    thread = threading.Thread(target=server.serve, args=(lambda: not stop.is_set(),))
    thread.start()
    try:
        where = f"tcp://127.0.0.1:{address[1]}"
        (first,) = strangers(where, 1, b"\x01")
        client = ServedPolicy(where, "secret", "w0")
        session = client.new_session(EPISODES[0], TASK)
        client.act([session], [observation(1)])
        Full.full = True
        (second,) = strangers(where, 1, b"\x01")
        assert is_closed(first), "the oldest stranger made room"
        assert client.act([session], [observation(1)]).shape == (1, 5, 1)
        assert "Too many open files (ulimit -n is" in caplog.text
        for each in (first, second):
            each.close()
        client.close()
    finally:
        stop.set()
        thread.join()
        listener.close()


def test_client_that_does_not_read_its_answers_holds_up_nobody(tmp_path: Path) -> None:
    chunk = np.zeros((1, MAX_CHUNK_BYTES // 8, 1))
    with serving(Odd(lambda: chunk), f"unix://{tmp_path}/policy") as where:
        good, deaf = ServedPolicy(where, "secret", "good"), ServedPolicy(where, "secret", "deaf")
        session, other = good.new_session(EPISODES[0], TASK), deaf.new_session(EPISODES[1], TASK)
        deaf._receive = lambda stream: (_ for _ in ()).throw(KeyError())  # type: ignore[method-assign]
        with pytest.raises(KeyError):
            deaf.act([other], [observation(0)])
        began = time.monotonic()
        assert good.act([session], [observation(1)]).shape == (1, 5, 1)
        assert time.monotonic() - began < connections.CLIENT_S
        good.close()
        deaf.close()


# One connection ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 70_000, 3_000_000])
def test_messages_in_pieces_and_several_at_once_arrive_as_they_were_sent(size: int) -> None:
    left, right = socket.socketpair()
    ready = ReadyStream(right)
    body = np.random.default_rng(0).bytes(size)
    data = b"".join(PREFIX.pack(3, size) + word + body for word in (b"one", b"two"))
    got = []

    def pieces() -> None:
        step = max(1, len(data) // 7)
        for start in range(0, len(data), step):
            left.sendall(data[start : start + step])

    thread = threading.Thread(target=pieces)
    thread.start()
    deadline = time.monotonic() + 20
    while len(got) < 2 and time.monotonic() < deadline:
        ready.fill()
        while (frame := ready.next_frame()) is not None:
            got.append((frame.header, bytes(frame.body)))
    thread.join()
    assert got == [(b"one", body), (b"two", body)]
    assert ready.is_idle
    left.close()
    with pytest.raises(ConnectionLostError):
        ready.fill()
    ready.close()


def test_what_the_peer_does_not_read_is_kept_up_to_a_limit() -> None:
    left, right = socket.socketpair()
    ready, peer = ReadyStream(right), Stream(left)
    body = np.random.default_rng(0).bytes(5_000_000)
    ready.send(b"first", memoryview(body))
    ready.send(b"second")
    assert ready.has_unsent

    def flush() -> None:
        while ready.has_unsent:
            ready.flush()

    thread = threading.Thread(target=flush)
    thread.start()
    assert (peer.receive().header, peer.receive().header) == (b"first", b"second")
    thread.join()
    for _ in range(13):
        ready.send(b"again", memoryview(body))
    with pytest.raises(ConnectionLostError, match="unread"):
        ready.send(b"again", memoryview(body))
    ready.close()
    peer.close()


def test_spec_alone_is_needed_of_a_policy(tmp_path: Path) -> None:
    class Bare(Policy):
        def spec(self) -> PolicySpec:
            return PolicySpec("bare")

        def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
            for session in sessions:
                session.rng = None  # type: ignore[assignment]
            if len(sessions) > 1:
                raise RuntimeError("one at a time")
            return np.zeros((1, 1, 1))

    with serving(Bare(), f"unix://{tmp_path}/policy") as where:
        results: list[tuple[int, ...]] = []

        def play(number: int) -> None:
            client = ServedPolicy(where, "secret", f"w{number}")
            session = client.new_session(EPISODES[number], TASK)
            results.extend(client.act([session], [observation(1)]).shape for _ in range(30))
            client.close()

        threads = [threading.Thread(target=play, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [(1, 1, 1)] * 120
