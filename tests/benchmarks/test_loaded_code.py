"""Which version of a user's own environment a run is of."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("gymnasium")

from robotrials.benchmarks.adapters.gym import probe
from robotrials.benchmarks.base import one_or_each
from robotrials.benchmarks.registry import make_benchmark
from robotrials.cli.main import main
from robotrials.plan.config import EnvChoice

FILES = {
    "line_base.py": """import gymnasium, numpy as np
from line_helper import GOAL
class Base(gymnasium.Env):
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    observation_space = gymnasium.spaces.Box(-9, 9, (1,), np.float32)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = self.np_random.uniform(0, 1, 1).astype(np.float32)
        return self.at, {}
    def step(self, action):
        self.at = self.at + np.float32(0.1) * action
        return self.at, 0.0, False, False, {"is_success": bool(self.at[0] > GOAL)}
""",
    "line_helper.py": "GOAL = 0.8\n",
    "line_wrapper.py": "import gymnasium\nclass Same(gymnasium.Wrapper):\n    pass\n",
    "line_env.py": """import gymnasium
from line_base import Base
from line_wrapper import Same
class Line(Base):
    pass
gymnasium.register("Line-v0", lambda **kwargs: Same(Line(**kwargs)), max_episode_steps=8)
""",
}
OPTIONS = {"id": "Line-v0", "imports": "line_env"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    probe._ask.cache_clear()
    return tmp_path


def version() -> str:
    probe._ask.cache_clear()
    return make_benchmark(EnvChoice("gym", OPTIONS)).code_version()


def test_each_file_that_makes_the_environment_counts(folder: Path) -> None:
    seen = [version()]
    assert seen[0].startswith("sha256:")
    assert version() == seen[0]
    for name in FILES:
        with open(folder / name, "a") as file:
            file.write("# changed\n")
        seen.append(version())
    assert len(set(seen)) == len(FILES) + 1
    (folder / "unused.py").write_text("X = 1\n")
    assert version() == seen[-1]


def test_an_installed_environment_is_known_by_its_version() -> None:
    made = make_benchmark(EnvChoice("gym", {"id": "Pendulum-v1", "success": "reward>=0"}))
    assert made.code_version().startswith("gymnasium ")
    assert "sha256" not in made.code_version()


def test_versions_that_differ_are_told_by_task() -> None:
    assert one_or_each({"a": "x 1", "b": "x 1"}) == "x 1"
    assert one_or_each({"a": "x 1", "b": "y 2"}) == "a: x 1; b: y 2"


def test_a_run_is_not_resumed_with_another_base_class(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["eval", "--env.type=gym", "--env.id=Line-v0", "--env.imports=line_env", "--policy.type=zero"]
    words += ["--eval.batch_size=1", "--eval.record=none", f"--output_dir={tmp_path / 'run'}", "--eval.n_episodes"]
    assert main([*words, "2"]) == 0
    with open(folder / "line_base.py", "a") as file:
        file.write("# changed\n")
    probe._ask.cache_clear()
    assert main([*words, "2"]) == 1
    assert "benchmark.source: sha256:" in capsys.readouterr().err
