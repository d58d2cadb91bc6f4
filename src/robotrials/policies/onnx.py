"""``--policy.type=onnx``: a graph run by onnxruntime on the CPU, inside the worker.

The graph's inputs are named by what they read, batch first:

- ``observation.state``, ``observation.environment_state``, ...: float32 (B, D);
- ``observation.image``, ``observation.images.<camera>``: uint8 (B, H, W, C) as cameras give them, or float32
  (B, C, H, W) in 0..1; the input's element type says which;
- ``task``: string (B,), the instruction.

With ``n_obs_steps`` > 1 every input but ``task`` has a time axis after the batch, oldest first. The first output is
the action: float (B, A), or a chunk (B, T, A). Normalisation belongs in the graph.

Settings travel in the model's metadata: the entry ``robotrials`` holds JSON such as ``{"n_action_steps": 8,
"n_obs_steps": 2}``; ``--policy.n_action_steps`` overrides it. Without either, all T actions of a chunk are played.

Rows are run one by one (batch 1, one thread), so that what an episode is told never depends on what ran beside it. The
last bits may differ between processor families, whose kernels onnxruntime chooses by their instruction sets.
"""

from __future__ import annotations

import glob
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robotrials.benchmarks.base import Observation
from robotrials.errors import ConfigError, ContractError, NotInstalledError
from robotrials.install import install_command
from robotrials.plan.config import PolicyChoice
from robotrials.plan.options import build
from robotrials.plan.task import Feature
from robotrials.policies import files
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.policies.checks import at_least_one

if TYPE_CHECKING:
    import onnxruntime

METADATA_KEY = "robotrials"

_OUTPUTS = tuple(f"tensor({name})" for name in ("float", "double", "float16", "int8", "int16", "int32", "int64"))
"""Element types of actions. Of bfloat16 onnxruntime makes no NumPy array."""


@dataclass(frozen=True)
class OnnxSettings:
    """What the metadata of a model may say."""

    n_action_steps: int | None = None
    n_obs_steps: int = 1


class OnnxPolicy(Policy):
    """A stateless ONNX graph as a policy; its session is the plain one."""

    draws_globally = False

    def __init__(self, path: str, n_action_steps: int | None = None) -> None:
        """Load the graph; ``path`` is a file or ``builtin:NAME``.

        Raises:
            NotInstalledError: onnxruntime is missing.
            ConfigError: no such file, no ONNX model, inputs or outputs that follow no rule of this module, or more
                ``n_action_steps`` than the graph gives.
        """
        self._path = path
        self._runtime = _start_runtime(path)
        settings = _settings(self._runtime, path)
        self._inputs = {i.name: _read_input(i, settings.n_obs_steps, path) for i in self._runtime.get_inputs()}
        output = self._runtime.get_outputs()[0]
        if len(output.shape) not in (2, 3):
            raise ConfigError(f"{path}: output {_show(output)} must be (B, A) or (B, T, A)")
        if output.type not in _OUTPUTS:
            known = ", ".join(_OUTPUTS)
            raise ConfigError(f"{path}: output {_show(output)} must be one of {known}; cast it to float in the graph")
        self._output, self._gives_chunks = output.name, len(output.shape) == 3
        steps = settings.n_action_steps if n_action_steps is None else n_action_steps
        self._spec = PolicySpec(
            path,
            {name: made.feature for name, made in self._inputs.items()},
            action_dim=_static(output.shape[-1]),
            n_action_steps=_n_action_steps(steps, output, path),
            n_obs_steps=settings.n_obs_steps,
        )

    def spec(self) -> PolicySpec:
        return self._spec

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        """(B, T, A) in the graph's precision.

        Raises:
            ContractError: the graph refuses the observation, or gives fewer actions than ``n_action_steps``.
        """
        return np.stack([self._row(observation) for observation in observations])

    def _row(self, observation: Observation) -> np.ndarray:
        feed = {name: made.convert(observation[name]) for name, made in self._inputs.items()}
        action = self._run(feed)
        chunk = action[0] if self._gives_chunks else action
        if len(chunk) < self._spec.n_action_steps:
            raise ContractError(
                f"{self._path} gave {len(chunk)} actions, fewer than n_action_steps={self._spec.n_action_steps}"
            )
        return chunk

    def _run(self, feed: dict[str, np.ndarray]) -> np.ndarray:
        from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

        try:
            action: np.ndarray = self._runtime.run([self._output], feed)[0]
        except InvalidArgument as error:
            shapes = ", ".join(f"{name} {value.dtype}{list(value.shape)}" for name, value in feed.items())
            raise ContractError(f"{self._path} does not take {shapes}: {error}") from error
        return action


@dataclass(frozen=True)
class _Input:
    """One input of the graph: what the benchmark must give for it, and how that becomes a batch of one."""

    feature: Feature | None
    convert: Callable[[Any], np.ndarray]


def validate(choice: PolicyChoice) -> None:
    """Refuse a missing file; called by the registry."""
    _file(choice.path or "")


def require_here(choice: PolicyChoice) -> None:
    """Refuse an interpreter without onnxruntime; called by the registry where the policy will run."""
    from importlib.util import find_spec

    if find_spec("onnxruntime") is None:
        raise _not_installed()


def revision(choice: PolicyChoice) -> str:
    """Hash of the model and, where it keeps its weights beside it, of those; called by the registry."""
    file = _file(choice.path or "")
    beside = sorted(file.parent.glob(f"{glob.escape(file.name)}?data"))  # model.onnx.data, model.onnx_data
    return "sha256:" + "+".join(files.digest(part) for part in [file, *beside])


def _file(path: str) -> Path:
    file = files.locate(path)
    if not file.is_file():
        raise ConfigError(f"--policy.path={path}: no such file")
    return file


def _not_installed() -> NotInstalledError:
    return NotInstalledError(f"policy onnx needs onnxruntime, which {sys.executable} lacks: {install_command('onnx')}")


def _start_runtime(path: str) -> onnxruntime.InferenceSession:
    file = _file(path)
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise _not_installed() from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # more would fight the simulators for the cores
    options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions share no base class
        version = onnxruntime.__version__
        raise ConfigError(f"--policy.path={path} is no model that onnxruntime {version} runs: {error}") from error


def _settings(runtime: onnxruntime.InferenceSession, path: str) -> OnnxSettings:
    text = runtime.get_modelmeta().custom_metadata_map.get(METADATA_KEY, "{}")
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}: metadata entry {METADATA_KEY!r} is no JSON: {error}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: metadata entry {METADATA_KEY!r} must be a JSON object, got {text}")
    settings = build(OnnxSettings, values, f"{path}: metadata entry {METADATA_KEY!r}: ")
    at_least_one("n_obs_steps", settings.n_obs_steps)
    return settings


def _read_input(node: onnxruntime.NodeArg, n_obs_steps: int, path: str) -> _Input:
    """What one input of the graph means, by its name, element type and rank.

    Raises:
        ConfigError: it follows none of the rules at the top of this module.
    """
    if node.name == "task":
        if node.type != "tensor(string)" or len(node.shape) != 1:
            raise ConfigError(f"{path}: input {_show(node)} must be tensor(string)[B]")
        return _Input(Feature((), "str"), lambda text: np.array([text], dtype=object))
    if not node.name.startswith("observation."):
        raise ConfigError(
            f"{path}: input {_show(node)} is named like no observation; inputs are called task, observation.state, "
            "observation.environment_state, observation.image or observation.images.<camera>"
        )
    time_axes = 1 if n_obs_steps > 1 else 0
    batch, window, row = node.shape[:1], node.shape[1 : 1 + time_axes], node.shape[1 + time_axes :]
    made = _reader(node.type, row)
    if made is None or not batch:
        rows = "tensor(float)[D], tensor(float)[C, H, W] or tensor(uint8)[H, W, C]"
        axes = f"B, {n_obs_steps}" if time_axes else "B"
        raise ConfigError(f"{path}: input {_show(node)} must be {rows} with {axes} in front")
    if _static(batch[0]) not in (None, 1):
        raise ConfigError(f"{path}: input {_show(node)} has a fixed batch of {batch[0]}; rows are run one by one")
    if window and _static(window[0]) not in (None, n_obs_steps):
        raise ConfigError(f"{path}: input {_show(node)} does not match n_obs_steps={n_obs_steps} of its metadata")
    return made


def _reader(element_type: str, row: Sequence[Any]) -> _Input | None:
    """Feature (None when an axis is dynamic) and conversion of a row of this rank; None when there is no rule."""
    static = all(_static(axis) for axis in row)
    if element_type == "tensor(float)" and len(row) == 1:
        return _Input(Feature(tuple(row)) if static else None, lambda value: np.asarray(value, np.float32)[None])
    if element_type == "tensor(uint8)" and len(row) == 3:
        return _Input(Feature(tuple(row), "uint8") if static else None, lambda value: np.asarray(value)[None])
    if element_type == "tensor(float)" and len(row) == 3:
        channels, height, width = row
        return _Input(Feature((height, width, channels), "uint8") if static else None, _chw)
    return None


def _chw(image: np.ndarray) -> np.ndarray:
    """(..., H, W, C) uint8 to (1, ..., C, H, W) float32 in 0..1."""
    scaled: np.ndarray = np.ascontiguousarray(np.moveaxis(image, -1, -3)[None], np.float32) / np.float32(255)
    return scaled


def _n_action_steps(asked: int | None, output: onnxruntime.NodeArg, path: str) -> int:
    given = _static(output.shape[1]) if len(output.shape) == 3 else 1
    if asked is None:
        return given or 1
    at_least_one("n_action_steps", asked)
    if given is not None and asked > given:
        raise ConfigError(f"{path} gives {given} actions at a time: n_action_steps={asked} is too many")
    return asked


def _static(axis: Any) -> int | None:
    """The length of an axis, None when the graph leaves it open (a name instead of a number)."""
    return axis if isinstance(axis, int) else None


def _show(node: onnxruntime.NodeArg) -> str:
    return f"{node.name} {node.type}[{', '.join(map(str, node.shape))}]"
