"""A LeRobot checkpoint as a folder: is it one, what does it hold, what tells it from another. Imports no torch.

The layout is LeRobot's (0.6, ``policies/pretrained.py`` and ``processor/pipeline.py``): ``config.json`` with the policy
``type``, ``model.safetensors`` (or a PEFT adapter), and the two processor pipelines with their ``.safetensors`` states.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robotrials.errors import ConfigError
from robotrials.policies import files
from robotrials.policies.lerobot import hub, normalisation

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
PREPROCESSOR = "policy_preprocessor.json"
POSTPROCESSOR = "policy_postprocessor.json"

OLD_TYPES = ("act", "diffusion", "tdmpc", "vqbet")
"""Policies whose checkpoints from before LeRobot 0.4 are read: their weights have had the same names ever since."""

_BESIDE = ("train_config.json", "README.md")
"""Files that lie in a checkpoint and cannot change what it does."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint folder that was looked at: its parsed ``config.json``, whether it is a PEFT adapter, and whether it
    is from before LeRobot 0.4, with its statistics among the weights and no processors."""

    folder: Path
    config: dict[str, Any]
    is_adapter: bool
    is_old: bool = False

    @property
    def kind(self) -> str:
        """LeRobot's policy type: ``act``, ``diffusion``, ..."""
        return str(self.config["type"])


def inspect(path: str) -> Checkpoint:
    """Look at the folder ``path``; nothing is loaded.

    Raises:
        ConfigError: no such folder, no checkpoint (the message says what is missing and what is there), weights in
            another format than safetensors, or statistics that are missing where it says that it is normalised.
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
    is_old = not is_adapter and _is_old(folder, config, flag)
    if is_old:
        normalisation.require_old(folder / WEIGHTS, config, flag)
    else:
        _require_processors(folder, config, flag)
        normalisation.require(folder, config, folder / PREPROCESSOR, folder / POSTPROCESSOR, flag)
    return Checkpoint(folder, config, is_adapter, is_old)


def revision(path: str, commit: str | None = None, base_commit: str | None = None) -> str:
    """What tells this checkpoint from another, for the identity of a run.

    ``sha256:<16 digits>`` over the folder's configurations and safetensors (names and contents), for an adapter
    followed by its base's; for a Hub repository ``<owner/name>@<commit>``. The commits are those that ``hub.commit``
    settled, of the repository and of an adapter's base.

    Raises:
        ConfigError: a commit is not given and cannot be found out, or an adapter's configuration is damaged.
    """
    if files.is_hub_id(path):
        return f"{path}@{commit or hub.commit(path)}"
    folder = files.locate(path)
    own = f"sha256:{digest(folder)}"
    base, wanted = base_of_adapter(folder)
    if base is None:
        return own
    return f"{own} on {revision(base, base_commit or (hub.commit(base, wanted) if files.is_hub_id(base) else None))}"


def base_of_adapter(folder: Path) -> tuple[str | None, str | None]:
    """The policy that a PEFT adapter in ``folder`` was trained on, a path or a Hub id, and which revision of it; None
    where it is no adapter, or its base is not to be found.

    Raises:
        ConfigError: its configuration is damaged.
    """
    file = folder / ADAPTER_CONFIG
    if not file.is_file():
        return None, None
    config = read_json(file, f"--policy.path={folder}")
    base, wanted = config.get("base_model_name_or_path"), config.get("revision")
    for field, value in (("base_model_name_or_path", base), ("revision", wanted)):
        if not isinstance(value, (str, type(None))):
            raise ConfigError(f"{file}: {field} must be text or null, it is {value!r}")
    found = base and (files.is_hub_id(base) or files.locate(base).is_dir())
    return (base, wanted or None) if found else (None, None)


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
    config = read_json(file, flag)
    if not isinstance(config.get("type"), str):
        raise ConfigError(
            f"{flag} is no LeRobot checkpoint: its {CONFIG} has no 'type' such as act or diffusion. "
            f"{_what_is_there(folder)}"
        )
    return config


def read_json(file: Path, flag: str) -> dict[str, Any]:
    """The JSON object in ``file``, which belongs to the checkpoint that ``flag`` names.

    Raises:
        ConfigError: it is not JSON, half of it perhaps, or JSON of something else.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{flag}: {file.name} is not JSON, perhaps only half written: {error}; save or download it again"
        ) from None
    if not isinstance(content, dict):
        raise ConfigError(f"{flag}: {file.name} must hold a JSON object {{...}}, it holds {_kind_of(content)}")
    return content


def _kind_of(content: Any) -> str:
    return {list: "a list", str: "text", type(None): "null", bool: "true or false"}.get(type(content), "a number")


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


def _is_old(folder: Path, config: dict[str, Any], flag: str) -> bool:
    """
    Raises:
        ConfigError: it is, and of a type that was stored otherwise then, so that reading it here would be a guess.
    """
    if any((folder / name).is_file() for name in (PREPROCESSOR, POSTPROCESSOR)):
        return False
    if not normalisation.is_old(folder / WEIGHTS, flag):
        return False
    if config["type"] not in OLD_TYPES:
        raise ConfigError(
            f"{flag} is a {config['type']} checkpoint from before LeRobot 0.4, which kept normalisation among the "
            f"weights. Such checkpoints are read for {', '.join(OLD_TYPES)}; evaluate this one with the LeRobot that "
            "wrote it, behind a policy server, or train it again with a newer one"
        )
    return True


def _require_processors(folder: Path, config: dict[str, Any], flag: str) -> None:
    missing = [name for name in (PREPROCESSOR, POSTPROCESSOR) if not (folder / name).is_file()]
    if missing and config["type"] != "groot":  # LeRobot builds GR00T's processors from its base model
        raise ConfigError(
            f"{flag} has no {' and no '.join(missing)}, where LeRobot keeps normalisation, and its weights hold none "
            "either: copy them from where the policy was trained, or make them anew with "
            "make_pre_post_processors(config, dataset_stats=...), and save both with save_pretrained"
        )
    for name in (PREPROCESSOR, POSTPROCESSOR):
        if (folder / name).is_file():
            steps = read_json(folder / name, flag).get("steps", [])
            if not isinstance(steps, list) or not all(_is_step(step) for step in steps):
                raise ConfigError(
                    f"{flag}: steps of {name} must be a list of objects with a registry_name or a class; "
                    "save the policy's processors again with save_pretrained"
                )


def _is_step(step: Any) -> bool:
    return isinstance(step, dict) and isinstance(step.get("registry_name") or step.get("class"), str)


def _what_is_there(folder: Path) -> str:
    for inner in ("pretrained_model", "checkpoints/last/pretrained_model"):
        if (folder / inner / CONFIG).is_file():
            return f"Meant is perhaps --policy.path={folder / inner}"
    names = sorted(p.name for p in folder.iterdir())
    return f"It holds {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}" if names else "It is empty"
