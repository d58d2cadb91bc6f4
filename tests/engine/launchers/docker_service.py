"""A docker for tests: the machine's own where one answers, else one that is started here, and images of workers."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
KEPT = ROOT / ".cache" / "worker-image"
"""What scripts/worker_image.sh makes; it takes a minute, and a network."""
BASE = "robotrials-tests-base"
"""The image with the dependencies of robotrials[pusht], but without robotrials."""
IMAGE = "robotrials-tests"
HASTY = "robotrials-tests-hasty"
"""The same, but its workers give a silent coordinator five seconds."""
_PACKAGES = "/usr/local/lib/python3.11/dist-packages"
_UP_S = 60.0


def missing(message: str) -> None:
    """A failure where ``make setup`` could have installed it (CI, root), elsewhere a skip."""
    if os.environ.get("CI") or os.geteuid() == 0:
        pytest.fail(message)
    pytest.skip(message)


def docker(*words: str, check: bool = True) -> str:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=300)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout.strip()


def answers() -> bool:
    return subprocess.run(["docker", "version"], capture_output=True, timeout=60).returncode == 0


@contextlib.contextmanager
def docker_service() -> Iterator[None]:
    """``DOCKER_HOST`` is set for a docker that is started, and ended, here."""
    if shutil.which("docker") is None:
        missing("no docker: scripts/services.sh installs it")
    if answers():
        yield
        return
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        missing("no docker service answers here, and none can be started")
    folder = Path(tempfile.mkdtemp(prefix="rt-docker-"))
    address, before = f"unix://{folder}/socket", os.environ.get("DOCKER_HOST")
    with open(folder / "log", "wb") as log:
        words = ["dockerd", f"--host={address}", f"--pidfile={folder}/pid", "--shutdown-timeout=1"]
        words += [f"--data-root={folder}/data", f"--exec-root={folder}/exec"]
        service = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
    os.environ["DOCKER_HOST"] = address
    try:
        deadline = time.monotonic() + _UP_S
        while not answers():
            said = (folder / "log").read_text()[-2000:]
            assert service.poll() is None, f"dockerd has ended: {said}"
            assert time.monotonic() < deadline, f"dockerd does not come up: {said}"
            time.sleep(0.2)
        yield
    finally:
        service.terminate()
        service.wait(60)
        if before is None:
            del os.environ["DOCKER_HOST"]
        else:
            os.environ["DOCKER_HOST"] = before
        shutil.rmtree(folder, ignore_errors=True)


def build_images() -> None:
    """``BASE``, ``IMAGE`` and ``HASTY`` from this checkout, without a network once ``KEPT`` is there."""
    done = subprocess.run([ROOT / "scripts/worker_image.sh", KEPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if not docker("images", "--quiet", BASE):
        _build(BASE, KEPT, f"FROM scratch\nADD system.tar /\nCOPY packages {_PACKAGES}\n")
    with tempfile.TemporaryDirectory() as context:
        for folder in ("src/robotrials", "tests"):
            shutil.copytree(ROOT / folder, Path(context, folder), ignore=shutil.ignore_patterns("__pycache__"))
        copies = f"COPY src/robotrials {_PACKAGES}/robotrials\nCOPY tests {_PACKAGES}/tests\n"
        _build(IMAGE, Path(context), f"FROM {BASE}\n{copies}")
        limit = "s/^COORDINATOR_SILENT_S = 60.0$/COORDINATOR_SILENT_S = 5.0/"
        _build(
            HASTY, Path(context), f"FROM {IMAGE}\nRUN sed -i '{limit}' {_PACKAGES}/robotrials/control/heartbeat.py\n"
        )


def _build(image: str, context: Path, recipe: str) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".Dockerfile") as file:
        file.write(recipe)
        file.flush()
        done = subprocess.run(
            ["docker", "build", "--quiet", "--network=none", f"--tag={image}", f"--file={file.name}", str(context)],
            env={**os.environ, "DOCKER_BUILDKIT": "0"},
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
