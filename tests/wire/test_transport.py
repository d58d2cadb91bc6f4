from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from robotrials.wire.transport import PrivateEndpoint


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rt-") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def left_by_a_killed_process(place: Path) -> Path:
    code = "import os, signal; from robotrials.wire.transport import PrivateEndpoint as P; e = P.create(); "
    code += "print(e.directory, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    environment = {**os.environ, "TMPDIR": str(place)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    return Path(done.stdout.strip())


def test_an_endpoint_is_gone_when_it_was_removed(place: Path) -> None:
    endpoint = PrivateEndpoint.create()
    assert Path(endpoint.directory).parent == place
    assert Path(endpoint.directory).stat().st_mode & 0o777 == 0o700
    endpoint.remove()
    assert list(place.iterdir()) == []


def test_what_a_killed_process_has_left_is_removed_by_the_next(place: Path) -> None:
    orphan = left_by_a_killed_process(place)
    assert orphan.is_dir()
    endpoint = PrivateEndpoint.create()
    assert not orphan.exists()
    endpoint.remove()


def test_an_endpoint_in_use_and_what_is_no_endpoint_stay(place: Path) -> None:
    other = place / "robotrials-logs"
    other.mkdir()
    (place / "robotrials-young").mkdir()
    (place / "robotrials-young" / "lock").touch()
    first = PrivateEndpoint.create()
    second = PrivateEndpoint.create()
    assert Path(first.directory).is_dir()
    assert other.is_dir()
    assert (place / "robotrials-young").is_dir(), "its owner has not written that it holds it yet"
    first.remove()
    second.remove()
