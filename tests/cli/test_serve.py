"""``robotrials serve``: what was typed wrong is told before a policy is loaded."""

from __future__ import annotations

import pytest

from robotrials.cli import serve
from robotrials.cli.main import main
from robotrials.errors import ConfigError
from robotrials.plan.config import PolicyChoice


def test_flags_of_the_policy_and_of_the_server_are_told_apart() -> None:
    words = ["--policy.path=x.onnx", "--policy.n_action_steps", "3", "--exact=false", "--address=tcp://h:1"]
    choice, flags = serve.parse_serve(words)
    assert choice == PolicyChoice(None, "x.onnx", {"n_action_steps": "3"})
    assert (flags.address, flags.exact, flags.protocol) == ("tcp://h:1", False, "robotrials")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "which policy"),
        (["policy.onnx"], "flags are written"),
        (["--policy.type=zero", "--adress=tcp://h:1"], "did you mean --address"),
        (["--policy.type=zero", "--protocol=grpc"], "one of robotrials, openpi"),
        (["--policy.type=zero", "--token=secret"], "unknown option --token"),
        (["--policy.type=zero", '--keys={"a": "task"}'], "--keys needs --protocol=openpi"),
    ],
)
def test_wrong_words_are_refused(words: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        serve.parse_serve(words)


def test_help_fits_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 45


@pytest.mark.parametrize("lively", [True, False])
def test_what_it_does_is_told_now_and_then(
    lively: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 0.5, 40.0, 80.0])
    monkeypatch.setattr(serve.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(serve.output, "is_lively", lambda stream: lively)
    counts = {"clients": 2, "sessions": 3, "requests": 0, "passes": 0, "busy_s": 0.0}
    reporter = serve._Reporter(lambda: dict(counts), lambda: True)
    assert reporter()
    assert capsys.readouterr().err == ""
    counts |= {"requests": 80, "passes": 20, "busy_s": 10.0}
    assert reporter()
    assert "2 clients, 3 sessions, 2.0 requests/s, batch 4.0, 25 % busy" in capsys.readouterr().err
    assert reporter()
    assert ("0.0 requests/s" in capsys.readouterr().err) == lively
