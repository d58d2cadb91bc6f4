"""vla-eval's protocol from the client's end: its real server where it is installed, and servers that misbehave."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("websockets")

from websockets.sync.server import ServerConnection

from robotrials.errors import ConfigError, ContractError, WireError
from robotrials.plan.config import PolicyChoice
from robotrials.plan.plan import build_plan
from robotrials.policies import registry
from robotrials.policies.remote.client import PolicyServerError
from robotrials.policies.remote.vla_eval import VlaEvalPolicy
from robotrials.results.rundir import load_run_json
from robotrials.wire.plain_arrays import decode_plain, encode_vla_eval
from robotrials.wire.stream import ConnectionLostError
from tests import toy
from tests.engine.toy_runs import run
from tests.policies.toy_by_file import toy_config
from tests.serving.websocket_servers import scripted

TASK = toy.Toy(toy.ToyConfig(task="a")).tasks()[0]
EPISODES = build_plan([TASK], 3, 1000).episodes
SEEN = {
    "observation.image": np.zeros((32, 32, 3), np.uint8),
    "observation.state": np.array([0.5, 4.0], np.float32),
    "task": "go",
}
ACTION = np.array([0.5], np.float32)


def say(connection: ServerConnection, kind: str, seq: Any, payload: Any) -> None:
    connection.send(encode_vla_eval({"type": kind, "payload": payload, "seq": seq, "timestamp": 0.0}))


def server(
    answer: Callable[[ServerConnection, int], None], hello: dict[str, Any] | None = None
) -> Callable[[ServerConnection], None]:
    """Greets, then lets ``answer(connection, seq)`` see to every observation."""

    def converse(connection: ServerConnection) -> None:
        for data in connection:
            assert isinstance(data, bytes)
            message = decode_plain(data)
            assert set(message) == {"type", "payload", "seq", "timestamp"}
            if message["type"] == "hello":
                say(connection, "hello", message["seq"], hello or {"protocol_version": 1, "model_server": "Test"})
            elif message["type"] == "observation":
                answer(connection, message["seq"])

    return converse


def good(connection: ServerConnection, seq: int) -> None:
    say(connection, "action", seq, {"actions": ACTION})


def ask(url: str, times: int = 1, **options: Any) -> np.ndarray:
    cameras = {"top": "observation.image"}
    policy = VlaEvalPolicy(url, cameras, **{"connect_s": 2.0, "reply_s": 5.0, **options})
    try:
        session = policy.new_session(EPISODES[0], TASK)
        for _ in range(times):
            actions = policy.act([session], [SEEN])
            time.sleep(0.05)
        return actions
    finally:
        policy.close()


def test_single_actions_and_whole_chunks_are_taken() -> None:
    with scripted(server(good)) as url:
        np.testing.assert_array_equal(ask(url, 3), ACTION[None, None])
    chunk = np.arange(4, dtype=np.float32).reshape(4, 1)
    with scripted(server(lambda c, seq: say(c, "action", seq, {"actions": chunk}))) as url:
        np.testing.assert_array_equal(ask(url, n_action_steps=4), chunk[None])


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (lambda c, seq: say(c, "action", seq - 1, {"actions": ACTION}), WireError, "not action of"),
        (lambda c, seq: say(c, "action", None, {"actions": ACTION}), WireError, "not action of"),
        (lambda c, seq: say(c, "hello", seq, {"actions": ACTION}), WireError, "answered hello"),
        (lambda c, seq: say(c, "error", seq, {"error": "out of memory"}), PolicyServerError, "out of memory"),
        (lambda c, seq: say(c, "error", 1, {"error": "episode_start_failed"}), PolicyServerError, "episode_start"),
        (lambda c, seq: say(c, "action", seq, [1.0]), WireError, "no map"),
        (lambda c, seq: say(c, "action", seq, {"action": ACTION}), ContractError, "no 'actions'"),
        (lambda c, seq: say(c, "action", seq, {"actions": "up"}), ContractError, "no numbers"),
        (lambda c, seq: c.send(b"\x81\xa4type"), WireError, "not a message"),
        (lambda c, seq: c.send("text"), WireError, "a text"),
        (lambda c, seq: c.socket.close(), ConnectionLostError, "gone"),
        (lambda c, seq: None, ConnectionLostError, "no answer within"),
    ],
    ids=[
        *("late", "no-seq", "kind", "error", "start-error", "payload", "other-key", "words"),
        *("cut-off", "text", "hung-up", "silent"),
    ],
)
def test_anything_but_the_answer_is_never_an_action(
    answer: Callable[[ServerConnection, int], None], error: type[Exception], words: str
) -> None:
    with scripted(server(answer)) as url, pytest.raises(error, match=words):
        ask(url, reply_s=0.5)


def test_duplicated_answer_ends_the_episode() -> None:
    def twice(connection: ServerConnection, seq: int) -> None:
        good(connection, seq)
        good(connection, seq)

    with scripted(server(twice)) as url, pytest.raises(WireError, match="nobody asked for"):
        ask(url, 2)


def test_oversized_answer_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robotrials.wire.websocket.MAX_FOREIGN_BYTES", 10_000)
    big = np.zeros((5000, 1))
    with (
        scripted(server(lambda c, seq: say(c, "action", seq, {"actions": big}))) as url,
        pytest.raises(WireError, match="exceeds the limit"),
    ):
        ask(url)


def test_other_version_of_the_protocol_is_refused_naming_both() -> None:
    with (
        scripted(server(good, {"protocol_version": 2})) as url,
        pytest.raises(WireError, match="protocol 2, this is 1"),
    ):
        ask(url)


def test_nan_is_an_error_of_the_episode_not_an_action(tmp_path: Path) -> None:
    nan = np.array([np.nan])
    with scripted(server(lambda c, seq: say(c, "action", seq, {"actions": nan}))) as url:
        config = toy_config(tmp_path / "run", "vla_eval", "a", policy_options={"url": url}, n_episodes=2)
        result = run(config)
    assert not result.complete
    assert (result.summary.overall.n_errors, result.summary.overall.n_finished) == (2, 0)
    assert "not finite" in result.failures[0]


def test_run_records_what_the_server_said_of_itself(tmp_path: Path) -> None:
    with scripted(server(lambda c, seq: say(c, "action", seq, {"actions": np.ones(1)}))) as url:
        config = toy_config(tmp_path / "run", "vla_eval", "a", policy_options={"url": url}, n_episodes=2)
        assert run(config).complete
    policy = load_run_json(tmp_path / "run")["policy"]
    assert policy["server"]["model_server"] == "Test"
    assert "another project's server" in policy["numerics"]


@pytest.mark.parametrize(
    ("options", "words"),
    [({"url": "tcp://h:1"}, "ws://"), ({"url": "ws://h", "cameras": '{"a": 1}'}, "observation keys")],
)
def test_options_that_cannot_be_meant_are_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        registry.validate(PolicyChoice("vla_eval", None, options))


@pytest.mark.parametrize("chunk_size", [None, 4])
def test_real_vla_eval_server_is_evaluated(tmp_path: Path, chunk_size: int | None) -> None:
    """With a chunk it buffers actions itself; either way each look gets one."""
    pytest.importorskip("vla_eval")
    from vla_eval.api import serve_background
    from vla_eval.model_servers.predict import PredictModelServer

    class Chaser(PredictModelServer):  # type: ignore[misc]
        starts: int = 0

        def predict(self, obs: dict[str, Any], ctx: Any) -> dict[str, Any]:
            assert obs["images"]["image"].shape == (32, 32, 3)
            assert obs["task_description"] == "Go to the goal of a"
            position, goal = obs["state"]
            action = np.clip([(goal - position) / 2.5], -1.0, 1.0)
            return {"actions": action if self.chunk_size is None else np.tile(action, (self.chunk_size, 1))}

        async def on_episode_start(self, config: dict[str, Any], ctx: Any) -> None:
            Chaser.starts += 1
            await super().on_episode_start(config, ctx)

        def get_action_spec(self) -> dict[str, Any]:
            return {}

        def get_observation_spec(self) -> dict[str, Any]:
            return {}

    real = serve_background(Chaser(chunk_size=chunk_size), host="127.0.0.1", port=0)
    try:
        result = run(toy_config(tmp_path / "run", "vla_eval", "a", policy_options={"url": real.url}, n_episodes=4))
    finally:
        real.close()
    assert result.complete, result.failures
    assert result.summary.overall.n_success == 4
    assert Chaser.starts == 4
    assert load_run_json(tmp_path / "run")["policy"]["server"]["model_server"] == "Chaser"
