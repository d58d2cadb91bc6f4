"""The example of docs/adding-a-benchmark.md: checked, evaluated, and installed as a plugin."""

from __future__ import annotations

import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

import robotrials
from robotrials.benchmarks.conformance.checks import CheckSettings
from robotrials.benchmarks.conformance.process import check
from robotrials.cli.main import main
from robotrials.environments.installer import find_uv
from robotrials.plan.config import EnvChoice
from tests.benchmarks.local_index import make_wheel

FILE = Path(__file__).parents[2] / "examples" / "own_benchmark.py"


def test_it_keeps_every_promise() -> None:
    report = check(EnvChoice(f"{FILE}:Curling"), CheckSettings(steps=100))
    assert all(finding.kept for finding in report.findings), report


def test_it_fits_in_sixty_lines() -> None:
    assert len(FILE.read_text().splitlines()) <= 66
    assert sum(bool(line.strip()) for line in FILE.read_text().splitlines()) < 60


def test_its_episodes_can_be_won(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By a policy that brakes: so success is told where it should be."""
    policy = tmp_path / "braking.py"
    policy.write_text(
        "import numpy as np\n"
        "from robotrials.plan.task import Feature\n"
        "from robotrials.policies.base import Policy, PolicySpec\n"
        "class Braking(Policy):\n"
        "    def spec(self):\n"
        "        return PolicySpec('braking', {'observation.state': Feature((3,))}, action_dim=1)\n"
        "    def act(self, sessions, observations):\n"
        "        rows = [o['observation.state'] for o in observations]\n"
        "        return np.array([[[0.5 * (goal - place) - 4 * speed]] for place, speed, goal in rows])\n"
    )
    words = [
        "eval",
        f"--policy.type={policy}:Braking",
        f"--env.type={FILE}:Curling",
        "--eval.n_episodes=4",
        "--eval.record=none",
        f"--output_dir={tmp_path / 'run'}",
    ]
    assert main(words) == 0
    assert "4/4" in capsys.readouterr().out


def test_as_a_package_it_is_found_by_its_entry_point(tmp_path: Path) -> None:
    """Really installed, into an environment of its own, which borrows robotrials and its dependencies from here."""
    wheel = make_wheel(
        tmp_path,
        FILE.read_text(),
        module="curling_sim",
        entry_points="[robotrials.benchmarks]\ncurling = curling_sim:Curling\n",
    )
    prefix, uv = tmp_path / "venv", find_uv()
    venv.create(prefix, with_pip=uv is None)
    python = str(prefix / "bin" / "python")
    installer = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
    offline = ["--offline"] if uv else ["--no-index"]
    subprocess.run([*installer, *offline, "--no-deps", "-q", str(wheel)], check=True, capture_output=True)
    (site,) = prefix.glob("lib/python3*/site-packages")
    (site / "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n{Path(robotrials.__file__).parents[1]}\n")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([python, "-m", "robotrials", *words], capture_output=True, text=True, cwd=tmp_path)

    listed = run("bench", "list", "curling", "--json")
    assert '"state": "ok"' in listed.stdout, listed.stderr
    checked = run("check-env", "curling", "--steps=10", "--memory=0", "--env.friction=0.3")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "18 of 18 promises kept" in checked.stdout


def test_it_is_the_example_of_the_guide() -> None:
    guide = (FILE.parents[1] / "docs" / "adding-a-benchmark.md").read_text()
    assert "examples/own_benchmark.py" in guide
