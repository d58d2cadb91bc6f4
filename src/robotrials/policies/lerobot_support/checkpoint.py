"""A LeRobot checkpoint as a folder: is it one, what does it hold, what tells it from another. Imports no torch.

The layout is LeRobot's (0.6, ``policies/pretrained.py`` and ``processor/pipeline.py``): ``config.json`` with the policy
``type``, ``model.safetensors`` (or a PEFT adapter), and the two processor pipelines with their ``.safetensors`` states.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robotrials.errors import ConfigError
from robotrials.policies import files

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
PREPROCESSOR = "policy_preprocessor.json"
POSTPROCESSOR = "policy_postprocessor.json"

_BESIDE = ("train_config.json", "README.md")
"""Files that lie in a checkpoint and cannot change what it does."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint folder that was looked at: its parsed ``config.json``, and whether it is a PEFT adapter."""

    folder: Path
    config: dict[str, Any]
    is_adapter: bool

    @property
    def kind(self) -> str:
        """LeRobot's policy type: ``act``, ``diffusion``, ..."""
        return str(self.config["type"])


def is_hub_id(path: str) -> bool:
    """Whether ``path`` means ``owner/name`` on the Hugging Face Hub: a folder that exists is meant first."""
    owner, _, name = path.partition("/")
    return bool(owner and name) and "/" not in name and not path.startswith((".", "~")) and not Path(path).exists()


def inspect(path: str) -> Checkpoint:
    """Look at the folder ``path``; nothing is loaded.

    Raises:
        ConfigError: no such folder, no checkpoint (the message says what is missing and what is there), weights in
            another format than safetensors, or a checkpoint from before LeRobot kept its processors beside it.
    """
    folder = files.locate(path)
    flag = f"--policy.path={path}"
    if not folder.exists():
        raise ConfigError(f"{flag}: no such folder, and not the owner/name of a Hub repository")
    if not folder.is_dir():
        raise ConfigError(f"{flag}: a LeRobot checkpoint is a folder, this is a file")
    config = _read_config(folder, flag)
    is_adapter = bool(config.get("use_peft")) or (folder / ADAPTER_CONFIG).is_file()
    _require_weights(folder, is_adapter, flag)
    _require_processors(folder, config, flag)
    return Checkpoint(folder, config, is_adapter)


def revision(path: str) -> str:
    """What tells this checkpoint from another, for the identity of a run.

    ``sha256:<16 digits>`` over the folder's configurations and safetensors (names and contents), for an adapter
    followed by its base's; for a Hub repository ``<owner/name>@<commit>``, where the commit is the one in the local
    cache (``@main`` while there is none).
    """
    if is_hub_id(path):
        return f"{path}@{_cached_commit(path) or 'main'}"
    folder = files.locate(path)
    own = f"sha256:{digest(folder)}"
    base = _base_of_adapter(folder)
    return f"{own} on {revision(base)}" if base else own


def _base_of_adapter(folder: Path) -> str | None:
    """The policy that a PEFT adapter in ``folder`` was trained on: a path or a Hub id."""
    file = folder / ADAPTER_CONFIG
    if not file.is_file():
        return None
    base = json.loads(file.read_text(encoding="utf-8")).get("base_model_name_or_path")
    return str(base) if base and (is_hub_id(str(base)) or files.locate(str(base)).is_dir()) else None


def digest(folder: Path) -> str:
    """First 16 hexadecimal digits of a SHA-256 over every .json and .safetensors file directly in ``folder``.

    Left out are the training configuration and the model card, which change nothing, and ``training_state/``.
    """
    total = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.suffix not in (".json", ".safetensors") or file.name in _BESIDE:
            continue
        total.update(f"{file.name}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                total.update(block)
    return total.hexdigest()[:16]


def _read_config(folder: Path, flag: str) -> dict[str, Any]:
    file = folder / CONFIG
    if not file.is_file():
        raise ConfigError(f"{flag} is no LeRobot checkpoint: it has no {CONFIG}. {_what_is_there(folder)}")
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{flag}: {CONFIG} is not JSON: {error}") from None
    if not isinstance(config, dict) or not isinstance(config.get("type"), str):
        raise ConfigError(
            f"{flag} is no LeRobot checkpoint: its {CONFIG} has no 'type' such as act or diffusion. "
            f"{_what_is_there(folder)}"
        )
    return config


def _require_weights(folder: Path, is_adapter: bool, flag: str) -> None:
    wanted = ADAPTER_WEIGHTS if is_adapter else WEIGHTS
    if (folder / wanted).is_file():
        return
    pickled = sorted(p.name for p in folder.iterdir() if p.suffix in (".bin", ".pt", ".pth", ".ckpt"))
    if pickled:
        raise ConfigError(
            f"{flag} has no {wanted}, only {', '.join(pickled)}: such files can run code when read, "
            "so robotrials loads safetensors alone; save the policy again with save_pretrained"
        )
    raise ConfigError(f"{flag} is no LeRobot checkpoint: it has no {wanted}. {_what_is_there(folder)}")


def _require_processors(folder: Path, config: dict[str, Any], flag: str) -> None:
    missing = [name for name in (PREPROCESSOR, POSTPROCESSOR) if not (folder / name).is_file()]
    if missing and config["type"] != "groot":  # LeRobot builds GR00T's processors from its base model
        raise ConfigError(
            f"{flag} has no {' and no '.join(missing)}, where LeRobot keeps normalisation. "
            "An older checkpoint is brought up to date by: "
            f"python -m lerobot.processor.migrate_policy_normalization --pretrained-path {folder}"
        )


def _what_is_there(folder: Path) -> str:
    for inner in ("pretrained_model", "checkpoints/last/pretrained_model"):
        if (folder / inner / CONFIG).is_file():
            return f"Meant is perhaps --policy.path={folder / inner}"
    names = sorted(p.name for p in folder.iterdir())
    return f"It holds {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}" if names else "It is empty"


def _cached_commit(repo: str) -> str | None:
    """The commit of ``main`` in the Hub's local cache (layout of huggingface_hub 1.x)."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "huggingface"
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()
    ref = cache / f"models--{repo.replace('/', '--')}" / "refs" / "main"
    return ref.read_text(encoding="utf-8").strip() if ref.is_file() else None
