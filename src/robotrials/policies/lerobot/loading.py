"""From ``--policy.path`` and its overrides to a policy in memory, through LeRobot's own loaders.

Whatever goes wrong is one ``ConfigError`` that names the flag, what was found and what would be right.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import importlib.metadata
import itertools
import json
import logging
import sys
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from robotrials.errors import ConfigError, NotInstalledError
from robotrials.plan.options import coerce, nearest
from robotrials.policies import files
from robotrials.policies.lerobot import checkpoint, hub, lean_imports, normalisation, xvla
from robotrials.policies.lerobot.checkpoint import Checkpoint
from robotrials.policies.lerobot.names import (
    FeatureType,
    NormalizationMode,
    PolicyFeature,
    PolicyProcessorPipeline,
    PreTrainedConfig,
    PreTrainedPolicy,
    ProcessorStepRegistry,
    get_policy_class,
    make_pre_post_processors,
    register_third_party_plugins,
)
from robotrials.policies.lerobot.processing import step_names

log = logging.getLogger(__name__)

_NOT_OPTIONS = frozenset({"input_features", "output_features", "pretrained_path", "push_to_hub", "repo_id", "private"})
"""Fields of a configuration that make no sense as ``--policy.*`` of an evaluation."""


@dataclass(frozen=True)
class Loaded:
    """A policy on its device in evaluation mode, with its processors, and what tells it from another."""

    policy: PreTrainedPolicy
    preprocessor: PolicyProcessorPipeline
    postprocessor: PolicyProcessorPipeline
    revision: str

    @property
    def config(self) -> PreTrainedConfig:
        return self.policy.config

    def config_dict(self) -> dict[str, Any]:
        """The effective configuration as ``config.json`` would hold it, as far as ``features.Needs`` reads it."""
        config = {f.name: getattr(self.config, f.name, None) for f in dataclasses.fields(self.config)}
        for side in ("input_features", "output_features"):
            features: dict[str, PolicyFeature] = config[side] or {}
            config[side] = {k: {"type": FeatureType(f.type).value, "shape": list(f.shape)} for k, f in features.items()}
        return {**config, "type": self.config.type}


def load(
    path: str,
    overrides: Mapping[str, Any],
    action_dim: int | None = None,
    commit: str | None = None,
    base_commit: str | None = None,
) -> Loaded:
    """Load the checkpoint at ``path`` (a folder, or ``owner/name`` on the Hub).

    Args:
        overrides: ``--policy.<field>`` by field of the policy's configuration, as strings or values.
        action_dim: the benchmark's action size, for policies that pad their actions (they have a ``max_action_dim``).
        commit: of the Hub repository, where it is settled already; else what ``pretrained_revision`` is now.
        base_commit: of the base of a PEFT adapter in a folder, likewise.

    Raises:
        ConfigError: no such folder, no checkpoint, an unknown or unreadable override, a device that is not there,
            weights that do not fill the model; NotInstalledError: a package that this policy needs is missing.
    """
    register_third_party_plugins()
    if files.is_hub_id(path):
        commit = commit or hub.commit(path, overrides.get("pretrained_revision"))
        found = checkpoint.inspect(str(_downloaded(path, commit)))
        hub.remember(path, overrides.get("pretrained_revision"), commit)
    else:
        found = checkpoint.inspect(str(Path(path).expanduser()))
        base, wanted = checkpoint.base_of_adapter(found.folder)
        if base is not None and files.is_hub_id(base):
            base_commit = base_commit or hub.commit(base, wanted)
    config = _configuration(path, found, overrides)
    if action_dim is not None and hasattr(config, "max_action_dim"):
        config.output_features = {"action": PolicyFeature(FeatureType.ACTION, (action_dim,))}
    config.pretrained_path = found.folder
    with _loader_errors(path, found.kind), contextlib.redirect_stdout(sys.stderr):
        policy = _adapted(found, config, base_commit) if found.is_adapter else _plain(found.folder, config)
        policy.to(config.device)
        policy.eval()
        preprocessor, postprocessor = _processors(found, config)
    return Loaded(policy, preprocessor, postprocessor, checkpoint.revision(path, commit, base_commit))


def versions() -> dict[str, str]:
    """Versions of the packages whose numbers reach the actions."""
    names = ("lerobot", "torch", "torchvision", "numpy", "diffusers", "transformers", "peft")
    found = {}
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _downloaded(path: str, commit: str) -> Path:
    """Commit ``commit`` of Hub repository ``path``, fetched into the cache, its pickled files left out."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(
            snapshot_download(
                path,
                revision=commit,
                allow_patterns=["*.json", "*.safetensors", "*.model", "*.txt"],
            )
        )
    except LocalEntryNotFoundError as error:  # raised when the Hub is not asked, or does not answer
        raise ConfigError(
            f"--policy.path={path}: commit {commit} is not in this machine's cache, and cannot be downloaded "
            f"(HF_HUB_OFFLINE is set, or the Hub cannot be reached): {error}"
        ) from error
    except (HfHubHTTPError, HFValidationError) as error:
        refused = hub.refusal(path, error)
        raise refused or ConfigError(f"--policy.path={path} cannot be downloaded from the Hub: {error}") from error


def _configuration(path: str, found: Checkpoint, overrides: Mapping[str, Any]) -> PreTrainedConfig:
    _register(found.kind)
    if found.kind not in PreTrainedConfig.get_known_choices():
        known = sorted(PreTrainedConfig.get_known_choices())
        raise ConfigError(
            f"--policy.path={path} is a policy of type {found.kind}{nearest(found.kind, known)}, which this LeRobot "
            f"({importlib.metadata.version('lerobot')}) does not know; known: {', '.join(known)}. "
            "If a plugin defines it, install that package (lerobot_policy_...) beside LeRobot"
        )
    cls = PreTrainedConfig.get_choice_class(found.kind)
    arguments = [f"--{name}={_argument(cls, name, value)}" for name, value in overrides.items()]
    try:
        config = PreTrainedConfig.from_pretrained(found.folder, cli_overrides=arguments)
    except SystemExit as error:  # draccus hands arguments it cannot read to argparse, which leaves the program
        raise ConfigError(f"LeRobot refuses {' '.join(arguments)} for policy {found.kind}") from error
    except Exception as error:  # a configuration's own checks raise what they like; all mean the same
        given = f" with {' '.join(arguments)}" if arguments else ""
        raise ConfigError(
            f"--policy.path={path}: {checkpoint.CONFIG}{given} is refused by LeRobot: {_root(error)}"
        ) from error
    _require_device(config, overrides.get("device"))
    return config


def _register(kind: str) -> None:
    """Import the module that makes policy type ``kind`` known; all of them where it is not where its name says."""
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module(f"lerobot.policies.{kind}.configuration_{kind}")
    if kind not in PreTrainedConfig.get_known_choices():
        lean_imports.import_all("lerobot.policies")


def _register_steps(kind: str, folder: Path) -> None:
    """Import what defines the saved processors' steps: the policy's own module, all of LeRobot's if one is missing."""
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module(f"lerobot.policies.{kind}.processor_{kind}")
    processors = [folder / name for name in (checkpoint.PREPROCESSOR, checkpoint.POSTPROCESSOR)]
    saved = [json.loads(file.read_text(encoding="utf-8")) for file in processors if file.is_file()]
    named = {step["registry_name"] for config in saved for step in config.get("steps", []) if "registry_name" in step}
    if not named <= set(ProcessorStepRegistry.list()):
        lean_imports.import_all("lerobot.processor")


def _root(error: BaseException) -> BaseException:
    """The first cause: LeRobot's parser wraps a configuration's own words in words that say nothing."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return error


def _argument(cls: type, name: str, value: Any) -> str:
    """``value`` for field ``name`` (dots lead into nested ones), checked, and written as LeRobot's parser reads it."""
    owner: Any = cls
    *outer, last = name.split(".")
    for part in [*outer, last]:
        fields = {f.name: f for f in dataclasses.fields(owner)} if dataclasses.is_dataclass(owner) else {}
        if part not in fields or part in _NOT_OPTIONS:
            known = sorted(set(fields) - _NOT_OPTIONS)
            raise ConfigError(
                f"policy {cls.__name__.removesuffix('Config').lower()} has no option --policy.{name}"
                f"{nearest(part, known)}; its options: {', '.join(known)}"
            )
        hint = typing.get_type_hints(owner)[part]
        owner = next((a for a in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(a)), None)
    if owner is None and _is_scalar(hint):
        value = coerce(value, hint, f"--policy.{name}")
    return value if isinstance(value, str) else json.dumps(value)


def _is_scalar(hint: Any) -> bool:
    return all(a in (int, float, bool, str, type(None)) for a in (typing.get_args(hint) or (hint,)))


def _require_device(config: PreTrainedConfig, asked: Any) -> None:
    """LeRobot quietly takes another device when the one asked for is not there; a person who names one means it."""
    if asked is None or torch.device(asked).type == torch.device(str(config.device)).type:
        return
    raise ConfigError(
        f"--policy.device={asked} is not available here (torch {torch.__version__} offers {config.device}); "
        f"leave the option out, or say --policy.device={config.device}"
    )


def _plain(folder: Path, config: PreTrainedConfig) -> PreTrainedPolicy:
    cls = get_policy_class(config.type)
    policy = cls.from_pretrained(str(folder), config=config)
    if cls._load_as_safetensor.__func__ is PreTrainedPolicy._load_as_safetensor.__func__ and (
        cls.from_pretrained.__func__ is PreTrainedPolicy.from_pretrained.__func__
    ):
        _require_all_weights(policy, folder)
    return policy


def _adapted(found: Checkpoint, config: PreTrainedConfig, base_commit: str | None) -> PreTrainedPolicy:
    """The base policy with the adapter's layers in place, as one policy object."""
    try:
        from peft import PeftConfig, PeftModel
    except ImportError as error:
        raise NotInstalledError(
            f"{found.folder} is a PEFT adapter, and peft is not installed: pip install 'lerobot[peft]'"
        ) from error
    adapter = PeftConfig.from_pretrained(str(found.folder))
    base = adapter.base_model_name_or_path
    if not base:
        raise ConfigError(f"{found.folder / checkpoint.ADAPTER_CONFIG} names no base_model_name_or_path to adapt")
    if not files.is_hub_id(base):
        checkpoint.inspect(base)
    policy = get_policy_class(config.type).from_pretrained(
        base, config=config, revision=base_commit or adapter.revision
    )
    if base_commit is not None:
        hub.remember(base, adapter.revision, base_commit)
    wrapped = PeftModel.from_pretrained(policy, str(found.folder), config=adapter)
    if adapter.is_prompt_learning:
        raise ConfigError(f"{found.folder}: prompt-learning adapters ({adapter.peft_type}) fit no LeRobot policy")
    return wrapped.get_base_model()  # the adapter's layers were put into it: same numbers as through the wrapper


def _require_all_weights(policy: PreTrainedPolicy, folder: Path) -> None:
    """LeRobot loads leniently and only logs what is missing: such a policy would act on random weights."""
    with safe_open(folder / checkpoint.WEIGHTS, framework="pt") as file:
        stored = set(file.keys())
    state = policy.state_dict()
    filled = {tensor.data_ptr() for key, tensor in state.items() if key in stored}  # tied weights are stored once
    missing = [key for key, tensor in state.items() if key not in stored and tensor.data_ptr() not in filled]
    if missing:
        raise ConfigError(
            f"{folder / checkpoint.WEIGHTS} lacks {len(missing)} of the {len(state)} tensors of policy "
            f"{policy.config.type}: {', '.join(missing[:3])}{', ...' if len(missing) > 3 else ''}; "
            "it was saved from another architecture, or by another version of LeRobot"
        )


def _processors(found: Checkpoint, config: PreTrainedConfig) -> tuple[PolicyProcessorPipeline, PolicyProcessorPipeline]:
    preprocessor, postprocessor = _made_anew(found, config) if found.is_old else _saved(found, config)
    _require_finite(preprocessor, found.folder)
    _require_finite(postprocessor, found.folder)
    if config.type == xvla.KIND:
        xvla.add_benchmark_steps(preprocessor, postprocessor)
    return preprocessor, postprocessor


def _saved(found: Checkpoint, config: PreTrainedConfig) -> tuple[PolicyProcessorPipeline, PolicyProcessorPipeline]:
    saved = found.folder / checkpoint.PREPROCESSOR
    steps = step_names(json.loads(saved.read_text(encoding="utf-8"))) if saved.is_file() else set()
    _register_steps(config.type, found.folder)
    # Renaming happens before the observation arrives here, so a renaming from training must not act a second time.
    wanted = {
        "device_processor": {"device": str(config.device)},
        "rename_observations_processor": {"rename_map": {}},
    }
    overrides = {name: value for name, value in wanted.items() if name in steps or not steps}
    pair: tuple[PolicyProcessorPipeline, PolicyProcessorPipeline] = make_pre_post_processors(
        policy_cfg=config, pretrained_path=str(found.folder), preprocessor_overrides=overrides
    )
    return pair


def _made_anew(found: Checkpoint, config: PreTrainedConfig) -> tuple[PolicyProcessorPipeline, PolicyProcessorPipeline]:
    """The processors of an old checkpoint, from the statistics among its weights: what LeRobot's own migration makes
    (``processor/migrate_policy_normalization.py``), which however takes a ``_`` in a feature's name for a dot."""
    wanted = [(normalisation.OLD_INPUTS, key) for key in config.input_features]
    wanted.append((normalisation.OLD_ACTION, normalisation.ACTION))
    statistics: dict[str, dict[str, torch.Tensor]] = {}
    with safe_open(found.folder / checkpoint.WEIGHTS, framework="pt") as file:
        stored = set(file.keys())
        for prefix, key in wanted:
            for part in itertools.chain(*normalisation.STATISTICS.values()):
                name = normalisation.old_name(prefix, key, part)
                if name in stored:
                    statistics.setdefault(key, {})[part] = file.get_tensor(name)
    pair: tuple[PolicyProcessorPipeline, PolicyProcessorPipeline] = make_pre_post_processors(
        policy_cfg=config, dataset_stats=statistics
    )
    return pair


def _require_finite(pipeline: PolicyProcessorPipeline, folder: Path) -> None:
    """Old checkpoints began with statistics of infinity, to be filled in from the data; some were saved so."""
    for step in pipeline.steps:
        modes, statistics = getattr(step, "norm_map", {}), getattr(step, "_tensor_stats", {})
        for key, feature in getattr(step, "features", {}).items() if statistics else ():
            mode = modes.get(feature.type, NormalizationMode.IDENTITY)
            for part in normalisation.STATISTICS[mode.value]:
                tensor = statistics.get(key, {}).get(part)
                if tensor is not None and not torch.isfinite(tensor).all():
                    raise ConfigError(
                        f"--policy.path={folder}: the statistic {key}.{part} by which it is normalised is not finite: "
                        f"{tensor.flatten()[:4].tolist()}; it was saved before it was filled in from the data set"
                    )


@contextlib.contextmanager
def _loader_errors(path: str, kind: str) -> Iterator[None]:
    """LeRobot's loaders' ways to say no, as one ``ConfigError``."""
    try:
        yield
    except ImportError as error:
        raise NotInstalledError(
            f"policy {kind} needs a package that this Python ({sys.executable}) lacks: {error}"
        ) from error
    except (ValueError, LookupError, TypeError, AttributeError, RuntimeError, OSError, SafetensorError) as error:
        raise ConfigError(
            f"--policy.path={path}: LeRobot could not load this {kind} policy: {type(error).__name__}: {error}"
        ) from error
