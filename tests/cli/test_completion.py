from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from robotrials.benchmarks import registry as benchmarks
from robotrials.cli.completion import SHELLS, gather
from robotrials.cli.flags import SET, TOP
from robotrials.cli.main import VERBS, main

_ASK = """
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
COMP_WORDBREAKS=$' \\t\\n"><=;|&(:'
read -ra COMP_WORDS <<< "$2"
[[ $2 == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_robotrials
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "robotrials.bash"
    done = subprocess.run([sys.executable, "-m", "robotrials", "completion", "bash"], capture_output=True, check=True)
    path.write_bytes(done.stdout)
    return path


def completed(script: Path, line: str) -> list[str]:
    """What bash offers with the cursor at the end of ``line``."""
    done = subprocess.run(["bash", "-c", _ASK, "ask", str(script), line], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("robotrials comp", ["compare", "completion"]),
        ("robotrials show --l", ["--latex"]),
        ("robotrials show runs/a --stats.interval=w", ["wilson"]),
        ("robotrials eval --eval.n", ["--eval.n_episodes=", "--eval.nonfinite=", "--eval.num_shards="]),
        ("robotrials eval --eval.order=", ["longest", "shuffled", "balanced"]),
        ("robotrials eval --env.type=libero", ["libero", "libero_plus"]),
        ("robotrials eval --eval.exact=f", ["false"]),
        ("robotrials watch train --on", ["--once"]),
        ("robotrials watch train --env.type=push", []),
        ("robotrials report ru", []),  # files: bash's own completion
    ],
)
def test_bash_offers_verbs_flags_and_values(script: Path, line: str, offered: list[str]) -> None:
    assert completed(script, line) == offered


def test_every_verb_and_every_flag_of_eval_is_known() -> None:
    verbs = gather()
    assert tuple(verbs) == VERBS
    names = {flag.name: flag for flag in verbs["eval"]}
    assert {*SET, *TOP, "policy.type", "policy.path", "env.task", "dry_run", "help"} <= set(names)
    assert names["env.type"].choices == tuple(benchmarks.names())
    assert {flag.name for flag in verbs["metrics"]} >= {"min-success", "junit", "output_dir"}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_scripts_are_accepted_by_their_shells(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert "metaworld" in text
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    path = tmp_path / "script"
    path.write_text(text)
    assert subprocess.run([shell, "-n", str(path)], check=False).returncode == 0


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "zhs"]) == 1
    assert "did you mean zsh?" in capsys.readouterr().err


def test_making_a_script_imports_no_simulator_and_no_model() -> None:
    code = (
        "import sys; from robotrials.cli.completion import gather; gather(); "
        "heavy = ('torch', 'onnxruntime', 'mujoco', 'gymnasium', 'metaworld', 'zmq'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
