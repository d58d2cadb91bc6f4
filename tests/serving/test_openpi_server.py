"""Our policies for openpi's clients: its real client, our own, and clients that are neither."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("websockets")

from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from robotrials.benchmarks.base import Env, Observation
from robotrials.errors import ConfigError
from robotrials.plan.config import PolicyChoice
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import PolicySpec, Session
from robotrials.policies.remote.openpi import OpenpiPolicy
from robotrials.serving import admission
from robotrials.serving.standalone import Standalone
from robotrials.wire.plain_arrays import decode_plain, encode_openpi
from tests import toy
from tests.policies.toy_by_file import SEER

TOKEN = "0123456789abcdef0123"
SEEN = {
    "observation/image": np.zeros((32, 32, 3), np.uint8),
    "observation/state": np.array([0.0, 4.0]),
    "prompt": "go",
}
CHUNK = np.full((5, 1), 1.0)  # the goal is 4 away: full speed


@contextmanager
def serving(choice: PolicyChoice | None = None, **more: Any) -> Iterator[str]:
    choice = choice or PolicyChoice(SEER, None, {"noise": "0"})
    server = Standalone(choice, "ws://127.0.0.1:0", "openpi", **more)
    stop = threading.Event()
    thread = threading.Thread(target=server.serve, args=(lambda: not stop.is_set(),))
    thread.start()
    try:
        yield server.address
    finally:
        stop.set()
        thread.join()
        server.close()


def test_real_openpi_client_gets_the_policys_chunk() -> None:
    client = pytest.importorskip("openpi_client.websocket_client_policy")
    with serving() as url:
        policy = client.WebsocketClientPolicy(url)
        assert policy.get_server_metadata()["n_action_steps"] == 5
        for _ in range(3):
            answer = policy.infer(dict(SEEN))
            np.testing.assert_array_equal(answer["actions"], CHUNK)
            assert answer["server_timing"]["infer_ms"] >= 0
        with pytest.raises(RuntimeError, match="lacks observation/state"):
            policy.infer({"observation/image": SEEN["observation/image"]})
        np.testing.assert_array_equal(policy.infer(dict(SEEN))["actions"], CHUNK)


def test_real_openpi_client_shows_its_api_key(monkeypatch: pytest.MonkeyPatch) -> None:
    client = pytest.importorskip("openpi_client.websocket_client_policy")
    monkeypatch.setenv("ROBOTRIALS_POLICY_TOKEN", TOKEN)
    with serving() as url:
        for key in (None, TOKEN[:-1]):
            with pytest.raises(InvalidStatus, match="401"):
                client.WebsocketClientPolicy(url, api_key=key)
        answer = client.WebsocketClientPolicy(url, api_key=TOKEN).infer(dict(SEEN))
        np.testing.assert_array_equal(answer["actions"], CHUNK)


def test_our_own_client_numbers_its_requests() -> None:
    task = toy.Toy(toy.ToyConfig(task="a")).tasks()[0]
    seen = {"observation.image": SEEN["observation/image"], "observation.state": np.array([0.0, 4.0], np.float32)}
    with serving() as url:
        keys = {"observation/image": "observation.image", "observation/state": "observation.state"}
        policy = OpenpiPolicy(url, keys)
        assert policy.greeting["robotrials/request"] is True
        session = policy.new_session(EpisodeSpec(0, "toys", "a", 0, 1, None, 60), task)
        for _ in range(3):
            np.testing.assert_array_equal(policy.act([session], [seen]), CHUNK[None])
        policy.close()


def test_many_clients_share_forward_passes_and_each_gets_its_own() -> None:
    results: dict[int, float] = {}

    def play(number: int, url: str) -> None:
        with connect(url, compression=None) as line:
            line.recv()
            for _ in range(10):
                state = np.array([0.0, 0.25 * number])
                line.send(encode_openpi({**SEEN, "observation/state": state}))
                message = line.recv()
                assert isinstance(message, bytes)
                results[number] = float(decode_plain(message)["actions"][0, 0])

    with serving() as url:
        threads = [threading.Thread(target=play, args=(number, url)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == {number: pytest.approx(0.1 * number) for number in range(6)}


def test_health_is_told_without_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    from urllib.request import urlopen

    monkeypatch.setenv("ROBOTRIALS_POLICY_TOKEN", TOKEN)
    with serving() as url:
        with urlopen(url.replace("ws://", "http://") + "/healthz", timeout=5) as answer:
            assert answer.read() == b"OK\n"
        with connect(url, compression=None, additional_headers={"Authorization": f"Api-Key {TOKEN}"}) as line:
            assert decode_plain(line.recv())["policy"] == "seer"  # type: ignore[arg-type]


def test_page_in_a_browser_is_kept_out() -> None:
    with serving() as url, pytest.raises(InvalidStatus, match="403"):
        connect(url, origin="http://evil.example")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (b"\xc1garbage", "not a message"),
        ("text", "binary message"),
        (encode_openpi({**SEEN, "observation/state": np.zeros(3)}), r"must be float32\[2\]"),
        (encode_openpi({**SEEN, "observation/state": "left"}), "must be an array"),
        (encode_openpi({**SEEN, "observation/image": np.zeros((32, 32, 3))}), r"must be uint8\[32, 32, 3\]"),
        (encode_openpi({**SEEN, "observation/state": {b"__ndarray__": True, b"dtype": b"|O"}}), "numbers and booleans"),
    ],
    ids=["garbage", "text", "shape", "type", "float-image", "objects"],
)
def test_bad_observation_is_answered_with_words_and_costs_nobody_else(message: bytes | str, words: str) -> None:
    import re

    with serving() as url, connect(url, compression=None) as line:
        line.recv()
        line.send(message)
        answer = line.recv()
        assert isinstance(answer, str)
        assert re.search(words, answer)
        assert "Traceback" not in answer
        line.send(encode_openpi(SEEN))
        good = line.recv()
        assert isinstance(good, bytes)
        np.testing.assert_array_equal(decode_plain(good)["actions"], CHUNK)


def test_names_of_the_client_can_be_told() -> None:
    keys = {"images": {"top": "observation.image"}, "state": "observation.state"}
    with serving(keys=keys) as url, connect(url, compression=None) as line:
        line.recv()
        line.send(encode_openpi({"images": {"top": SEEN["observation/image"]}, "state": SEEN["observation/state"]}))
        good = line.recv()
        assert isinstance(good, bytes)
        np.testing.assert_array_equal(decode_plain(good)["actions"], CHUNK)


def test_names_of_keys_that_the_policy_does_not_read_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"do not agree on observation\.sonar"):
        Standalone(PolicyChoice(SEER), "ws://127.0.0.1:0", "openpi", keys={"x": "observation.sonar"}).serve(
            lambda: False
        )


def test_policy_that_looks_back_is_refused() -> None:
    with pytest.raises(ConfigError, match="2 observations in a row"):
        Standalone(PolicyChoice(SEER, None, {"history": "2"}), "ws://127.0.0.1:0", "openpi")


class Moody(toy.Seer):
    """Does not begin an episode whose instruction is ``begin``, hands out objects where it is ``objects``, and ends
    where it is ``exit``."""

    def __init__(self) -> None:
        super().__init__(noise=0.0)

    def spec(self) -> PolicySpec:
        spec = super().spec()
        return replace(spec, observations={**spec.observations, "task": None})

    def new_session(self, episode: EpisodeSpec, task: TaskSpec, env: Env | None = None) -> Session:
        if task.instruction == "begin":
            raise RuntimeError("no such episode")
        return super().new_session(episode, task, env)

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        if sessions[0].task.instruction == "objects":
            return np.array([[[None]]], object)
        if sessions[0].task.instruction == "exit":
            raise SystemExit(3)
        return super().act(sessions, observations)


@pytest.mark.parametrize(
    ("prompt", "words"),
    [("begin", "raised RuntimeError"), ("objects", "actions of dtype object"), ("exit", "raised SystemExit")],
)
def test_whatever_the_policy_raises_or_hands_out_is_told_to_that_client_alone(
    prompt: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("robotrials.policies.registry.make_policy", lambda choice: Moody())
    with serving() as url, connect(url) as good, connect(url) as bad:
        good.recv()
        bad.recv()
        for _ in range(2):
            bad.send(encode_openpi({**SEEN, "prompt": prompt}))
            said = bad.recv()
            assert isinstance(said, str)
            assert words in said
            good.send(encode_openpi(SEEN))
            reply = good.recv()
            assert isinstance(reply, bytes)
            assert "actions" in decode_plain(reply)


def test_client_with_the_token_is_let_in_while_strangers_hold_half_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MAX_STRANGERS", 20)
    with serving() as url:
        host, _, port = url.removeprefix("ws://").rpartition(":")
        held = [socket.create_connection((host, int(port)), timeout=10) for _ in range(100)]
        for each in held:
            each.sendall(b"GET / HTTP/1.1\r\nHost")
        with connect(url) as good:
            good.recv()
            good.send(encode_openpi(SEEN))
            assert isinstance(good.recv(), bytes)
        assert held[0].recv(1) == b"", "the oldest made room"
        for each in held:
            each.close()
