"""Whoever reaches the coordinator's socket without the run's token changes nothing, whatever they send."""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path

import pytest
import zmq

from robotrials.control.messages import Beat, Done, Hello
from robotrials.results.record import EndReason, EpisodeRecord
from robotrials.run import assembly
from robotrials.wire.envelope import encode
from robotrials.wire.transport import PrivateEndpoint
from tests.engine.toy_runs import Listener, digest, run, toy_config

FORGED = EpisodeRecord(0, 1, "w0", EndReason.SUCCESS, True, 1, 99.0, 99.0)


def stranger_messages() -> list[list[bytes]]:
    draw = random.Random(0)
    told = [
        Hello("w0", 1, "host", "a wrong token"),
        Hello("w0", 1, "host", "ключ"),
        Beat("w0", "ключ", 1, 1, "infer", 1),
        Done(1, FORGED),
    ]
    frames = [[encode(message)] for message in told]
    frames += [[encode(told[0]), b"second frame"], [b""], [b"\xff" * 100], [encode(told[3])[:-4]]]
    return frames + [[draw.randbytes(40)] for _ in range(20)]


def test_run_among_strangers_ends_as_one_that_is_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(toy_config(tmp_path / "alone", step_s=0.01)).complete
    found: list[str] = []
    over, sent = threading.Event(), []

    class Noted(PrivateEndpoint):
        @classmethod
        def create(cls) -> PrivateEndpoint:
            made = PrivateEndpoint.create()
            found.append(made.address)
            return made

    def pester() -> None:
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        while not over.wait(0.02):
            if not found or not os.path.exists(found[0].removeprefix("ipc://")):
                continue
            socket = context.socket(zmq.DEALER)
            socket.connect(found[0])
            for frames in stranger_messages():
                socket.send_multipart(frames)
                sent.append(frames)
            socket.close(linger=100)
        context.destroy(linger=0)

    monkeypatch.setattr(assembly, "PrivateEndpoint", Noted)
    thread = threading.Thread(target=pester)
    thread.start()
    listener = Listener()
    try:
        assert run(toy_config(tmp_path / "pestered", step_s=0.01), listener).complete
    finally:
        over.set()
        thread.join()
    assert len(sent) > 100
    assert any("none" in words for words in listener.messages)
    assert digest(tmp_path / "pestered") == digest(tmp_path / "alone")
