from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from importlib.metadata import metadata, version
from pathlib import Path

import pytest

from robotrials.benchmarks import adapters, registry
from robotrials.benchmarks.adapters.metaworld.benchmark import MetaWorld
from robotrials.benchmarks.adapters.pusht import PushT
from robotrials.benchmarks.adapters.vlabench.tasks import TASKS as VLABENCH
from robotrials.benchmarks.base import Benchmark, Env
from robotrials.errors import ConfigError, NotInstalledError
from robotrials.plan.config import EnvChoice
from tests.benchmarks.scenes import in_a_fresh_process

OWN = ["metaworld", "pusht"]


def test_names_are_the_modules_that_define_a_benchmark_and_not_their_helpers() -> None:
    known = registry.names()
    assert set(OWN) <= set(known)
    assert known == sorted(known)
    assert not {"base", "gl", "metaworld_tasks", "mujoco_snapshot", "registry"} & set(known)


def test_listing_and_checking_imports_neither_benchmarks_nor_simulators() -> None:
    out, _ = in_a_fresh_process(
        "import sys\n"
        "from robotrials.benchmarks import registry as r\n"
        "r.names()\n"
        "print([m for m in sys.modules if m.startswith('robotrials.benchmarks.adapters.')])\n"
        "for name in ('metaworld', 'pusht'):\n"
        "    r.require_installed(r.benchmark_class(name))\n"
        "print([m for m in ('metaworld', 'mujoco', 'gymnasium', 'gym_pusht', 'pygame') if m in sys.modules])\n"
    )
    assert out.splitlines() == ["[]", "[]"]


def test_finding_a_built_in_benchmark_leaves_package_metadata_unread() -> None:
    out, _ = in_a_fresh_process(
        "import sys\n"
        "from robotrials.benchmarks.registry import benchmark_class\n"
        "benchmark_class('metaworld')\n"
        "print('importlib.metadata' in sys.modules)\n"
    )
    assert out.strip() == "False"


@pytest.mark.parametrize("name", OWN)
def test_a_benchmark_is_called_like_its_module_and_explains_its_options(name: str) -> None:
    cls = registry.benchmark_class(name)
    assert cls.name == name
    assert all(field.metadata.get("help") for field in dataclasses.fields(cls.Config))


def test_an_unknown_name_lists_what_exists_and_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"--env\.type=metawrld \(did you mean metaworld\?\); known: .*pusht"):
        registry.benchmark_class("metawrld")


def test_no_name_asks_for_one() -> None:
    with pytest.raises(ConfigError, match=r"give --env\.type; known: "):
        registry.make_benchmark(EnvChoice())


@pytest.mark.parametrize("name", ["registry", "base", "os.path", "../plan"])
def test_what_is_no_benchmark_cannot_be_named(name: str) -> None:
    with pytest.raises(ConfigError, match="unknown"):
        registry.benchmark_class(name)


def test_a_misspelt_option_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"--env\.camera_nam \(did you mean --env\.camera_name\?\)"):
        registry.make_benchmark(EnvChoice("metaworld", {"task": "push-v3", "camera_nam": "corner"}))


def test_options_are_read_as_the_command_line_writes_them() -> None:
    benchmark = registry.make_benchmark(EnvChoice("metaworld", {"task": "push-v3", "observation_width": "64"}))
    assert benchmark.config.observation_width == 64


def test_a_missing_simulator_names_the_extra_that_installs_it() -> None:
    class Absent(PushT):
        modules = ("gym_pusht", "no_such_simulator")

    with pytest.raises(NotInstalledError, match=r"no_such_simulator.*pip install .*\[pusht\]"):
        registry.require_installed(Absent)


def test_versions_that_do_not_work_together_are_refused_with_the_remedy() -> None:
    class Clashing(MetaWorld):
        @classmethod
        def conflict(cls, versions: object) -> str | None:
            return MetaWorld.conflict({"metaworld": "3.0.0", "mujoco": "4.0.0"})

    with pytest.raises(NotInstalledError, match=r'metaworld 3\.0\.0 .* mujoco 4\.0\.0: .*"mujoco>=3\.3\.0,<3\.9"'):
        registry.require_installed(Clashing)
    assert MetaWorld.conflict({"metaworld": "3.0.0", "mujoco": "3.8.1"}) is None


def test_versions_are_those_installed() -> None:
    class Some(PushT):
        packages = ("numpy", "no-such-distribution")

    assert registry.package_versions(Some) == {"numpy": version("numpy")}


def _install(folder: Path, module: str, source: str) -> None:
    """What pip leaves of a package that offers ``module:Toy`` as a benchmark called toy-sim."""
    (folder / f"{module}.py").write_text(source)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[robotrials.benchmarks]\ntoy-sim = {module}:Toy\n")


def test_a_plugin_is_found_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "from robotrials.benchmarks.adapters.pusht import PushT\nclass Toy(PushT):\n    name = 'toy-sim'\n"
    _install(tmp_path, "robotrials_toy_one", source)
    monkeypatch.syspath_prepend(tmp_path)
    assert "toy-sim" in registry.names()
    assert registry.make_benchmark(EnvChoice("toy-sim")).name == "toy-sim"


def test_a_plugin_that_is_no_benchmark_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, "robotrials_toy_two", "class Toy: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match="is no subclass of"):
        registry.benchmark_class("toy-sim")


@pytest.mark.parametrize("name", registry.names())
def test_the_remedy_for_a_missing_benchmark_exists(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cls = registry.benchmark_class(name)
    monkeypatch.setattr(registry, "_is_there", lambda module: False)
    with pytest.raises(NotInstalledError) as refusal:
        registry.require_installed(cls)
    said = str(refusal.value)
    if cls.installation.unavailable:  # `bench install` refuses it, and there is no such extra
        assert said.endswith(cls.installation.unavailable)
        assert "--env.python" in said
        assert "robotrials[" not in said
        assert "bench install" not in said
    else:
        assert cls.extra in metadata("robotrials").get_all("Provides-Extra", [])
        assert cls.installation.requirements


def test_the_table_names_every_benchmark_of_the_package_once() -> None:
    """Each entry leads to a class of that name, and no finished benchmark of the package is left out."""
    classes = {name: registry.benchmark_class(name) for name in registry.OWN}
    assert {name: cls.name for name, cls in classes.items()} == {name: name for name in registry.OWN}
    assert list(registry.OWN) == sorted(registry.OWN)
    found = set()
    for module in pkgutil.walk_packages(adapters.__path__, "robotrials.benchmarks.adapters."):
        for cls in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(cls) and issubclass(cls, Benchmark) and not inspect.isabstract(cls):
                found.add(cls)
    assert found == set(classes.values())


@pytest.mark.parametrize("name", ["pusht", "aloha", "libero", "robosuite"])
def test_an_expert_that_does_not_exist_is_refused_before_anything_is_built(name: str) -> None:
    options = {"task": "Lift"} if name == "robosuite" else {}
    benchmark = registry.make_benchmark(EnvChoice(name, options))
    with pytest.raises(ConfigError, match=f"{name} has no scripted experts"):
        benchmark.check_expert(PushT(PushT.Config()).tasks()[0])


def test_classes_that_define_no_expert_say_so() -> None:
    for name in registry.OWN:
        cls = registry.benchmark_class(name)
        module = importlib.import_module(cls.__module__)
        envs = [c for c in vars(module).values() if inspect.isclass(c) and issubclass(c, Env) and c is not Env]
        if cls.experts is False:
            assert all(c.expert is Env.expert for c in envs), name


ALL = {
    "aloha": 2,
    "gymnasium_robotics": 4,
    "libero": 130,
    "maniskill": 13,
    "metaworld": 50,
    "pusht": 1,
    "robomme": 16,
    "robosuite": 19,
    "robotwin": 50,
}


@pytest.mark.parametrize("name", [*ALL, "vlabench"])
def test_all_means_every_task(name: str) -> None:
    tasks = registry.make_benchmark(EnvChoice(name, {"task": "all"})).tasks()
    assert len({task.key for task in tasks}) == len(tasks)
    assert len(tasks) == ALL.get(name, len(VLABENCH))


@pytest.mark.parametrize("name", ["gym", "robocasa", "isaaclab_arena"])
def test_all_is_refused_where_nobody_lists_the_tasks(name: str) -> None:
    with pytest.raises(ConfigError, match=f"--env.task=all: {name} has no list of its tasks"):
        registry.make_benchmark(EnvChoice(name, {"task": "all"}))
