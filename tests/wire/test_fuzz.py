"""Whatever bytes come, a decoder gives a value of the declared types or its own error: nothing else.

``ROBOTRIALS_FUZZ`` sets the number of inputs for each decoder (``make fuzz``: a million).
"""

from __future__ import annotations

import io
import os
import random
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from robotrials.control.file_transfer import FileReceiver
from robotrials.control.messages import WORKER_TALK, Artifact, Beat, Done, Hello, Job, Lease, Serve, Serving
from robotrials.datasets.spool import COLUMNS, load_columns
from robotrials.errors import ConfigError, ContractError, DatasetError, RobotrialsError, WireError
from robotrials.plan.config import EnvChoice, PolicyChoice
from robotrials.plan.plan import build_plan
from robotrials.policies.base import PolicySpec
from robotrials.policies.remote.client import ServedPolicy
from robotrials.policies.remote.observation_keys import pick, read_keys
from robotrials.policies.remote.protocol import SERVER_TALK, Act, Attach, Attached, Chunk, Open, Share, Trouble
from robotrials.results.record import EndReason, EpisodeRecord
from robotrials.results.rundir import load_run_json
from robotrials.serving.server import PolicyServer
from robotrials.wire.arrays import ArrayHeader, ArrayLayout
from robotrials.wire.envelope import Message, encode
from robotrials.wire.plain_arrays import decode_plain, encode_openpi, encode_vla_eval
from robotrials.wire.stream import Stream, listen
from tests import toy

N = int(os.environ.get("ROBOTRIALS_FUZZ", "2000"))
SLOW = max(200, N // 10)
"""For decoders that need a socket or a file each time."""


A_DRAW = 100
"""Inputs of one seed that Hypothesis draws: drawing takes longer than most decoders."""


def fuzz(n: int = N) -> Callable[[Callable[[Maker], None]], Callable[[], None]]:
    """Call what is decorated with ``n`` makers. Where it fails, the seed of the one that made it fail is told."""

    def wrap(check: Callable[[Maker], None]) -> Callable[[], None]:
        @settings(max_examples=-(-n // A_DRAW), deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(st.integers(0, 2**63 - 1))
        def draw(seed: int) -> None:
            for own in range(seed, seed + A_DRAW):
                try:
                    check(Maker(own))
                except BaseException:
                    note(f"check(Maker({own}))")
                    raise

        return draw

    return wrap


TASK = toy.Toy(toy.ToyConfig(task="a")).tasks()[0]
EPISODE = build_plan([TASK], 1, 1000).episodes[0]
RECORD = EpisodeRecord(0, 1, "w0", EndReason.SUCCESS, True, 7, 1.5, 0.5, error="é")
LAYOUT = ArrayLayout.of(
    {"observation.image": np.zeros((4, 4, 3), np.uint8), "observation.state": np.zeros(2, np.float32)}
)
SPEC = PolicySpec("p", dict(TASK.observations), 1)

MESSAGES: list[Message] = [
    Hello("w0", 1, "host", "token"),
    Job(
        EnvChoice("toy", {"a": [1, None]}), PolicyChoice("p"), None, (TASK,), {"a": "b"}, "/run", 20.0, 1.0, 9.0, ("x",)
    ),
    Lease(1, EPISODE, 1, "no", "v.mp4"),
    Done(1, RECORD, note="n"),
    Beat("w0", "token", 1, 2, "infer", 3),
    Serve(PolicyChoice("p", "path", {"x": {"y": 1.0}}), True, 1.0),
    Serving("s0", SPEC, {"device": "cpu"}),
    Attach("w0", "token"),
    Attached(SPEC, {"revision": "r"}),
    Open(1, EPISODE, TASK),
    Share(LAYOUT, False),
    Act(1, 1, {"task": "go"}),
    Chunk(1, 1, "<f4", (5, 1), 0.1, 1),
    Trouble(1, "reason", False),
    Artifact(1, "videos/a/b/0.mp4", 0, b"data", True),
]
ARRAYS = {
    "actions": np.zeros((5, 1), np.float32),
    "n": np.float32(1.0),
    "deep": {"image": np.zeros((2, 2, 3), np.uint8)},
}
FOREIGN = [encode_openpi(ARRAYS), encode_vla_eval({"type": "action", "payload": ARRAYS, "seq": 1, "timestamp": 0.0})]

SCALARS = [None, True, 0, 1, -1, 2**40, 2**64 - 1, -(2**63), 1.5, float("nan"), float("inf"), "", "é", b"", b"12345678"]
SCALARS += ["|O", "<f4", b"<f4", b"|O", "|u1", "O8", "(3,)f4", "f4,f4", "<U4", "<M8[s]", "raw", "png"]
EDITS = ("set", "insert", "delete", "cut", "repeat")


class Maker(random.Random):
    """Inputs from a seed. Hypothesis draws the seeds: to draw every part of a value would take it ten times as long."""

    def value(self, depth: int = 3) -> Any:
        kind = self.random()
        if depth == 0 or kind < 0.6:
            return self.choice(SCALARS)
        if kind < 0.8:
            return [self.value(depth - 1) for _ in range(self.randrange(4))]
        return {self.choice(["a", b"a", "data", "x" * 9]): self.value(depth - 1) for _ in range(self.randrange(4))}

    def damaged(self, data: bytes) -> bytes:
        """``data`` after a few edits: what random bytes alone would hardly ever come close to."""
        result = bytearray(data)
        for _ in range(self.randrange(6)):
            kind, place, value = self.choice(EDITS), self.randrange(len(result) + 1), self.randrange(256)
            if kind == "set" and place < len(result):
                result[place] = value
            elif kind == "insert":
                result.insert(place, value)
            elif kind == "delete":
                del result[place : place + 1 + value % 8]
            elif kind == "cut" and self.random() < 0.3:
                del result[place:]
            elif kind == "repeat":
                result[place:place] = result[place : place + value]
        return bytes(result)

    def near(self, samples: list[bytes]) -> bytes:
        return self.damaged(self.choice(samples)) if self.random() < 0.9 else self.randbytes(self.randrange(200))


ENCODED = [encode(message) for message in MESSAGES]


@pytest.mark.parametrize("talk", [WORKER_TALK, SERVER_TALK], ids=["worker", "server"])
def test_messages(talk: Any) -> None:
    @fuzz()
    def check(make: Maker) -> None:
        data = make.near(ENCODED)
        try:
            message = talk.decode(data)
        except WireError:
            return
        assert isinstance(message, Message)
        assert msgpack.unpackb(encode(message), strict_map_key=False)["t"] == message.kind

    check()


@fuzz()
def test_messages_whose_fields_hold_anything(make: Maker) -> None:
    plain = msgpack.unpackb(make.choice(ENCODED))
    target = plain
    while make.random() < 0.7 and (inner := [v for v in target.values() if isinstance(v, dict) and v]):
        target = make.choice(inner)
    for name in make.sample(sorted(target), make.randrange(min(3, len(target)) + 1)):
        target[name] = make.value()
    packed = msgpack.packb(plain)
    for talk in (WORKER_TALK, SERVER_TALK):
        try:
            talk.decode(packed)
        except WireError:
            continue


@fuzz()
def test_foreign_messages(make: Maker) -> None:
    try:
        content = decode_plain(make.near(FOREIGN))
    except WireError:
        return
    check_plain(content)


@fuzz()
def test_foreign_arrays_that_lie(make: Maker) -> None:
    marks: dict[str, Any] = {"__ndarray__": True, "data": bytes(8), "dtype": "<f4", "shape": [2]}
    for name in make.sample(["__image__", "__npgeneric__", "data", "dtype", "shape", "format"], make.randrange(4)):
        marks[name] = make.value(2)
    if make.random() < 0.3:
        marks["shape"] = [make.choice([0, 1, 2, -1, 2**31, 2**63, True, None]) for _ in range(make.randrange(10))]
    for keyed in (marks, {key.encode(): value for key, value in marks.items()}):
        try:
            check_plain(decode_plain(msgpack.packb({"actions": keyed})))
        except WireError:
            continue


def check_plain(value: Any) -> None:
    """Nothing but numbers, text, bytes and containers of them."""
    if isinstance(value, dict):
        for item in value.values():
            check_plain(item)
    elif isinstance(value, list):
        for item in value:
            check_plain(item)
    elif isinstance(value, (np.ndarray, np.generic)):
        assert value.dtype.kind in "biuf"
    else:
        # Timestamps and extension types are msgpack's own; they hold numbers and bytes.
        assert value is None or isinstance(value, (bool, int, float, str, bytes, msgpack.Timestamp, msgpack.ExtType))


DTYPES = [
    "|u1",
    "<f4",
    ">f8",
    "|b1",
    "|O",
    "O",
    "<U4",
    "f4,f4",
    "(9,)f4",
    "<M8[s]",
    "|V8",
    "<c8",
    "",
    "x" * 99,
    "{}",
    "é",
]
SIDES = [0, 1, 2, 3, 5, -1, 2**20, 2**31, 2**40, 2**63, 2**70]


@fuzz()
def test_layouts(make: Maker) -> None:
    arrays = tuple(
        ArrayHeader(
            "x" * make.randrange(3),
            make.choice(DTYPES),
            tuple(make.choice(SIDES) for _ in range(make.randrange(10))),
            make.choice([0, 1, 64, -1, 2**31, 2**66]),
        )
        for _ in range(make.randrange(4))
    )
    layout, source = ArrayLayout(arrays, make.choice([0, 8, 64, 200, -1, 2**30, 2**66])), bytes(make.randrange(300))
    try:
        layout.check()
        read = layout.read(memoryview(source))
    except WireError:
        return
    for array in read.values():
        assert array.dtype.kind in "biuf"
        assert array.nbytes <= len(source)


def framed(message: Message, body: bytes = b"") -> bytes:
    header = encode(message)
    return len(header).to_bytes(4, "little") + len(body).to_bytes(8, "little") + header + body


FRAMES = [framed(message) for message in MESSAGES] + [framed(Chunk(1, 1, "<f4", (5, 1), 0.1, 1), bytes(20))]


@fuzz(SLOW)
def test_streams(make: Maker) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(make.near(FRAMES))
        theirs.close()
        with pytest.raises(WireError):
            read_all(Stream(ours))


def read_all(stream: Stream) -> None:
    while True:
        stream.receive(max_body=10_000, max_header=10_000)


@fuzz(SLOW)
def test_policy_server_outlives_its_clients(make: Maker) -> None:
    host, port = SERVER.address
    frames = [make.damaged(make.choice(FRAMES)) for _ in range(make.randrange(5))]
    knows_token = make.random() < 0.7
    with socket.create_connection((host, port)) as bad:
        bad.settimeout(5)
        try:
            if knows_token:
                bad.sendall(
                    framed(Attach("bad", "secret")) + framed(Open(1, EPISODE, TASK)) + framed(Share(LAYOUT, False))
                )
            bad.sendall(b"".join(frames))
            bad.shutdown(socket.SHUT_WR)
            while bad.recv(1 << 16):
                pass
        except (ConnectionResetError, BrokenPipeError):  # it was closed with bytes unread
            pass
    assert SERVER.thread.is_alive()


class _Server:
    """One for all examples."""

    def __init__(self) -> None:
        listener = listen("tcp://127.0.0.1:0")
        self.address = listener.getsockname()[:2]
        self.policy_server = PolicyServer(toy.Seer(), listener, "secret")
        self.thread = threading.Thread(target=self.policy_server.serve, daemon=True)
        self.thread.start()


SERVER = _Server()


def test_policy_server_still_serves_after_all_that() -> None:
    client = ServedPolicy("tcp://{}:{}".format(*SERVER.address), "secret", "good", connect_s=5.0)
    session = client.new_session(EPISODE, TASK)
    seen = {"observation.image": np.zeros((32, 32, 3), np.uint8), "observation.state": np.zeros(2, np.float32)}
    assert client.act([session], [seen]).shape == (1, 5, 1)
    client.close()


@fuzz(SLOW)
def test_clients_of_a_policy_server_that_says_anything(make: Maker) -> None:
    data = make.near([framed(Attached(SPEC)) + framed(Chunk(2, 1, "<f4", (5, 1), 0.1, 1), bytes(20))])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = ServedPolicy(f"tcp://127.0.0.1:{listener.getsockname()[1]}", "secret", "w0", connect_s=0.0)

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                try:
                    while connection.recv(1 << 16):
                        pass
                except ConnectionResetError:
                    pass

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            client.spec()
            session = client.new_session(EPISODE, TASK)
            actions = client.act([session], [{"observation.state": np.zeros(2, np.float32)}])
            assert actions.dtype.kind in "biuf"
        except (RobotrialsError, OSError):
            pass
        finally:
            client.close()
            thread.join(5)
            assert not thread.is_alive()


@fuzz()
def test_names_of_foreign_observations(make: Maker) -> None:
    message, keys = make.value(), make.value()
    try:
        paths = read_keys(keys if isinstance(keys, dict) else {"a": keys}, "--keys")
        pick(paths, message if isinstance(message, dict) else {"a": message})
    except (ConfigError, ContractError):
        return


@fuzz(SLOW)
def test_run_json(make: Maker) -> None:
    data = (
        b"[" * 100_000
        if make.random() < 0.02
        else make.near([b'{"config": {"seed": [1e999, "\\ud800"]}, "identity": {}}'])
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "run.json").write_bytes(data)
        try:
            assert isinstance(load_run_json(Path(folder)), dict)
        except ConfigError:
            return


PARTS = ["videos", "spool", "..", ".", "", "/", "a", "run.json", "é", "\0", "x" * 300, "a/b", "\\", "~"]


@fuzz(SLOW)
def test_files_of_workers_stay_where_they_belong(make: Maker) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / "run"
        run_dir.mkdir()
        receiver = FileReceiver(run_dir)
        for _ in range(make.randrange(1, 5)):
            path = make.choice(["", "", "/"]) + "/".join(make.choice(PARTS) for _ in range(make.randrange(5)))
            part = Artifact(1, path, make.choice([0, 0, 4, -1, 2**40]), b"data", make.random() < 0.5)
            try:
                receiver.take("w0", part)
            except (WireError, OSError):
                continue
        assert os.listdir(folder) == ["run"]
        assert set(os.listdir(run_dir)) <= {"videos", "spool"}


def spooled() -> bytes:
    memory = io.BytesIO()
    np.savez(memory, action=np.zeros((3, 2), np.float32), done=np.array([False, False, True]))
    return memory.getvalue()


def spooled_objects() -> bytes:
    memory = io.BytesIO()
    np.savez(memory, action=np.array([{}], dtype=object))
    return memory.getvalue()


SPOOLED = [spooled(), spooled_objects()]


@fuzz(SLOW)
def test_what_was_kept_for_a_dataset(make: Maker) -> None:
    data = make.near(SPOOLED)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / COLUMNS).write_bytes(data)
        try:
            columns = load_columns(Path(folder))
        except DatasetError:
            return
        assert all(column.dtype.kind != "O" for column in columns.values())
