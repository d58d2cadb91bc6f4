"""A peer's bytes become a message of a known kind with fields of the declared types, or a WireError."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotrials.control.messages import WORKER_TALK, Beat, Done, Hello, Job, Lease, Ready, Serve, Serving, Stop
from robotrials.errors import WireError
from robotrials.plan.config import EnvChoice, PolicyChoice
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import Feature
from robotrials.policies.base import PolicySpec
from robotrials.results.record import EndReason, EpisodeRecord
from robotrials.wire.envelope import MAX_MESSAGE_BYTES, PROTOCOL, Message, Vocabulary, encode
from tests.toy import Toy, ToyConfig

RECORD = EpisodeRecord(3, 1, "w0", EndReason.TIME_LIMIT, False, 60, -1.5, -0.25, error=None)
EXAMPLES: list[Message] = [
    Hello("w0", 12, "host", "secret"),
    Job(
        EnvChoice("metaworld", {"task": "easy"}),
        PolicyChoice("expert", None, {"n": "3"}),
        None,
        tuple(Toy(ToyConfig(task="a,b")).tasks()),
        {"observation.image": "observation.images.top"},
        "/runs/x",
        20.0,
        1.0,
        120.0,
    ),
    Ready("w0", PolicySpec("p", {"task": None, "observation.state": Feature((4,))}, 4), {"torch": "2.11"}),
    Serve(PolicyChoice(None, "org/name"), True, 1.0),
    Serving("s0", PolicySpec("p", max_batch=8), {}),
    Lease(5, EpisodeSpec(0, "s", "t", 0, 1000, None, 500), 1, "yes", "videos/s/t/0.mp4"),
    Done(5, RECORD, True, False),
    Beat("w0", "secret", 5, 100, "simulate", 7),
    Stop("complete"),
]


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda m: m.kind)
def test_message_survives_the_wire(message: Message) -> None:
    assert WORKER_TALK.decode(encode(message)) == message


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda m: m.kind)
def test_every_cut_is_refused(message: Message) -> None:
    data = encode(message)
    for length in range(0, len(data), 7):
        with pytest.raises(WireError):
            WORKER_TALK.decode(data[:length])


def changed(message: Message, **fields: object) -> bytes:
    return msgpack.packb({**msgpack.unpackb(encode(message)), **fields})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (changed(Stop("x"), v=PROTOCOL + 1), "protocol 2, this is 1"),
        (changed(Stop("x"), t="run"), "unknown message kind 'run'"),
        (changed(Stop("x"), t=["stop"]), "unknown message kind"),
        (changed(Stop("x"), reason=3), "Stop.reason: expected str, got int"),
        (changed(Stop("x"), more=1), "unknown fields: more"),
        (msgpack.packb({"v": PROTOCOL, "t": "stop"}), "unknown fields: reason"),
        (changed(Hello("w", 1, "h", "t"), pid=True), "Hello.pid: expected int, got bool"),
        (changed(Done(5, RECORD, True, False), record={}), "Done.record"),
        (msgpack.packb([1, 2]), "a list"),
        (b"", "not a message"),
        (b"\x00" * (MAX_MESSAGE_BYTES + 1), "exceeds the limit"),
    ],
)
def test_refusal_names_what_was_wrong(data: bytes, words: str) -> None:
    with pytest.raises(WireError, match=words):
        WORKER_TALK.decode(data)


@given(st.binary(max_size=300))
def test_random_bytes_are_refused_and_never_crash(data: bytes) -> None:
    with pytest.raises(WireError):
        WORKER_TALK.decode(data)


json_like = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(EXAMPLES), st.data())
def test_any_field_replaced_by_anything_is_a_message_or_refused(message: Message, data: st.DataObject) -> None:
    plain = msgpack.unpackb(encode(message))
    plain[data.draw(st.sampled_from(sorted(plain)))] = data.draw(json_like)
    try:
        decoded = WORKER_TALK.decode(msgpack.packb(plain))
    except WireError:
        return
    assert isinstance(decoded, Message)


def test_vocabulary_knows_its_own_words_only() -> None:
    @dataclass(frozen=True)
    class Ping(Message):
        kind: ClassVar[str] = "ping"

    with pytest.raises(WireError, match="unknown message kind 'stop'"):
        Vocabulary(Ping).decode(encode(Stop("x")))
