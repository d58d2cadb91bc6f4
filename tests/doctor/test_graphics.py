from __future__ import annotations

from collections.abc import Mapping

import pytest

from robotrials.doctor.finding import Finding
from robotrials.doctor.graphics import findings
from robotrials.rendering import egl
from robotrials.rendering.egl import Device

MESA = Device(0, "llvmpipe (LLVM 15.0.6, 256 bits)")
H200 = [Device(0, "NVIDIA H200/PCIe/SSE2", cuda=1), Device(1, "NVIDIA H200/PCIe/SSE2", cuda=0)]


def look(devices: list[Device], osmesa: str = "", gpu: bool = False, **environ: str) -> Mapping[str, Finding]:
    problem = "" if devices else "no library libEGL"
    return {finding.check: finding for finding in findings(devices, problem, osmesa, gpu, environ)}


def test_software_alone_is_fine() -> None:
    seen = look([MESA])
    assert {check: finding.level for check, finding in seen.items()} == {"EGL": "ok", "OSMesa": "ok", "rendering": "ok"}
    assert seen["EGL"].what == "device 0: llvmpipe (LLVM 15.0.6, 256 bits)"


def test_one_of_the_two_is_enough() -> None:
    assert look([MESA], osmesa="no library libOSMesa")["OSMesa"].level == "warning"
    assert look([])["EGL"].level == "warning"


def test_without_either_the_line_that_installs_them_is_given() -> None:
    seen = look([], osmesa="no library libOSMesa")
    assert (seen["EGL"].level, seen["OSMesa"].level) == ("problem", "problem")
    assert (
        "apt-get install -y --no-install-recommends libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri libosmesa6"
        in seen["EGL"].todo
    )


def test_a_gpu_that_is_not_cudas_is_told_with_the_number_that_is() -> None:
    gpu = look(H200, gpu=True, CUDA_VISIBLE_DEVICES="0")["GPU"]
    assert gpu.level == "warning"
    assert "left to itself MuJoCo draws on EGL device 0 (CUDA 1), which is not EGL device 1 (CUDA 0)" in gpu.what
    assert gpu.todo.endswith("MUJOCO_EGL_DEVICE_ID=1")


def test_robosuites_own_check_is_told() -> None:
    gpu = look(H200, gpu=True, CUDA_VISIBLE_DEVICES="1")["GPU"]
    assert gpu.what == "robosuite refuses MUJOCO_EGL_DEVICE_ID=0 with CUDA_VISIBLE_DEVICES=1"


@pytest.mark.skipif(bool(egl.osmesa_problem()), reason="needs OSMesa")
def test_a_gpu_without_its_egl_is_told() -> None:
    seen = look([MESA], gpu=True)
    assert seen["GPU"].level == seen["rendering"].level == "warning"
    assert "NVIDIA_DRIVER_CAPABILITIES=all" in seen["GPU"].what


def test_a_gpu_that_egl_and_cuda_share_is_fine() -> None:
    seen = look([Device(0, "NVIDIA H200/PCIe/SSE2", cuda=0), Device(1, MESA.renderer)], gpu=True)
    assert (seen["GPU"].level, seen["rendering"].what) == ("ok", "EGL on NVIDIA H200 (EGL device 0)")


def test_a_setting_that_mujoco_does_not_know_is_a_problem() -> None:
    assert look([MESA], MUJOCO_GL="eggl")["rendering"].level == "problem"


def test_what_to_do_names_the_variable_that_is_wrong() -> None:
    wrong = look([MESA], MUJOCO_GL="egl", MUJOCO_EGL_DEVICE_ID="7")["rendering"]
    assert (wrong.level, wrong.todo) == ("problem", "unset MUJOCO_EGL_DEVICE_ID: robotrials chooses what fits")
    assert look([MESA], MUJOCO_GL="eggl")["rendering"].todo.startswith("unset MUJOCO_GL:")
