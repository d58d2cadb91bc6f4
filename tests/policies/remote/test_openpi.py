"""openpi's protocol from the client's end: what is sent, what is taken, and what is never taken for an action."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

pytest.importorskip("websockets")

from websockets.sync.server import ServerConnection

from robotrials.errors import ConfigError, ContractError, WireError
from robotrials.plan.config import PolicyChoice
from robotrials.plan.plan import build_plan
from robotrials.policies import registry
from robotrials.policies.remote.client import PolicyServerError
from robotrials.policies.remote.openpi import OpenpiPolicy, pad_and_scale
from robotrials.results.rundir import load_run_json
from robotrials.wire.plain_arrays import decode_plain, encode_openpi
from robotrials.wire.stream import ConnectionLostError
from tests import toy
from tests.engine.toy_runs import run
from tests.policies.toy_by_file import SEER, toy_config
from tests.serving.websocket_servers import scripted

TASK = toy.Toy(toy.ToyConfig(task="a")).tasks()[0]
EPISODES = build_plan([TASK], 3, 1000).episodes
KEYS = {"observation/image": "observation.image", "observation/state": "observation.state", "prompt": "task"}
SEEN = {
    "observation.image": np.arange(32 * 32 * 3, dtype=np.uint8).reshape(32, 32, 3),
    "observation.state": np.array([0.5, 4.0], np.float32),
    "task": "go",
}
CHUNK = np.linspace(-1.0, 1.0, 5, dtype=np.float32).reshape(5, 1)


def answering(*messages: bytes | str, metadata: dict[str, Any] | None = None) -> Callable[[ServerConnection], None]:
    """Says its metadata, then answers each observation with all of ``messages``."""

    def converse(connection: ServerConnection) -> None:
        connection.send(encode_openpi(metadata or {"n_action_steps": 5}))
        for _ in connection:
            for message in messages:
                connection.send(message)

    return converse


def ask(url: str, times: int = 1, **options: Any) -> np.ndarray:
    policy = OpenpiPolicy(url, KEYS, **{"connect_s": 2.0, "reply_s": 5.0, **options})
    try:
        session = policy.new_session(EPISODES[0], TASK)
        for _ in range(times):
            actions = policy.act([session], [SEEN])
            time.sleep(0.05)
        return actions
    finally:
        policy.close()


GOOD = encode_openpi({"actions": CHUNK, "server_timing": {"infer_ms": 0.001}})


def test_actions_are_those_of_the_server() -> None:
    with scripted(answering(GOOD)) as url:
        np.testing.assert_array_equal(ask(url, 3), CHUNK[None])


@pytest.mark.parametrize(("layout", "shape"), [("hwc", (32, 32, 3)), ("chw", (3, 32, 32))])
def test_observation_arrives_under_the_servers_names_and_layout(layout: str, shape: tuple[int, ...]) -> None:
    got: list[dict[Any, Any]] = []

    def converse(connection: ServerConnection) -> None:
        connection.send(encode_openpi({}))
        for message in connection:
            assert isinstance(message, bytes)
            got.append(decode_plain(message))
            connection.send(GOOD)

    keys = {"images": {"top": "observation.image"}, "state": "observation.state", "prompt": "task"}
    with scripted(converse) as url:
        policy = OpenpiPolicy(url, keys, n_action_steps=5, image_layout=layout)
        policy.act([policy.new_session(EPISODES[0], TASK)], [dict(SEEN)])
        policy.close()
    (seen,) = got
    assert seen["images"]["top"].shape == shape
    image = seen["images"]["top"] if layout == "hwc" else seen["images"]["top"].transpose(1, 2, 0)
    np.testing.assert_array_equal(image, SEEN["observation.image"])
    np.testing.assert_array_equal(seen["state"], SEEN["observation.state"])
    assert seen["prompt"] == "go"


def numbered(change: Callable[[int], Any]) -> Callable[[ServerConnection], None]:
    """A server that repeats the request's number, ``change``-d."""

    def converse(connection: ServerConnection) -> None:
        connection.send(encode_openpi({"n_action_steps": 5, "robotrials/request": True}))
        for message in connection:
            assert isinstance(message, bytes)
            number = decode_plain(message)["robotrials/request"]
            connection.send(encode_openpi({"actions": CHUNK, "robotrials/request": change(number)}))

    return converse


@pytest.mark.parametrize("change", [lambda n: n - 1, lambda n: None, lambda n: str(n)], ids=["late", "none", "text"])
def test_answer_to_another_request_is_never_an_action(change: Callable[[int], Any]) -> None:
    with scripted(numbered(lambda n: n)) as url:
        ask(url, 3)
    with scripted(numbered(change)) as url, pytest.raises(WireError, match="answered request"):
        ask(url)


def test_duplicated_answer_ends_the_episode() -> None:
    with scripted(answering(GOOD, GOOD)) as url, pytest.raises(WireError, match="nobody asked for"):
        ask(url, 2)


def test_late_answer_finds_nobody() -> None:
    """After a time-out the connection is gone: the answer that comes then is no answer to the next request."""
    calls: list[int] = []

    def converse(connection: ServerConnection) -> None:
        connection.send(encode_openpi({"n_action_steps": 5}))
        for _ in connection:
            calls.append(1)
            if len(calls) == 1:
                time.sleep(0.6)
                connection.send(encode_openpi({"actions": np.full((5, 1), 666.0)}))
            else:
                connection.send(GOOD)

    with scripted(converse) as url:
        policy = OpenpiPolicy(url, KEYS, reply_s=0.2)
        session = policy.new_session(EPISODES[0], TASK)
        with pytest.raises(ConnectionLostError, match="no answer within"):
            policy.act([session], [SEEN])
        with pytest.raises(ConnectionLostError, match="its state with it"):
            policy.act([session], [SEEN])
        time.sleep(0.6)
        fresh = policy.new_session(EPISODES[1], TASK)
        np.testing.assert_array_equal(policy.act([fresh], [SEEN]), CHUNK[None])
        policy.close()


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (GOOD[:-7], WireError, "not a message"),
        (b"", WireError, "not a message"),
        (encode_openpi({"action": CHUNK}), ContractError, "no 'actions': action"),
        (encode_openpi({"actions": "left"}), ContractError, "no numbers"),
        (encode_openpi({"actions": CHUNK[None, None]}), ContractError, "shape"),
        (encode_openpi({"actions": CHUNK[:0]}), ContractError, "shape"),
        ("Traceback (most recent call last): boom", PolicyServerError, "boom"),
    ],
    ids=["cut-off", "empty", "other-key", "text", "4-d", "no-action", "traceback"],
)
def test_answer_without_actions_is_an_error_that_says_so(
    answer: bytes | str, error: type[Exception], words: str
) -> None:
    with scripted(answering(answer)) as url, pytest.raises(error, match=words):
        ask(url)


def test_oversized_answer_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robotrials.wire.websocket.MAX_FOREIGN_BYTES", 10_000)
    big = encode_openpi({"actions": np.zeros((5000, 1))})
    with scripted(answering(big)) as url, pytest.raises(WireError, match="exceeds the limit"):
        ask(url)


def test_connection_cut_in_the_middle_is_no_answer() -> None:
    def converse(connection: ServerConnection) -> None:
        connection.send(encode_openpi({"n_action_steps": 5}))
        connection.recv()
        connection.socket.close()

    with scripted(converse) as url, pytest.raises(ConnectionLostError, match="gone"):
        ask(url)


def test_server_that_comes_back_as_another_is_refused() -> None:
    told = iter([{"n_action_steps": 5, "model": "a"}, {"n_action_steps": 5, "model": "b"}])
    with scripted(lambda connection: connection.send(encode_openpi(next(told)))) as url:
        policy = OpenpiPolicy(url, KEYS)
        assert policy.spec().n_action_steps == 5
        with pytest.raises(ContractError, match="another one now"):
            policy.new_session(EPISODES[0], TASK)


def test_number_of_actions_to_play_is_asked_for_when_nobody_tells() -> None:
    with scripted(answering(GOOD, metadata={"model": "pi0"})) as url:
        with pytest.raises(ConfigError, match=r"--policy\.n_action_steps is missing"):
            OpenpiPolicy(url, KEYS).spec()
        assert OpenpiPolicy(url, KEYS, n_action_steps=3).spec().n_action_steps == 3


def test_run_against_it_records_that_its_numerics_are_not_ours(tmp_path: Path) -> None:
    policy = {"policy": "openpi", "record": "none", "n_episodes": 2, "tasks": "a"}
    with scripted(answering(encode_openpi({"actions": np.ones((5, 1))}))) as url:
        config = toy_config(tmp_path / "run", **policy, policy_options={"url": url})
        assert run(config).complete
    described = load_run_json(tmp_path / "run")
    assert "another project's server" in described["policy"]["numerics"]
    assert described["policy"]["server"] == {"n_action_steps": 5}
    assert described["identity"]["policy"]["revision"].startswith("openpi metadata:")
    assert registry.caveat(PolicyChoice("openpi")) == described["policy"]["numerics"]


TRACEBACK = """Traceback (most recent call last):
  File "policy.py", line 7, in infer
    x = obs["a"]
        ~~~^^^^^
KeyError: 'a'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "serve.py", line 12
    raise ValueError
ValueError: observation/wrist_image missing
in what was sent
"""


@pytest.mark.parametrize(
    ("text", "exception"),
    [
        (TRACEBACK, "ValueError: observation/wrist_image missing in what was sent"),
        ('Traceback (most recent call last):\n  File "p.py", line 7\nValueError: bad', "ValueError: bad"),
        ("out of memory", "out of memory"),
        ("first\nsecond\n\n", "second"),
        ('Traceback (most recent call last):\n  File "p.py", line 7', 'File "p.py", line 7'),
        ("", "nothing"),
    ],
)
def test_servers_exception_is_on_the_first_line_and_its_traceback_behind(text: str, exception: str) -> None:
    with scripted(answering(text)) as url, pytest.raises(PolicyServerError) as caught:
        ask(url)
    first, _, rest = str(caught.value).partition("\n")
    assert first == f"the server says: {exception}"
    assert rest in ("", text.strip())


@pytest.mark.parametrize("dtype", ["<V2", "bfloat16", "|V1"])
def test_raw_words_are_named(dtype: str) -> None:
    words = {b"__ndarray__": True, b"data": b"\0\0" * 5, b"dtype": dtype, b"shape": (5, 1)}
    said = pytest.raises(WireError, match=r"raw words .*bfloat16 perhaps.*convert it to float32")
    with scripted(answering(msgpack.packb({"actions": words}))) as url, said:
        ask(url)


def test_server_that_greets_with_an_error_is_refused_at_once() -> None:
    with (
        scripted(lambda connection: connection.send(TRACEBACK)) as url,
        pytest.raises(ConfigError, match=r"--policy\.url=.*: the server says: ValueError: observation/wrist_image"),
    ):
        registry.revision(PolicyChoice("openpi", None, {"url": url}))


def test_nan_is_an_error_of_the_episode_not_an_action(tmp_path: Path) -> None:
    with scripted(answering(encode_openpi({"actions": np.full((5, 1), np.nan)}))) as url:
        config = toy_config(tmp_path / "run", "openpi", "a", policy_options={"url": url}, n_episodes=2)
        result = run(config)
    assert (result.summary.overall.n_finished, result.summary.overall.n_errors) == (0, 2)
    assert all("not finite numbers at its call 1" in said for said in result.failures)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": "http://h"}, "ws://host:port"),
        ({"url": "ws://h", "image_layout": "whc"}, "hwc or chw"),
        ({"url": "ws://h", "keys": '{"a": 1}'}, "observation keys"),
        ({"url": "ws://h", "n_action_steps": "-1"}, "negative"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        registry.validate(PolicyChoice("openpi", None, options))


def test_images_are_padded_and_scaled_as_openpis_own_client_does() -> None:
    image_tools = pytest.importorskip("openpi_client.image_tools")
    rng = np.random.default_rng(0)
    for height, width in ((48, 64), (480, 640), (64, 48), (30, 30), (224, 224)):
        image = rng.integers(0, 255, (height, width, 3), dtype=np.uint8)
        np.testing.assert_array_equal(pad_and_scale(image, 224), image_tools.resize_with_pad(image, 224, 224))


def test_real_openpi_server_is_evaluated(tmp_path: Path) -> None:
    """openpi-server's own server and openpi-client's own encoding, around a policy that can be worked out by hand."""
    server = pytest.importorskip("openpi_server")
    import asyncio
    import socket
    import threading

    from openpi_client.base_policy import BasePolicy

    class Chaser(BasePolicy):  # type: ignore[misc]
        def infer(self, obs: dict[str, Any]) -> dict[str, Any]:
            position, goal = obs["observation/state"]
            assert obs["observation/image"].shape == (32, 32, 3)
            assert obs["prompt"] == "Go to the goal of a"
            return {"actions": np.full((5, 1), np.clip((goal - position) / 2.5, -1.0, 1.0))}

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    loop = asyncio.new_event_loop()
    real = server.WebsocketPolicyServer(Chaser(), "127.0.0.1", port, {"n_action_steps": 5})
    serving = loop.create_task(real.run())
    thread = threading.Thread(target=lambda: loop.run_until_complete(asyncio.wait([serving])))
    thread.start()
    try:
        options = {"url": f"ws://127.0.0.1:{port}"}
        result = run(toy_config(tmp_path / "run", "openpi", "a", policy_options=options, n_episodes=4))
    finally:
        loop.call_soon_threadsafe(serving.cancel)
        thread.join()
    assert result.complete, result.failures
    noiseless = toy_config(tmp_path / "alone", SEER, "a", policy_options={"noise": "0"}, n_episodes=4)
    assert run(noiseless).summary.overall.n_success == result.summary.overall.n_success == 4
