"""A repository that stands in for one of a Hub: a folder with an ``env.py``. Nothing is fetched here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from robotrials.benchmarks.adapters.foreign import probe
from robotrials.benchmarks.adapters.gym.success import known_success as success_of
from robotrials.benchmarks.adapters.hub import Hub, parse_repo
from robotrials.benchmarks.base import Env
from robotrials.benchmarks.registry import make_benchmark
from robotrials.cli.flags import parse_eval
from robotrials.errors import ConfigError, ContractError, NoPictureError
from robotrials.plan.config import EnvChoice
from robotrials.plan.task import TaskSpec
from tests.benchmarks.scenes import episode

ENV = '''"""A stand-in for an environment of a Hub: a line to walk along, with LeRobot's observation keys."""
import gymnasium as gym
import numpy as np
from neighbour import GOAL, MODE, SILENT

print("greetings to whoever reads standard output")


class Line(gym.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    observation_space = gym.spaces.Dict({
        "pixels": gym.spaces.Dict({"top": gym.spaces.Box(0, 255, (8, 10, 3), np.uint8)}),
        "agent_pos": gym.spaces.Box(-9, 9, (1,), np.float32),
    })
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, pace=1.0):
        self.pace, self.render_mode, self._max_episode_steps = pace, "rgb_array", 12

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = np.array([self.np_random.uniform(0, 1)], np.float32)
        self.task_description = "Walk to the goal."
        return self._seen(), {}

    def _seen(self):
        picture = np.full((8, 10, 3), int(20 * self.at[0]) % 256, np.uint8)
        return {"pixels": {"top": picture}, "agent_pos": self.at.copy()}

    def step(self, action):
        self.at = self.at + self.pace * action
        if SILENT:
            return self._seen(), 0.0, bool(self.at[0] > GOAL), False, {"score": 1}
        done = bool(self.at[0] > GOAL)
        return self._seen(), float(self.at[0]), done, False, {"is_success": done}

    def render(self):
        return np.zeros((16, 20, 3), np.uint8)


def make_env(n_envs=1, use_async_envs=False, pace=1.0, suites=1):
    vector = [gym.vector.SyncVectorEnv([lambda: Line(pace)] * n_envs) for _ in range(suites + 1)]
    if MODE:
        mode = gym.vector.AutoresetMode(MODE)
        return {"line": {0: gym.vector.AsyncVectorEnv([Line] * n_envs, autoreset_mode=mode)}}
    return {"line": {0: vector[0], 1: vector[1]}, **{f"more{k}": {0: v} for k, v in enumerate(vector[2:])}}
'''


def neighbour(goal: float = 3.0, mode: str = "", silent: bool = False) -> str:
    return f"GOAL, MODE, SILENT = {goal}, {mode!r}, {silent}\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "env.py").write_text(ENV)
    (tmp_path / "neighbour.py").write_text(neighbour())
    return tmp_path


def benchmark(repo: Path, **options: Any) -> Hub:
    made = make_benchmark(EnvChoice("hub", {"repo": str(repo), "trust_remote_code": True, **options}))
    assert isinstance(made, Hub)
    return made


def play(task: TaskSpec, env: Env, seed: int) -> list[tuple[float, bool | None]]:
    env.reset(episode(task, seed))
    played = []
    for _ in range(12):
        outcome = env.step(np.array([0.75]))
        played.append((outcome.reward, outcome.success))
        if outcome.terminated:
            break
    return played


def test_tasks_are_what_make_env_returns(repo: Path) -> None:
    tasks = benchmark(repo).tasks()
    assert [(task.suite, task.name, task.id) for task in tasks] == [("line", "line_0", 0), ("line", "line_1", 1)]
    task = tasks[0]
    assert (task.instruction, task.max_steps, task.control_hz) == ("Walk to the goal.", 12, 10.0)
    assert {key: (f.shape, f.dtype) for key, f in task.observations.items()} == {
        "observation.images.top": ((8, 10, 3), "uint8"),
        "observation.state": ((1,), "float32"),
    }
    assert (task.action.low, task.action.high) == ((-1.0,), (1.0,))
    assert re.fullmatch(r".*@main:env\.py sha256:[0-9a-f]{16}", benchmark(repo).code_version())


def test_a_changed_file_beside_it_is_other_code_and_the_same_tasks(repo: Path) -> None:
    before, tasks = benchmark(repo).code_version(), benchmark(repo).tasks()
    probe._ask.cache_clear()
    assert benchmark(repo).code_version() == before
    (repo / "neighbour.py").write_text(neighbour(2.0))
    probe._ask.cache_clear()
    assert benchmark(repo).code_version() != before
    assert benchmark(repo).tasks() == tasks


def test_episodes_are_played_in_it(repo: Path) -> None:
    hub = benchmark(repo)
    task = hub.tasks()[1]
    env = hub.make(task)
    played = play(task, env, 4)
    assert [success for _, success in played] == [False] * (len(played) - 1) + [True]
    assert 3 <= len(played) <= 4
    play(task, env, 5)
    assert play(task, env, 4) == played
    env.reset(episode(task, 4))
    seen = env.observe(["observation.images.top"])
    assert seen["task"] == "Walk to the goal."
    picture = seen["observation.images.top"]
    assert isinstance(picture, np.ndarray)
    assert picture.shape == (8, 10, 3)
    assert set(env.observe([])) == {"task", "observation.state"}
    assert env.render().shape == (16, 20, 3)
    with pytest.raises(ContractError, match=r"no camera observation\.image; it has: observation\.images\.top"):
        env.observe(["observation.image"])
    env.close()
    env.close()


def test_rebuilt_environments_play_the_same(repo: Path) -> None:
    once, anew = benchmark(repo), benchmark(repo, rebuild=True)
    task = once.tasks()[0]
    env, fresh = once.make(task), anew.make(task)
    for seed in (4, 5):
        assert play(task, env, seed) == play(task, fresh, seed)


def test_arguments_reach_make_env_and_a_suite_can_be_chosen(repo: Path) -> None:
    hub = benchmark(repo, kwargs={"suites": 2, "pace": 2.0}, task="more0")
    (task,) = hub.tasks()
    assert (task.suite, task.name) == ("more0", "more0")
    assert len(play(task, hub.make(task), 4)) <= 2
    with pytest.raises(ConfigError, match=r"--env\.task=circle: .* has line"):
        benchmark(repo, task="circle").tasks()


@pytest.mark.parametrize("where", ["org/name@4f2c", "FOLDER"])
def test_without_trust_nothing_is_run_or_fetched(repo: Path, where: str) -> None:
    where = where.replace("FOLDER", str(repo))
    (repo / "env.py").write_text("raise SystemExit('this was run')")
    with pytest.raises(ConfigError, match="If you have read it and trust it, add --trust_remote_code=true"):
        make_benchmark(EnvChoice("hub", {"repo": where}))


def test_the_flag_of_lerobot_eval_says_so_and_means_nothing_elsewhere(repo: Path) -> None:
    words = [f"--env.repo={repo}", "--trust_remote_code=true", "--policy.type=random"]
    call = parse_eval(["--env.type=hub", *words])
    assert make_benchmark(call.config.env).config.trust_remote_code is True
    assert call.notes == ()
    call = parse_eval(["--env.type=pusht", *words[1:]])
    assert "trust_remote_code" not in call.config.env.options
    assert "loads no code from a Hub" in call.notes[0]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("x = 1", r"env\.py defines no make_env"),
        ("import nobody_has_this", "needs nobody_has_this"),
        ("def make_env(n_envs, use_async_envs): return 5", "returned int; right is an environment"),
        ("def make_env(n_envs, use_async_envs): raise OSError('no assets')", "OSError: no assets"),
        ("import os; os._exit(3)", "could not be built by .*: exit status 3"),
    ],
)
def test_what_is_wrong_with_the_file_is_said(repo: Path, code: str, says: str) -> None:
    (repo / "env.py").write_text(code)
    with pytest.raises(ConfigError, match=says):
        benchmark(repo).tasks()


def test_names_of_repositories(repo: Path) -> None:
    assert (parse_repo("org/name").name, parse_repo("org/name").revision) == ("org/name", None)
    named = parse_repo("org/name@v1:envs/mine.py")
    assert (named.name, named.revision, named.file, named.folder) == ("org/name", "v1", "envs/mine.py", None)
    assert parse_repo(str(repo / "env.py")).folder == repo.resolve()
    for wrong in ("name", "org/", "./not/here", "a/b/c"):
        with pytest.raises(ConfigError, match="write org/name"):
            parse_repo(wrong)


def test_a_missing_success_signal_is_none_only_at_the_end() -> None:
    assert success_of({}, ended=False) is False
    assert success_of({}, ended=True) is None
    assert success_of({"final_info": {"is_success": np.array([True])}}, ended=True) is True
    assert success_of({"is_success": False, "success": True}, ended=True) is False


@pytest.mark.parametrize("value", [0.3, float("nan"), -1, "yes", np.array([True, False])])
def test_a_success_signal_that_is_no_truth_value_is_an_error(value: Any) -> None:
    for info in ({"is_success": value}, {"final_info": {"is_success": value}}):
        with pytest.raises(ConfigError, match=r"is_success in the environment's info: it holds .*no truth value"):
            success_of(info, ended=True)


def elsewhere(repo: Path, tmp: Path, **changes: Any) -> Path:
    """The same repository, with another neighbour: a folder of its own, since modules are loaded once."""
    folder = tmp / "-".join(map(str, changes.values()))
    folder.mkdir()
    (folder / "env.py").write_text(ENV.replace("neighbour", folder.name.replace("-", "_").lower()))
    (folder / f"{folder.name.replace('-', '_').lower()}.py").write_text(neighbour(**changes))
    return folder


@pytest.mark.parametrize("mode", ["SameStep", "NextStep", "Disabled"])
def test_a_vector_environment_in_processes_of_its_own_plays_the_same_whenever_it_resets(
    repo: Path, tmp_path: Path, mode: str
) -> None:
    plain = benchmark(repo)
    task = plain.tasks()[0]
    env = plain.make(task)
    right = [play(task, env, seed) for seed in (4, 5)]
    hub = benchmark(elsewhere(repo, tmp_path, mode=mode), max_steps=12)
    (task,) = hub.tasks()
    env = hub.make(task)
    assert [play(task, env, seed) for seed in (4, 5)] == right
    assert all(played[-1][1] is True for played in right)
    env.close()


def test_one_that_resets_itself_draws_no_picture_of_the_next_episode(repo: Path, tmp_path: Path) -> None:
    hub = benchmark(elsewhere(repo, tmp_path, mode="SameStep"), max_steps=12)
    (task,) = hub.tasks()
    env = hub.make(task)
    env.reset(episode(task, 4))
    env.render()
    while not env.step(np.array([0.75])).terminated:
        env.render()
    with pytest.raises(NoPictureError, match="has reset itself") as refusal:
        env.render()
    assert refusal.value.by_design
    env.close()


def test_an_environment_that_never_says_success_is_refused_at_once(repo: Path, tmp_path: Path) -> None:
    folder = elsewhere(repo, tmp_path, silent=True)
    with pytest.raises(
        ConfigError, match=r"line_0 does not say what success is: its info holds score.*--env\.success="
    ):
        benchmark(folder).tasks()
    hub = benchmark(folder, success="terminated")
    task = hub.tasks()[0]
    assert play(task, hub.make(task), 4)[-1][1] is True
    with pytest.raises(ConfigError, match="write info:KEY, terminated or reward>=NUMBER"):
        benchmark(folder, success="sometimes").tasks()


def test_closing_the_other_environments_may_fail(repo: Path, caplog: pytest.LogCaptureFixture) -> None:
    raising = "    def close(self):\n        raise OSError('EGL is gone')\n\n    def render(self):"
    (repo / "env.py").write_text(ENV.replace("    def render(self):", raising))
    hub = benchmark(repo)
    task = hub.tasks()[0]
    assert play(task, hub.make(task), 4)[-1][1] is True
    assert "OSError: EGL is gone" in caplog.text
