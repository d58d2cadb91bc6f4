"""A tiny simulator's package, and a benchmark that is installed from it: no index, no network."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

from robotrials.environments.installation import Installation
from tests.toy import Toy

SIMULATOR = "tiny_simulator"


def make_wheel(
    folder: Path,
    source: str = "GRAVITY = 9.81\n",
    version: str = "1.0",
    module: str = SIMULATOR,
    entry_points: str = "",
) -> Path:
    """A wheel of one module, as a build tool would leave it."""
    info = f"{module}-{version}.dist-info"
    files = {
        f"{module}.py": source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: {version}\n",
        f"{info}/entry_points.txt": entry_points,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},"
        f"{len(text.encode())}"
        for name, text in files.items()
    ]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""])
    path = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return path


def benchmark(requirement: str, **more: object) -> type[Toy]:
    """A benchmark that needs the tiny simulator."""

    class Tiny(Toy):
        name = "tiny"
        modules = (SIMULATOR,)
        packages = ("tiny-simulator",)
        installation = Installation(requirements=(requirement,), **more)  # type: ignore[arg-type]

    return Tiny
