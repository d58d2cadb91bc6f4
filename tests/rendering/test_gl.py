from __future__ import annotations

import sys
from collections.abc import Callable
from ctypes.util import find_library
from pathlib import Path

import pytest

from robotrials.cli.main import main
from robotrials.errors import ConfigError
from robotrials.rendering import egl
from robotrials.rendering.egl import Device
from robotrials.rendering.gl import DEVICE_ID, Rendering, check_gl, choose_rendering, gl_environment, visible_cuda

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere MuJoCo chooses")

# As drivers answer: EGL lists two GPUs in the reverse of CUDA's order, then Mesa's software.
TWO_GPUS = [
    Device(0, "NVIDIA H200/PCIe/SSE2", cuda=1, drm="/dev/dri/card1"),
    Device(1, "NVIDIA H200/PCIe/SSE2", cuda=0, drm="/dev/dri/card0"),
    Device(2, "llvmpipe (LLVM 15.0.6, 256 bits)"),
]
SOFTWARE = [Device(0, "llvmpipe (LLVM 15.0.6, 256 bits)")]
LOCKED = [Device(0, problem="eglInitialize fails (0x3001)"), Device(1, "llvmpipe (LLVM 15.0.6, 256 bits)")]


def machine(devices: list[Device], gpu: bool = True) -> Callable[..., Rendering]:
    """``choose_rendering`` on a machine with these EGL devices."""
    return lambda wanted, environ: choose_rendering(wanted, environ, lambda: (devices, ""), lambda: gpu)


def test_the_users_choice_is_left_alone() -> None:
    assert gl_environment({"MUJOCO_GL": "glfw"}) == {}


@linux
def test_mujoco_follows_the_platform_chosen_for_pyopengl() -> None:
    assert gl_environment({"PYOPENGL_PLATFORM": "osmesa"}) == {"MUJOCO_GL": "osmesa"}


@linux
def test_the_first_library_that_is_there_is_chosen() -> None:
    there = [{"MUJOCO_GL": name} for name, library in (("egl", "EGL"), ("osmesa", "OSMesa")) if find_library(library)]
    assert gl_environment({}) == (there[0] if there else {})


@pytest.mark.parametrize("wanted", ["auto", "gpu"])
def test_workers_are_spread_over_the_gpus_by_their_egl_numbers(wanted: str) -> None:
    rendering = machine(TWO_GPUS)(wanted, {})
    assert rendering.device == "gpu"
    assert [rendering.of_worker(slot)[DEVICE_ID] for slot in range(3)] == ["0", "1", "0"]
    assert rendering.of_worker(0)["MUJOCO_GL"] == "egl"


@pytest.mark.parametrize(
    ("visible", "egl_numbers"), [("0", (1,)), ("1", (0,)), ("0,1", (1, 0)), ("1,-1,0", (0,)), ("7", ())]
)
def test_only_gpus_that_cuda_may_use_are_drawn_on(visible: str, egl_numbers: tuple[int, ...]) -> None:
    assert machine(TWO_GPUS)("auto", {"CUDA_VISIBLE_DEVICES": visible}).gpus == egl_numbers


def test_a_gpu_of_another_maker_is_not_cudas_to_hide() -> None:
    radeon = [Device(0, "AMD Radeon RX 7900 (radeonsi)", drm="/dev/dri/card0")]
    assert machine(radeon)("auto", {"CUDA_VISIBLE_DEVICES": ""}).gpus == (0,)


def test_a_gpu_named_by_its_uuid_is_matched() -> None:
    uuids = {"GPU-aaaa-1": 0, "GPU-bbbb-2": 1}
    assert visible_cuda("GPU-bbbb", uuids) == [1]
    assert visible_cuda("1,GPU-aaaa-1", uuids) == [1, 0]
    assert visible_cuda("MIG-1234", uuids) == []


def test_the_users_egl_device_wins() -> None:
    rendering = machine(TWO_GPUS)("auto", {DEVICE_ID: "1", "CUDA_VISIBLE_DEVICES": "1"})
    assert [rendering.of_worker(slot)[DEVICE_ID] for slot in (0, 1)] == ["1", "1"]


@pytest.mark.skipif(bool(egl.osmesa_problem()), reason="needs OSMesa")
@pytest.mark.parametrize("number", ["3", "-1", "first"])
def test_an_egl_device_that_is_not_there_is_refused_at_once(number: str) -> None:
    environ = {"MUJOCO_GL": "egl", DEVICE_ID: number}
    with pytest.raises(ConfigError, match=rf"{DEVICE_ID}={number}: EGL offers devices 0 to 2 here"):
        check_gl(environ, lambda: (TWO_GPUS, ""))
    with pytest.raises(ConfigError, match="EGL offers device 0 alone here"):
        check_gl(environ, lambda: (SOFTWARE, ""))
    check_gl({**environ, "MUJOCO_GL": "osmesa"}, lambda: (SOFTWARE, ""))  # which looks at no device
    check_gl(environ, lambda: ([], "this EGL cannot list its devices"))
    check_gl({"MUJOCO_GL": "egl", DEVICE_ID: "2"}, lambda: (TWO_GPUS, ""))


def test_auto_falls_back_and_says_why() -> None:
    hidden = machine(TWO_GPUS)("auto", {"CUDA_VISIBLE_DEVICES": ""})
    assert (hidden.device, dict(hidden.variables)) == ("cpu", {"MUJOCO_GL": "osmesa"})
    assert "CUDA_VISIBLE_DEVICES='' hides every GPU that EGL offers: NVIDIA H200" in hidden.note
    assert "eglInitialize fails (0x3001)" in machine(LOCKED)("auto", {}).note
    assert "NVIDIA_DRIVER_CAPABILITIES=all" in machine(SOFTWARE)("auto", {}).note


def test_a_gpu_that_is_insisted_on_and_missing_is_refused() -> None:
    with pytest.raises(ConfigError, match="EGL offers software only"):
        machine(SOFTWARE)("gpu", {})
    with pytest.raises(ConfigError, match="hides every GPU"):
        machine(TWO_GPUS)("gpu", {"CUDA_VISIBLE_DEVICES": ""})
    with pytest.raises(ConfigError, match="MUJOCO_GL or PYOPENGL_PLATFORM is osmesa"):
        machine(TWO_GPUS)("gpu", {"MUJOCO_GL": "osmesa"})


def test_the_processor_beside_a_gpu_is_not_egls_first_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egl, "osmesa_problem", lambda: "no library libOSMesa")
    rendering = machine(TWO_GPUS)("cpu", {})
    assert (rendering.device, rendering.of_worker(5)) == ("cpu", {"MUJOCO_GL": "egl", DEVICE_ID: "2"})
    with pytest.raises(ConfigError, match=r"install OSMesa: .*apt-get install .*libosmesa6"):
        machine(TWO_GPUS[:2])("cpu", {})
    assert (
        machine(LOCKED[:1])("auto", {}).note
        == "no pictures: EGL cannot draw on its devices: eglInitialize fails (0x3001)"
    )


@linux
def test_without_a_gpu_no_driver_is_asked() -> None:
    def never() -> tuple[list[Device], str]:
        raise AssertionError

    rendering = choose_rendering("auto", {}, never, lambda: False)
    assert (rendering.device, rendering.note) == ("cpu", "")
    assert rendering.variables == gl_environment({})


@pytest.mark.skipif(find_library("EGL") is None, reason="needs EGL")
def test_this_machines_egl_answers() -> None:
    devices, problem = egl.probe()
    assert [device.index for device in devices] == list(range(len(devices)))
    assert bool(devices) != bool(problem)
    assert all(bool(device.renderer) != bool(device.problem) for device in devices)


@pytest.mark.parametrize("flag", ["--render.device=cpu", "--render-device=cpu"])
def test_a_dry_run_shows_what_draws(flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("metaworld")
    words = ["eval", "--policy.type=random", "--env.type=metaworld", "--env.task=push-v3", flag, "--dry_run"]
    assert main([*words, f"--output_dir={tmp_path / 'run'}"]) == 0
    assert "on the processor" in next(
        line for line in capsys.readouterr().out.splitlines() if line.startswith("Rendering")
    )


def test_what_does_not_draw_through_opengl_has_no_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "--policy.type=random", "--env.type=tests.toy:Toy", "--render.device=gpu", "--dry_run"]) == 1
    assert "does not draw through OpenGL" in capsys.readouterr().err
