"""Whether a LeRobot checkpoint holds the statistics by which it says it is normalised. Imports no torch.

LeRobot's normaliser (0.6.1, ``processor/normalize_processor.py``) passes a value on as it is when its statistics are
missing, without a word: such a policy acts, and acts badly. Statistics go missing when they were saved under another
name (a pretrained ``so100.buffer.action.mean``), when LeRobot's migration wrote a camera ``wrist_cam`` as
``wrist.cam``, or when the processors were made without a data set.

Checkpoints from before LeRobot 0.4 have no processors: their statistics are buffers beside the weights.
"""

from __future__ import annotations

import difflib
import json
import re
import struct
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robotrials.errors import ConfigError

STATISTICS: Mapping[str, tuple[str, ...]] = {
    "IDENTITY": (),
    "MEAN_STD": ("mean", "std"),
    "MIN_MAX": ("min", "max"),
    "QUANTILES": ("q01", "q99"),
    "QUANTILE10": ("q10", "q90"),
}
"""What LeRobot's normaliser reads in each mode."""

ACTION = "action"
OLD_INPUTS, OLD_ACTION = "normalize_inputs.", "unnormalize_outputs."
"""How the names of an old checkpoint's statistics begin among its weights."""

_MAX_HEADER = 100 * 2**20
"""Bytes of a safetensors header; the format's own limit."""

_DEFAULT_PROCESSORS = frozenset(
    {"act", "diffusion", "gaussian_actor", "multi_task_dit", "pi0", "pi05", "pi0_fast", "smolvla", "tdmpc", "vqbet"}
)
"""Policies whose processors always have a normaliser; others may normalise in steps of their own."""


@dataclass(frozen=True)
class _Normaliser:
    """The normalising steps of one processor, together: their settings, and the names of the statistics they hold."""

    file: str
    modes: Mapping[str, str]
    features: Collection[str]
    only: Collection[str] | None
    statistics: Collection[str]


def require(folder: Path, config: Mapping[str, Any], preprocessor: Path, postprocessor: Path, flag: str) -> None:
    """Refuse a checkpoint with processors that would leave an input or the action as it is where it says otherwise.

    Args:
        config: its ``config.json``.
        preprocessor, postprocessor: their configurations, which are JSON with a list of steps.

    Raises:
        ConfigError: a statistic is missing (the message names it, and the one that looks like it), a mode is unknown,
            or a file of statistics is missing or damaged.
    """
    for file, wanted in ((preprocessor, _inputs(config)), (postprocessor, _action(config))):
        found = _normaliser(folder, file, flag)
        modes = _config_modes(config)
        if found is None:
            if str(config.get("type")) in _DEFAULT_PROCESSORS:
                _refuse_unnormalised(file.name, {k: modes.get(t, "IDENTITY") for k, t in wanted.items()}, flag)
            continue
        for key, kind in wanted.items():
            if found.only is not None and key != ACTION and key not in found.only:
                continue
            mode = found.modes.get(kind, modes.get(kind, "IDENTITY"))
            names = [f"{key}.{part}" for part in _parts(mode, f"{flag}: {found.file}")]
            lost = [name for name in names if name not in found.statistics]
            if lost:
                raise _missing(flag, found.file, key, mode, lost[0], found.statistics)
            if names and key != ACTION and key not in found.features:
                raise ConfigError(
                    f"{flag}: {file.name} does not list {key} among the features of its normaliser, so LeRobot would "
                    f"not normalise it; {_AGAIN}"
                )


def require_old(weights: Path, config: Mapping[str, Any], flag: str) -> None:
    """The same for a checkpoint whose statistics lie among its weights.

    Raises:
        ConfigError: as ``require``.
    """
    stored, modes = tensor_names(weights, flag), _config_modes(config)
    for prefix, wanted in ((OLD_INPUTS, _inputs(config)), (OLD_ACTION, _action(config))):
        for key, kind in wanted.items():
            mode = modes.get(kind, "IDENTITY")
            for part in _parts(mode, flag):
                name = old_name(prefix, key, part)
                if name not in stored:
                    beside = [other for other in stored if other.startswith((OLD_INPUTS, OLD_ACTION))]
                    raise _missing(flag, weights.name, key, mode, name, beside)


def is_old(weights: Path, flag: str) -> bool:
    """Whether statistics lie among the weights, as LeRobot kept them before 0.4."""
    return any(name.startswith((OLD_INPUTS, OLD_ACTION)) for name in tensor_names(weights, flag))


def old_name(prefix: str, key: str, part: str) -> str:
    """Where an old checkpoint keeps statistic ``part`` of feature ``key``: names of buffers had no dots."""
    return f"{prefix}buffer_{key.replace('.', '_')}.{part}"


def tensor_names(file: Path, flag: str) -> list[str]:
    """Names of the tensors in a .safetensors file; their values are not read.

    Raises:
        ConfigError: it is no such file, or half of one.
    """
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > _MAX_HEADER:
                raise ValueError(f"a header of {length} bytes")
            header = json.loads(stream.read(length))
    except (OSError, struct.error, ValueError) as error:
        raise ConfigError(f"{flag}: {file.name} is damaged, or no safetensors file: {error}") from None
    if not isinstance(header, dict):
        raise ConfigError(f"{flag}: {file.name} is damaged: its header is no map of tensors")
    return [name for name in header if name != "__metadata__"]


_AGAIN = (
    "save the processors again, made with the statistics of the data set that the policy was trained on "
    "(make_pre_post_processors(config, dataset_stats=...), then save_pretrained)"
)


def _normaliser(folder: Path, file: Path, flag: str) -> _Normaliser | None:
    """The normalising steps of the processor in ``file``, which are those with a map of modes; None where it has
    none."""
    if not file.is_file():
        return None
    modes: dict[str, str] = {}
    features: set[str] = set()
    only: Collection[str] | None = None
    statistics: set[str] = set()
    named = file.name
    steps = [step for step in json.loads(file.read_text(encoding="utf-8")).get("steps", []) if _normalises(step)]
    for step in steps:
        settings = step["config"]
        modes |= {str(kind): str(mode) for kind, mode in settings["norm_map"].items()}
        features |= set(settings.get("features") or {})
        only = settings.get("normalize_observation_keys", only)
        kept = settings.get("stats")
        if isinstance(kept, Mapping) and kept:
            statistics |= {f"{key}.{part}" for key, parts in kept.items() for part in parts}
        elif isinstance(step.get("state_file"), str):
            named = step["state_file"]
            state = folder / named
            if Path(named).name != named or not state.is_file():
                raise ConfigError(f"{flag}: {file.name} keeps statistics in {named}, which is not there")
            statistics |= set(tensor_names(state, flag))
    return _Normaliser(named, modes, features, only, statistics) if steps else None


def _normalises(step: Any) -> bool:
    settings = step.get("config") if isinstance(step, Mapping) else None
    return isinstance(settings, Mapping) and isinstance(settings.get("norm_map"), Mapping)


def _inputs(config: Mapping[str, Any]) -> dict[str, str]:
    """Declared inputs by name, with their type; cameras that the policy makes up itself are left out."""
    declared = config.get("input_features")
    if not isinstance(declared, Mapping):
        return {}
    return {key: str(_type_of(value)) for key, value in declared.items() if ".empty_camera_" not in key}


def _action(config: Mapping[str, Any]) -> dict[str, str]:
    declared = config.get("output_features")
    return {ACTION: "ACTION"} if isinstance(declared, Mapping) and ACTION in declared else {}


def _type_of(feature: Any) -> Any:
    return feature.get("type") if isinstance(feature, Mapping) else None


def _config_modes(config: Mapping[str, Any]) -> dict[str, str]:
    modes = config.get("normalization_mapping")
    return {str(kind): str(mode) for kind, mode in modes.items()} if isinstance(modes, Mapping) else {}


def _parts(mode: str, where: str) -> tuple[str, ...]:
    if mode not in STATISTICS:
        raise ConfigError(f"{where}: normalization mode {mode} is unknown; known: {', '.join(STATISTICS)}")
    return STATISTICS[mode]


def _refuse_unnormalised(file: str, modes: Mapping[str, str], flag: str) -> None:
    for key, mode in modes.items():
        if mode != "IDENTITY":
            raise ConfigError(
                f"{flag}: {file} has no step that normalises, but config.json says {mode} for {key}; {_AGAIN}"
            )


def _missing(flag: str, file: str, key: str, mode: str, name: str, stored: Iterable[str]) -> ConfigError:
    alike = _alike(name, key, stored)
    has = f"It has {alike}, which LeRobot does not read as that. " if alike else ""
    return ConfigError(
        f"{flag}: {file} lacks {name}, so {key} would not be normalised ({mode}), which LeRobot does not report. "
        f"{has}What to do: {_AGAIN}"
    )


def _alike(name: str, key: str, stored: Iterable[str]) -> str:
    """The stored statistic that looks like ``name``: under a prefix, or with other signs between its words."""
    part = name.rpartition(".")[2]
    of_kind = sorted(other for other in stored if other.rpartition(".")[2] == part)
    ends = [other for other in of_kind if _letters(other).endswith(_letters(f"{key}.{part}"))]
    if ends:
        return ends[0] if len(ends) == 1 else f"{ends[0]} and {len(ends) - 1} more like it"
    return next(iter(difflib.get_close_matches(name, of_kind, n=1, cutoff=0.8)), "")


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
