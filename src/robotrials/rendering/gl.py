"""Which OpenGL a worker renders with. MuJoCo reads MUJOCO_GL when it is imported, so a worker's environment must
hold it before the worker starts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from ctypes.util import find_library
from dataclasses import dataclass, field, replace
from pathlib import Path

from robotrials.errors import ConfigError
from robotrials.rendering import egl
from robotrials.rendering.egl import Device
from robotrials.rendering.system_packages import install_line

DEVICE_ID = "MUJOCO_EGL_DEVICE_ID"
_OFFSCREEN = {"egl": "EGL", "osmesa": "OSMesa"}


_KNOWN = ("egl", "osmesa", "glfw", "glx", "cgl", "wgl", "disable", "disabled", "off", "false", "0", "no", "none", "")


def check_gl(environ: Mapping[str, str], probe: Callable[[], tuple[Sequence[Device], str]] = egl.probe) -> None:
    """
    Raises:
        ConfigError: MUJOCO_GL names what MuJoCo does not know, or MUJOCO_EGL_DEVICE_ID no device of this machine's EGL:
            every worker would fail on import, or with its first picture.
    """
    value = environ.get("MUJOCO_GL", "")
    if value.strip().lower() not in _KNOWN:
        raise ConfigError(f"MUJOCO_GL={value} is unknown to MuJoCo: set it to egl or osmesa, or unset it")
    number = environ.get(DEVICE_ID, "")
    backend = value or environ.get("PYOPENGL_PLATFORM", "") or gl_environment(environ).get("MUJOCO_GL", "")
    if not number or backend.strip().lower() != "egl":
        return
    devices, _ = probe()  # none where EGL cannot list them: then it is left to MuJoCo
    if devices and not (number.isdigit() and int(number) < len(devices)):
        offered = "device 0 alone" if len(devices) == 1 else f"devices 0 to {len(devices) - 1}"
        raise ConfigError(f"{DEVICE_ID}={number}: EGL offers {offered} here; set it to one of them, or unset it")


def gl_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables to add to a worker's environment: EGL where its library is found, else OSMesa, else nothing.

    What the user set wins, in MUJOCO_GL or in PYOPENGL_PLATFORM (MuJoCo refuses to be imported where the two differ).
    Both libraries render without a display. With neither, and off Linux, MuJoCo is left to its own choice.
    """
    if environ.get("MUJOCO_GL") or not sys.platform.startswith("linux"):
        return {}
    platform = environ.get("PYOPENGL_PLATFORM", "").lower()
    if platform:
        return {"MUJOCO_GL": platform} if platform in _OFFSCREEN else {}
    for backend, library in _OFFSCREEN.items():
        if find_library(library):
            return {"MUJOCO_GL": backend}
    return {}


@dataclass(frozen=True)
class Rendering:
    """What draws: ``device`` is ``gpu``, ``cpu``, or ``user`` where the user's own variables decide. ``gpus`` are the
    EGL numbers that workers are spread over, ``words`` are for people, ``note`` says what ``auto`` has fallen back
    from."""

    device: str
    variables: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[int, ...] = ()
    words: str = ""
    note: str = ""

    def of_worker(self, slot: int) -> dict[str, str]:
        """The variables of worker ``slot``: each has one GPU, in turn."""
        own = {DEVICE_ID: str(self.gpus[slot % len(self.gpus)])} if self.gpus else {}
        return {**self.variables, **own}


def choose_rendering(
    wanted: str,
    environ: Mapping[str, str],
    probe: Callable[[], tuple[Sequence[Device], str]] = egl.probe,
    gpu_is_there: Callable[[], bool] = egl.gpu_is_there,
) -> Rendering:
    """EGL or OSMesa, and on which device, for ``wanted`` (``--render.device``): gpu, cpu or auto.

    ``auto`` takes a GPU that EGL can draw on and that CUDA_VISIBLE_DEVICES leaves visible, else the processor, and then
    says why. The drivers are asked only where the kernel shows a GPU, or one is insisted on.

    Raises:
        ConfigError: the device asked for cannot draw, or the user's own variables say otherwise.
    """
    set_by_user = (environ.get("MUJOCO_GL") or environ.get("PYOPENGL_PLATFORM") or "").lower()
    if wanted == "gpu":
        if set_by_user not in ("", "egl"):
            raise ConfigError(
                f"--render.device=gpu draws with EGL, but MUJOCO_GL or PYOPENGL_PLATFORM is {set_by_user}"
            )
        devices, problem = probe()
        gpus = usable_gpus(devices, environ)
        if not gpus:
            raise ConfigError(
                f"--render.device=gpu: {why_no_gpu(devices, problem, environ)}; robotrials doctor says more"
            )
        return _on_gpus(gpus)
    if set_by_user not in ("", "egl", "osmesa"):
        return Rendering("user", gl_environment(environ), words=f"MUJOCO_GL={set_by_user}, as you set it")
    if set_by_user == "osmesa":
        return Rendering("cpu", gl_environment(environ), words="OSMesa, on the processor")
    if not sys.platform.startswith("linux"):
        return Rendering("user", words="MuJoCo's own choice")
    if not gpu_is_there():
        return _plain_software(environ)
    devices, problem = probe()
    gpus = usable_gpus(devices, environ)
    if wanted == "auto" and gpus:
        return _on_gpus(gpus)
    software = _software_beside_a_gpu(devices, set_by_user)
    if software is None and wanted == "cpu":
        raise ConfigError(f"nothing here can draw on the processor; install OSMesa: {install_line(['libosmesa6'])}")
    if software is None:  # a run that looks at nothing can do without
        return Rendering(
            "user", words="nothing that draws", note=f"no pictures: {why_no_gpu(devices, problem, environ)}"
        )
    if wanted == "cpu":
        return software
    return replace(software, note=f"drawing on the processor: {why_no_gpu(devices, problem, environ)}")


def usable_gpus(devices: Sequence[Device], environ: Mapping[str, str]) -> list[Device]:
    """The GPUs that EGL draws on, in the order of CUDA_VISIBLE_DEVICES where that is set: a simulator belongs on the
    GPUs that this run was given. What the user set as MUJOCO_EGL_DEVICE_ID wins."""
    gpus = [device for device in devices if device.is_gpu]
    chosen = environ.get(DEVICE_ID, "")
    if chosen.isdigit():
        return [device for device in gpus if device.index == int(chosen)]
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None or not any(device.cuda is not None for device in gpus):
        return gpus  # those of other makers are not CUDA's to hide
    by_cuda = {device.cuda: device for device in gpus if device.cuda is not None}
    return [by_cuda[number] for number in visible_cuda(visible) if number in by_cuda]


def visible_cuda(visible: str, known: Mapping[str, int] | None = None) -> list[int]:
    """The numbers in CUDA_VISIBLE_DEVICES, up to the first that is none, as CUDA reads it; GPU-<uuid> by the driver's
    list (``known``: uuid to number)."""
    numbers: list[int] = []
    for word in filter(None, (part.strip() for part in visible.split(","))):
        if word.isdigit():
            numbers.append(int(word))
            continue
        uuids = _uuids() if known is None else known
        matching = [number for uuid, number in uuids.items() if word.startswith("GPU-") and uuid.startswith(word)]
        if len(matching) != 1:
            break
        numbers += matching
    return numbers


def why_no_gpu(devices: Sequence[Device], problem: str, environ: Mapping[str, str]) -> str:
    """In words, why no GPU can be drawn on."""
    gpus = [device for device in devices if device.is_gpu]
    if gpus and environ.get(DEVICE_ID):
        return f"{DEVICE_ID}={environ[DEVICE_ID]} is no GPU that EGL offers; those are {', '.join(map(_name, gpus))}"
    if gpus:
        return (
            f"CUDA_VISIBLE_DEVICES={environ.get('CUDA_VISIBLE_DEVICES')!r} hides every GPU that EGL offers: "
            f"{', '.join(map(_name, gpus))}"
        )
    broken = next((device.problem for device in devices if device.problem), "")
    if broken:
        return f"EGL cannot draw on its devices: {broken}"
    if devices:
        return (
            "EGL offers software only; a container needs the driver's graphics part, too "
            "(NVIDIA_DRIVER_CAPABILITIES=all), and a host its package libnvidia-gl"
        )
    return f"EGL offers no device: {problem}"


def _on_gpus(gpus: Sequence[Device]) -> Rendering:
    numbers = tuple(device.index for device in gpus)
    return Rendering("gpu", {"MUJOCO_GL": "egl"}, numbers, f"EGL on {', '.join(map(_name, gpus))}")


def _plain_software(environ: Mapping[str, str]) -> Rendering:
    variables = gl_environment(environ)
    backend = variables.get("MUJOCO_GL", environ.get("MUJOCO_GL", ""))
    return Rendering("cpu", variables, words=f"{_OFFSCREEN.get(backend, 'no library')}, on the processor")


def _software_beside_a_gpu(devices: Sequence[Device], set_by_user: str) -> Rendering | None:
    """OSMesa, which knows no GPU; else EGL's own software device, which must be named or EGL takes the GPU; else
    None."""
    if set_by_user != "egl" and not egl.osmesa_problem():
        return Rendering("cpu", {"MUJOCO_GL": "osmesa"}, words="OSMesa, on the processor")
    software = [device.index for device in devices if device.renderer and not device.is_gpu]
    if software:
        variables = {"MUJOCO_GL": "egl", DEVICE_ID: str(software[0])}
        return Rendering("cpu", variables, words="EGL, on the processor")
    return None


def _name(device: Device) -> str:
    return f"{device.renderer.partition('/')[0]} (EGL device {device.index})"


def _uuids() -> dict[str, int]:
    """UUID to number of NVIDIA's GPUs, numbered by their place on the bus as CUDA_DEVICE_ORDER=PCI_BUS_ID does."""
    found: dict[str, int] = {}
    for number, path in enumerate(sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))):
        for line in path.read_text().splitlines():
            if line.startswith("GPU UUID"):
                found[line.partition(":")[2].strip()] = number
    return found
