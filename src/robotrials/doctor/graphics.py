"""EGL and OSMesa: whether they draw, on what, and whether that is the GPU that CUDA has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from robotrials.doctor.finding import OK, PROBLEM, WARNING, Finding
from robotrials.environments.installation import GL_LIBRARIES
from robotrials.errors import ConfigError
from robotrials.rendering import egl
from robotrials.rendering.egl import Device
from robotrials.rendering.gl import DEVICE_ID, check_gl, choose_rendering, usable_gpus, why_no_gpu
from robotrials.rendering.system_packages import install_line


def examine(environ: Mapping[str, str]) -> list[Finding]:
    """The libraries here, and what a worker would draw with."""
    devices, problem = egl.probe()
    osmesa = egl.osmesa_problem()
    return findings(devices, problem, osmesa, egl.gpu_is_there(), environ)


def findings(
    devices: Sequence[Device], problem: str, osmesa: str, gpu_is_there: bool, environ: Mapping[str, str]
) -> list[Finding]:
    """``problem`` and ``osmesa`` say why EGL has no device and why OSMesa does not draw, empty where they do."""
    drawing = [device for device in devices if device.renderer]
    listed = "; ".join(f"device {d.index}: {d.renderer or d.problem}{_cuda(d)}" for d in devices)
    without_any = Finding("", PROBLEM, "", install_line(GL_LIBRARIES))
    found = []
    if drawing:
        found.append(Finding("EGL", OK, listed))
    else:
        level = WARNING if not osmesa else PROBLEM
        found.append(Finding("EGL", level, listed or problem, without_any.todo))
    if osmesa:
        level = WARNING if drawing else PROBLEM
        found.append(Finding("OSMesa", level, osmesa, install_line(["libosmesa6"])))
    else:
        found.append(Finding("OSMesa", OK, "draws on the processor"))
    if gpu_is_there:
        found.append(_gpu(devices, problem, environ))
    found.append(_choice(devices, problem, gpu_is_there, environ))
    return found


def _gpu(devices: Sequence[Device], problem: str, environ: Mapping[str, str]) -> Finding:
    """Whether EGL's GPU is CUDA's."""
    gpus = usable_gpus(devices, environ)
    if not gpus:
        todo = "robotrials eval draws on the processor meanwhile (--render.device=auto)"
        return Finding("GPU", WARNING, why_no_gpu(devices, problem, environ), todo)
    first = next((device for device in devices if device.renderer), None)
    named = ", ".join(f"EGL device {device.index}{_cuda(device)}" for device in gpus)
    if first is not None and first.index != gpus[0].index:
        what = f"left to itself MuJoCo draws on EGL device {first.index}{_cuda(first)}, which is not {named}"
        return Finding("GPU", WARNING, what, "robotrials eval pins its workers; elsewhere set MUJOCO_EGL_DEVICE_ID="
                       f"{gpus[0].index}")  # fmt: skip
    visible = environ.get("CUDA_VISIBLE_DEVICES", "")
    if visible and str(gpus[0].index) not in visible:
        what = f"robosuite refuses MUJOCO_EGL_DEVICE_ID={gpus[0].index} with CUDA_VISIBLE_DEVICES={visible}"
        return Finding(
            "GPU", WARNING, what, "for robosuite and LIBERO: --render.device=cpu, or unset CUDA_VISIBLE_DEVICES"
        )
    return Finding("GPU", OK, named)


def _choice(devices: Sequence[Device], problem: str, gpu_is_there: bool, environ: Mapping[str, str]) -> Finding:
    try:
        check_gl(environ, lambda: (devices, problem))
        chosen = choose_rendering("auto", environ, lambda: (devices, problem), lambda: gpu_is_there)
    except ConfigError as error:
        variable = DEVICE_ID if DEVICE_ID in str(error) else "MUJOCO_GL"
        return Finding("rendering", PROBLEM, str(error), f"unset {variable}: robotrials chooses what fits")
    if not chosen.variables.get("MUJOCO_GL") and not environ.get("MUJOCO_GL"):
        return Finding("rendering", PROBLEM, "nothing here draws without a display", install_line(GL_LIBRARIES))
    return Finding("rendering", WARNING if chosen.note else OK, chosen.note or chosen.words)


def _cuda(device: Device) -> str:
    return "" if device.cuda is None else f" (CUDA {device.cuda})"
