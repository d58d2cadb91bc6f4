"""Where the files of a policy are, and what tells their contents apart."""

from __future__ import annotations

import re
from pathlib import Path

from robotrials.errors import ConfigError
from robotrials.plan.options import nearest

BUILTIN = "builtin:"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_FILES = frozenset(
    {".bin", ".ckpt", ".h5", ".hdf5", ".json", ".npy", ".npz", ".onnx", ".parquet", ".pkl", ".pt", ".pth"}
    | {".py", ".safetensors", ".yaml", ".yml", ".zip"}
)
"""Endings that mean a file, which is missing then; other dots belong to a repository's name (``act.base``)."""
_MODELS = Path(__file__).parent / "models"


def locate(path: str) -> Path:
    """The file or folder that ``--policy.path`` means; ``builtin:NAME`` is a model shipped with robotrials.

    Raises:
        ConfigError: no shipped model has that name.
    """
    if not path.startswith(BUILTIN):
        return Path(path).expanduser()
    shipped = {file.stem.replace("_", "-"): file for file in sorted(_MODELS.glob("*.onnx"))}
    name = path.removeprefix(BUILTIN)
    if name not in shipped:
        known = ", ".join(BUILTIN + n for n in shipped)
        raise ConfigError(f"--policy.path={path}: no such model{nearest(name, shipped)}; robotrials ships {known}")
    return shipped[name]


def is_hub_id(path: str) -> bool:
    """Whether ``path`` means ``owner/name`` on the Hugging Face Hub: a file or folder of that name is meant first."""
    return (
        _HUB_ID.fullmatch(path) is not None
        and Path(path).suffix.lower() not in _FILES
        and not Path(path).expanduser().exists()
    )


def digest(path: Path) -> str:
    """First 16 hexadecimal digits of the SHA-256 of a file, or of a folder's files with their relative names.

    Raises:
        ConfigError: nothing is there.
    """
    import hashlib

    if not path.exists():
        raise ConfigError(f"{path}: no such file or folder")
    total = hashlib.sha256()
    for file in [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file()):
        if path.is_dir():
            total.update(file.relative_to(path).as_posix().encode() + b"\0" + str(file.stat().st_size).encode() + b"\0")
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                total.update(block)
    return total.hexdigest()[:16]
