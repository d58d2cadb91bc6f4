"""``make test-simulators``: a simulator that should be there and is not must not pass as skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = {
    "module": "import pytest\npytest.importorskip('gym_pusht_not_there')\ndef test_it(): pass\n",
    "test": "import pytest\ndef test_it(): pytest.importorskip('gym_pusht_not_there')\n",
    "other": "import pytest\ndef test_it(): pytest.skip('needs two GPUs')\n",
}


@pytest.mark.parametrize(
    ("source", "required", "status"),
    [
        ("module", "pusht", "1 error"),
        ("test", "pusht", "1 failed"),
        ("other", "pusht", "1 skipped"),
        ("test", "", "1 skipped"),
    ],
)
def test_a_skip_for_want_of_the_required_simulator_fails(
    tmp_path: Path, source: str, required: str, status: str
) -> None:
    (tmp_path / "test_it.py").write_text(SOURCES[source])
    (tmp_path / "conftest.py").write_text((Path(__file__).parent / "conftest.py").read_text())
    environment = {**os.environ, "ROBOTRIALS_REQUIRED_SIMULATOR": required}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert status in done.stdout.splitlines()[-1], done.stdout
