"""Images of benchmarks: what every Dockerfile keeps to; and base and PushT, built and run for real."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from robotrials.benchmarks import registry
from robotrials.cli.flags import parse_eval
from tests.engine.launchers import docker_service
from tests.engine.launchers.docker_service import KEPT, ROOT, docker

RECIPES = sorted((ROOT / "docker").glob("*.Dockerfile"))
BENCHMARKS = [path for path in RECIPES if path.name != "base.Dockerfile"]


def name_of(recipe: Path) -> str:
    return recipe.name.removesuffix(".Dockerfile")


def variable(recipe: Path, name: str) -> str:
    found = re.search(rf'{name}="?([^"\n\\]*)"?', recipe.read_text(encoding="utf-8"))
    assert found is not None, f"{recipe.name} sets no {name}"
    return found[1].strip()


@pytest.mark.parametrize("recipe", RECIPES, ids=name_of)
def test_an_image_ends_as_a_user_who_is_not_root(recipe: Path) -> None:
    users = re.findall(r"^USER (\S+)$", recipe.read_text(encoding="utf-8"), re.MULTILINE)
    assert users[-1] == "1000"


@pytest.mark.parametrize("recipe", BENCHMARKS, ids=name_of)
def test_an_image_is_for_the_benchmark_it_is_called_by_and_its_smoke_test_is_understood(recipe: Path) -> None:
    name = name_of(recipe)
    assert name in registry.names()
    assert variable(recipe, "ROBOTRIALS_BENCHMARK") == name
    flags = variable(recipe, "ROBOTRIALS_SMOKE").split()
    config = parse_eval([f"--env.type={name}", *flags, "--policy.type=random"]).config
    registry.make_benchmark(config.env)  # options that do not exist are refused


@pytest.mark.parametrize("recipe", BENCHMARKS, ids=name_of)
def test_an_image_installs_by_the_pins_where_there_are_any(recipe: Path) -> None:
    name, text = name_of(recipe), recipe.read_text(encoding="utf-8")
    pins = registry.benchmark_class(name).installation
    assert (f"robotrials bench install {name} " in text) == (not pins.unavailable)
    assert [package for package in pins.system if package not in text] == []


def test_an_image_of_no_benchmark_is_refused_by_name() -> None:
    done = subprocess.run(
        [ROOT / "scripts/build_eval_images.sh", "--benchmarks=pusht,nothing"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "there is no docker/nothing.Dockerfile" in done.stderr


def import_debian(image: str) -> None:
    """The Debian that scripts/worker_image.sh has made, as an image in the place of the one that is pulled; it trusts
    the certificates that this machine was told to trust."""
    with tempfile.TemporaryDirectory(dir=KEPT) as context:
        os.link(KEPT / "system.tar", Path(context, "system.tar"))
        recipe = "FROM scratch\nADD system.tar /\n"
        trusted = os.environ.get("SSL_CERT_FILE")
        if trusted:
            shutil.copyfile(trusted, Path(context, "trusted.crt"))
            names = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE")
            recipe += "COPY trusted.crt /etc/trusted.crt\n"
            recipe += "".join(f"ENV {name}=/etc/trusted.crt\n" for name in names)
        Path(context, "Dockerfile").write_text(recipe)
        docker("build", "--quiet", f"--tag={image}", context)


@pytest.fixture(scope="module")
def pusht() -> Iterator[str]:
    """robotrials-pusht, built by the script, from a Debian that is made here instead of one that is pulled."""
    with docker_service.docker_service(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_BUILDKIT", "0")  # where a docker without its builder plugin is
        made = subprocess.run([ROOT / "scripts/worker_image.sh", KEPT], capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        import_debian("robotrials-tests-debian")
        words = ["--benchmarks=pusht", "--no-smoke", "--debian=robotrials-tests-debian"]
        done = subprocess.run([ROOT / "scripts/build_eval_images.sh", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        yield "robotrials-pusht"


@pytest.mark.slow
def test_the_smoke_test_passes_without_network_root_or_disk(pusht: str) -> None:
    confined = ["--network=none", "--read-only", "--tmpfs=/tmp:rw,exec", "--cap-drop=ALL", "--user=65534:65534"]
    said = docker("run", "--rm", *confined, pusht, "bash", "-c", "smoke >&2; cat /tmp/tmp.*/metrics.json")
    metrics = json.loads(said)
    assert (metrics["env"], metrics["policy"], metrics["complete"]) == ("pusht", "random", True)
    assert metrics["task_descriptions"] == {"PushT-v0": "Push the T-shaped block onto the T-shaped target."}
    assert docker("run", "--rm", pusht, "id", "--user") == "1000"


@pytest.mark.slow
def test_the_evaluation_of_ci_leaves_what_artifacts_are_made_of(pusht: str, tmp_path: Path) -> None:
    settings = {"BENCHMARK": "pusht", "N_EPISODES": "2", "MIN_SUCCESS": "100%"}
    python = Path(sys.executable).parent
    done = subprocess.run(
        [ROOT / "scripts/ci_evaluate.sh", tmp_path / "results"],
        env={**os.environ, **settings, "PATH": f"{python}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3, done.stdout + done.stderr  # a random policy is below what was asked for
    made = {path.name for path in (tmp_path / "results").rglob("*") if path.is_file()}
    assert {"metrics.json", "junit.xml", "task_descriptions.json", "report.html", "0.mp4", "1.mp4"} <= made
