"""Which devices EGL offers, and what would really draw on each: asked of the drivers, in a process of its own.

``python -m robotrials.rendering.egl`` prints it as JSON. The order of devices is that of ``eglQueryDevicesEXT``, which
is what MUJOCO_EGL_DEVICE_ID counts (MuJoCo 3); it is not CUDA's, nor bound by CUDA_VISIBLE_DEVICES.
"""

from __future__ import annotations

import ctypes
import glob
import json
import os
import subprocess
import sys
from ctypes.util import find_library
from dataclasses import asdict, dataclass
from typing import Any

_TIMEOUT_S = 60
_PLATFORM_DEVICE, _DRM_FILE, _CUDA_DEVICE, _EXTENSIONS = 0x313F, 0x3233, 0x323A, 0x3055
_OPENGL_API, _NONE, _SURFACE_TYPE, _PBUFFER_BIT, _RENDERABLE_TYPE, _OPENGL_BIT = 0x30A2, 0x3038, 0x3033, 1, 0x3040, 8
_WIDTH, _HEIGHT, _GL_RENDERER = 0x3057, 0x3056, 0x1F01
_MOST_DEVICES = 64
_SOFTWARE = ("llvmpipe", "softpipe", "swrast", "swr")


@dataclass(frozen=True)
class Device:
    """One EGL device. ``renderer`` is what OpenGL calls itself there, empty where no context could be made and
    ``problem`` says why; ``cuda`` its CUDA number (counted without CUDA_VISIBLE_DEVICES), ``drm`` its device file."""

    index: int
    renderer: str = ""
    cuda: int | None = None
    drm: str = ""
    problem: str = ""

    @property
    def is_gpu(self) -> bool:
        return bool(self.renderer) and not any(name in self.renderer.lower() for name in _SOFTWARE)


def gpu_is_there() -> bool:
    """Whether the kernel shows a GPU that this process could open; costs two look-ups in /dev."""
    return bool(glob.glob("/dev/nvidia[0-9]*") or glob.glob("/dev/dri/renderD*"))


def probe() -> tuple[list[Device], str]:
    """The EGL devices in order, and what went wrong where there are none."""
    # Counted without CUDA_VISIBLE_DEVICES: its numbers are what is to be matched.
    environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return [], f"the driver has not answered in {_TIMEOUT_S} s"
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return [], f"asking EGL fails: {said[-1]}"
    return [Device(**device) for device in answer["devices"]], answer["problem"]


def osmesa_problem() -> str:
    """Why OSMesa cannot draw here; empty where its library loads."""
    name = find_library("OSMesa")
    if not name:
        return "no library libOSMesa"
    try:
        ctypes.CDLL(name)
    except OSError as error:
        return str(error)
    return ""


def _load() -> Any:
    egl = ctypes.CDLL(find_library("EGL") or "libEGL.so.1")
    egl.eglGetProcAddress.restype = ctypes.c_void_p
    egl.eglGetProcAddress.argtypes = [ctypes.c_char_p]
    return egl


def _function(egl: Any, name: str, result: Any, *arguments: Any) -> Any:
    address = egl.eglGetProcAddress(name.encode())
    return ctypes.CFUNCTYPE(result, *arguments)(address) if address else None


def _ask() -> dict[str, Any]:
    pointer, integer = ctypes.c_void_p, ctypes.c_int
    try:
        egl = _load()
    except OSError as error:
        return {"devices": [], "problem": f"no library libEGL ({error})"}
    query = _function(egl, "eglQueryDevicesEXT", integer, integer, ctypes.POINTER(pointer), ctypes.POINTER(integer))
    if query is None:
        return {"devices": [], "problem": "this EGL cannot list its devices (no EGL_EXT_device_enumeration)"}
    handles, count = (pointer * _MOST_DEVICES)(), integer()
    if not query(_MOST_DEVICES, handles, ctypes.byref(count)):
        return {"devices": [], "problem": "EGL lists no devices: is a driver for it installed?"}
    devices = [_describe(egl, index, handles[index]) for index in range(count.value)]
    return {"devices": [asdict(device) for device in devices], "problem": "" if devices else "EGL has no device"}


def _describe(egl: Any, index: int, handle: Any) -> Device:
    pointer, integer = ctypes.c_void_p, ctypes.c_int
    text_of = _function(egl, "eglQueryDeviceStringEXT", ctypes.c_char_p, pointer, integer)
    number_of = _function(egl, "eglQueryDeviceAttribEXT", integer, pointer, integer, ctypes.POINTER(ctypes.c_ssize_t))
    extensions = (text_of(handle, _EXTENSIONS) or b"").decode() if text_of else ""
    drm = (text_of(handle, _DRM_FILE) or b"").decode() if "EGL_EXT_device_drm" in extensions else ""
    cuda: int | None = None
    value = ctypes.c_ssize_t()
    if number_of and "EGL_NV_device_cuda" in extensions and number_of(handle, _CUDA_DEVICE, ctypes.byref(value)):
        cuda = value.value
    renderer, problem = _renderer(egl, handle)
    return Device(index, renderer, cuda, drm, problem)


def _renderer(egl: Any, handle: Any) -> tuple[str, str]:
    """What draws on this device, or why nothing does: a context is made, as MuJoCo makes one."""
    pointer, integer = ctypes.c_void_p, ctypes.c_int
    display_of = _function(egl, "eglGetPlatformDisplayEXT", pointer, integer, pointer, pointer)
    for name, result, arguments in (
        ("eglInitialize", integer, [pointer, pointer, pointer]),
        ("eglChooseConfig", integer, [pointer, pointer, pointer, integer, pointer]),
        ("eglCreatePbufferSurface", pointer, [pointer, pointer, pointer]),
        ("eglCreateContext", pointer, [pointer, pointer, pointer, pointer]),
        ("eglMakeCurrent", integer, [pointer, pointer, pointer, pointer]),
    ):
        function = getattr(egl, name)
        function.restype, function.argtypes = result, arguments
    display = display_of(_PLATFORM_DEVICE, handle, None) if display_of else None
    if not display or not egl.eglInitialize(display, None, None):
        return "", f"eglInitialize fails (0x{egl.eglGetError():x}); may this user open its file in /dev/dri?"
    egl.eglBindAPI(_OPENGL_API)
    wanted = (integer * 5)(_SURFACE_TYPE, _PBUFFER_BIT, _RENDERABLE_TYPE, _OPENGL_BIT, _NONE)
    config, count = pointer(), integer()
    if not egl.eglChooseConfig(display, wanted, ctypes.byref(config), 1, ctypes.byref(count)) or not count.value:
        return "", "no configuration for OpenGL off screen"
    size = (integer * 5)(_WIDTH, 16, _HEIGHT, 16, _NONE)
    surface = egl.eglCreatePbufferSurface(display, config, size)
    context = egl.eglCreateContext(display, config, None, None)
    if not context or not egl.eglMakeCurrent(display, surface, surface, context):
        return "", f"no OpenGL context (0x{egl.eglGetError():x})"
    get_string = _function(egl, "glGetString", ctypes.c_char_p, ctypes.c_uint)
    name_of_it = get_string(_GL_RENDERER) if get_string else None
    egl.eglMakeCurrent(display, None, None, None)
    return (name_of_it or b"unknown").decode(errors="replace"), ""


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_ask()) + "\n")
    sys.stdout.flush()
    os._exit(0)  # drivers print as they are torn down
