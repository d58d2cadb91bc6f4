"""From ``--policy.*`` to a policy: what exists, which one is meant, and the check of its options.

``OWN`` lists the policies of this package. Packages elsewhere add theirs under the entry-point group
``robotrials.policies``, and anybody's class can be named by its import path (``examples/own_policy.py`` shows one).
Nothing is imported but the one module that is asked for.

A module may also define ``validate(choice) -> None``, ``revision(choice) -> str``, ``fitted(choice, tasks,
rename_map) -> PolicyChoice``, ``require_here(choice) -> None``, ``known_spec(choice) -> PolicySpec`` and
``check_plan(choice, plan) -> None`` where the rules below do not fit, and the constants ``PLACES``, ``IN_REVISION`` and
``CAVEAT`` (``without_places``, ``caveat``).
"""

from __future__ import annotations

import importlib
import inspect
import typing
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

from robotrials.errors import ConfigError
from robotrials.plan import import_path
from robotrials.plan.config import PolicyChoice
from robotrials.plan.global_random import Generators, standing
from robotrials.plan.options import coerce, nearest
from robotrials.plan.plan import Plan
from robotrials.plan.task import TaskSpec
from robotrials.policies import files
from robotrials.policies.base import Policy, PolicySpec
from robotrials.version import __version__

ENTRY_POINTS = "robotrials.policies"
TYPE_FLAG = "--policy.type"

OWN = {
    "expert": "robotrials.policies.expert:ExpertPolicy",
    "lerobot": "robotrials.policies.lerobot.policy:LeRobotPolicy",
    "onnx": "robotrials.policies.onnx:OnnxPolicy",
    "openpi": "robotrials.policies.remote.openpi:OpenpiPolicy",
    "random": "robotrials.policies.random:RandomPolicy",
    "remote": "robotrials.policies.remote.policy:RemotePolicy",
    "replay": "robotrials.policies.replay:ReplayPolicy",
    "vla_eval": "robotrials.policies.remote.vla_eval:VlaEvalPolicy",
    "zero": "robotrials.policies.zero:ZeroPolicy",
}
"""``--policy.type`` to the class of this package behind it."""
_LEROBOT_TYPES = frozenset(
    {"act", "diffusion", "eo1", "evo1", "fastwam", "gaussian_actor", "groot", "lingbot_va", "molmoact2"}
    | {"multi_task_dit", "pi0", "pi05", "pi0_fast", "pi0fast", "sac", "smolvla", "tdmpc", "vla_jepa", "vqbet", "wall_x"}
    | {"xvla"}
)
"""What LeRobot (0.3 to 0.6) calls its policies in ``--policy.type`` of its own commands."""


def names() -> list[str]:
    """The types that ``--policy.type`` knows by name, sorted; import paths come on top. Imports none of them."""
    return sorted({*OWN, *_plugins()})


def type_of(choice: PolicyChoice) -> str:
    """The type that ``choice`` means: as given, or read off its path.

    Raises:
        ConfigError: neither type nor path is given, or the path does not show what it is.
    """
    if choice.type:
        return choice.type
    if not choice.path:
        raise ConfigError(f"no policy: give --policy.type (one of {', '.join(names())}) or --policy.path")
    path = files.locate(choice.path)
    if path.suffix == ".onnx":
        return "onnx"
    if path.is_dir() or files.is_hub_id(choice.path):
        return "lerobot"
    if not path.exists():
        raise ConfigError(f"--policy.path={choice.path}: no such file or folder")
    raise ConfigError(
        f"--policy.path={choice.path}: only .onnx files and LeRobot folders say by themselves what they are; "
        "add --policy.type (replay plays a file of actions)"
    )


def policy_class(choice: PolicyChoice) -> type[Policy]:
    """The class behind ``choice``; imports its module.

    Raises:
        ConfigError: an unknown type (with what exists), or an import path that leads to no policy.
    """
    name = type_of(choice)
    if import_path.is_import_path(name):
        return import_path.load(name, Policy, TYPE_FLAG)  # type: ignore[type-abstract]
    module = _own_module(name)
    found = getattr(module, _class_name(name)) if module else _plugins()[name].load()
    return import_path.require(found, Policy, f"{TYPE_FLAG}={name}")  # type: ignore[type-abstract]


def make_policy(choice: PolicyChoice) -> Policy:
    """Build the policy, its options read as the annotations of its constructor say. Weights that it draws are the same
    in every process: the global generators stand at a seed of ours meanwhile.

    Raises:
        ConfigError: an unknown, missing or unreadable option; and what ``policy_class`` raises.
    """
    cls = policy_class(choice)
    arguments = _arguments(cls, choice, type_of(choice))
    with standing(Generators(0)):
        return cls(**arguments)


def told_exactness(choice: PolicyChoice, exact: bool) -> PolicyChoice:
    """``--eval.exact`` as an option of policies that can trade exactness for speed."""
    if "exact" in choice.options or "exact" not in inspect.signature(policy_class(choice)).parameters:
        return choice
    return replace(choice, options={**choice.options, "exact": exact})


def validate(choice: PolicyChoice) -> None:
    """Refuse what can be refused cheaply: unknown types, missing files, and (built-in types) wrong options.

    Neither a model nor a user's module is imported, so this is safe in the coordinator.

    Raises:
        ConfigError: as ``make_policy`` would.
    """
    name = type_of(choice)
    if import_path.is_import_path(name):
        import_path.source(name, TYPE_FLAG)
    else:
        module = _own_module(name)
        if module is not None:
            _arguments(policy_class(choice), choice, name)
            if hasattr(module, "validate"):
                module.validate(choice)
                return
    if choice.path and not files.locate(choice.path).exists():
        raise ConfigError(f"--policy.path={choice.path}: no such file or folder")


def revision(choice: PolicyChoice) -> str:
    """What tells this policy from another of the same name, for the identity of a run; nothing is loaded.

    ``builtin-<version>`` for the policies of this package, ``<distribution>-<version>`` for a plugin's,
    ``source:<hash>`` for a user's module (that one file, not what it imports); where ``--policy.path`` is a file or
    folder, ``sha256:<hash>`` of its contents follows. Hashes have 16 hexadecimal digits.
    """
    name = type_of(choice)
    if import_path.is_import_path(name):
        code = "source:" + files.digest(import_path.source(name, TYPE_FLAG))
    else:
        module = _own_module(name)
        if module is not None and hasattr(module, "revision"):
            return str(module.revision(choice))
        code = f"builtin-{__version__}" if module else _plugin_version(name)
    return f"{code} sha256:{files.digest(files.locate(choice.path))}" if choice.path else code


def without_places(choice: PolicyChoice) -> PolicyChoice:
    """``choice`` without the options that say where the policy is found, which its module lists as ``PLACES``: a server
    may move between two sessions of a run. Also without those in ``IN_REVISION``, which the revision tells already."""
    module = _module_of(choice)
    places = (*getattr(module, "PLACES", ()), *getattr(module, "IN_REVISION", ()))
    return replace(choice, options={k: v for k, v in choice.options.items() if k not in places})


def is_elsewhere(choice: PolicyChoice) -> bool:
    """Whether the policy has a server of its own, outside of the run."""
    return bool(getattr(_module_of(choice), "PLACES", ()))


def caveat(choice: PolicyChoice) -> str | None:
    """Why the outcomes of this policy cannot be promised to be the same again; None when they can."""
    found = getattr(_module_of(choice), "CAVEAT", None)
    return None if found is None else str(found)


def _module_of(choice: PolicyChoice) -> ModuleType | None:
    name = type_of(choice)
    return None if import_path.is_import_path(name) else _own_module(name)


def fitted(choice: PolicyChoice, tasks: Sequence[TaskSpec], rename_map: Mapping[str, str]) -> PolicyChoice:
    """``choice`` with the options that follow from the benchmark, after a look at whether the two fit at all.

    Raises:
        ContractError: they do not; the message names both sides. Kinds of policy that only a loaded model can tell
            about are not refused here, but when they are loaded.
    """
    module = _module_of(choice)
    return module.fitted(choice, tasks, rename_map) if hasattr(module, "fitted") else choice  # type: ignore[union-attr]


def require_here(choice: PolicyChoice) -> None:
    """Refuse what this interpreter or this machine lacks for the policy. Asked where the policy will run; loads none.

    Raises:
        NotInstalledError: a package is missing.
        ConfigError: a device that does not exist here.
    """
    module = _module_of(choice)
    if hasattr(module, "require_here"):
        module.require_here(choice)  # type: ignore[union-attr]


def known_spec(choice: PolicyChoice) -> PolicySpec | None:
    """What the policy needs and hands out, where that costs next to nothing to know; None where it must be built.

    Raises:
        ConfigError: options that its constructor refuses.
    """
    module = _module_of(choice)
    if hasattr(module, "known_spec"):
        return module.known_spec(choice)  # type: ignore[union-attr, no-any-return]
    return make_policy(choice).spec() if module is not None and policy_class(choice).plain else None


def check_plan(choice: PolicyChoice, plan: Plan) -> None:
    """Refuse a plan that holds episodes which the policy is known to be unable to play.

    Raises:
        ContractError: there are such episodes.
    """
    module = _module_of(choice)
    if hasattr(module, "check_plan"):
        module.check_plan(choice, plan)  # type: ignore[union-attr]


def is_served(choice: PolicyChoice) -> bool:
    """Whether the policy lives in a policy server unless told otherwise. Of a user's own class and of a plugin's it is
    read from the source: its module is not imported to find out."""
    from robotrials.policies import class_source  # workers need it never

    name = type_of(choice)
    if import_path.is_import_path(name):
        file, class_name = import_path.source(name, TYPE_FLAG), name.rpartition(":")[2]
        return bool(class_source.attribute(file, class_name, "served"))
    if _own_module(name) is not None:
        return bool(policy_class(choice).served)
    point = _plugins()[name]
    source = class_source.module_file(point.module)
    return source is not None and bool(class_source.attribute(source, point.attr, "served"))


def looks_every_step(choice: PolicyChoice) -> bool:
    """Whether the policy is known to act on every step, not on one of many: inference is then most of the work."""
    module = _module_of(choice)
    return bool(module.looks_every_step(choice)) if hasattr(module, "looks_every_step") else False  # type: ignore[union-attr]


def _own_module(name: str) -> ModuleType | None:
    """This package's module for ``name``; None when a plugin has it.

    Raises:
        ConfigError: unknown; the message lists what exists.
    """
    if name in OWN:
        return importlib.import_module(OWN[name].partition(":")[0])
    if name in _plugins():
        return None
    if name.lower() in _LEROBOT_TYPES:
        raise ConfigError(
            f"--policy.type={name} is a type of LeRobot's: give its checkpoint as --policy.path=CHECKPOINT (a folder, "
            "or owner/name on the Hub) and leave --policy.type out; the type is read from the checkpoint"
        )
    known = names()
    raise ConfigError(
        f"unknown --policy.type={name}{nearest(name, known)}; known: {', '.join(known)}, "
        "or a class of yours as package.module:Class or path/to/file.py:Class"
    )


def _class_name(name: str) -> str:
    return OWN[name].partition(":")[2]


def _arguments(cls: type[Policy], choice: PolicyChoice, name: str) -> dict[str, Any]:
    """Keyword arguments for ``cls`` from the options of ``choice``, checked against its constructor."""
    parameters = {p.name: p for p in inspect.signature(cls).parameters.values()}
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    named = {n: p for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    given = dict(choice.options)
    if choice.path is not None:
        given["path"] = choice.path
    for option in given:
        if option not in named and not takes_any:
            takes = ", ".join(f"--policy.{n}" for n in named) or "none"
            raise ConfigError(
                f"policy {name} has no option --policy.{option}{nearest(option, named)}; its options: {takes}"
            )
    missing = [n for n, p in named.items() if p.default is p.empty and n not in given]
    if missing:
        raise ConfigError(f"policy {name} needs --policy.{missing[0]}")
    # Where there is no annotation the default says what type is meant.
    hints = {n: type(p.default) for n, p in named.items() if isinstance(p.default, (bool, int, float, str))}
    hints.update(_hints(cls, named))
    return {key: _read(value, hints.get(key, Any), f"--policy.{key}") for key, value in given.items()}


def _hints(cls: type[Policy], parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """Evaluated annotations; those that name what is not importable at run time are left out."""
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))  # object at the latest
    scope = vars(importlib.import_module(owner.__module__))
    hints: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if parameter.annotation is not parameter.empty:
            one = SimpleNamespace(__annotations__={name: parameter.annotation})
            try:
                hints.update(typing.get_type_hints(one, scope))
            except NameError:
                continue
    return hints


def _read(value: Any, hint: Any, flag: str) -> Any:
    try:
        return coerce(value, hint, flag)
    except TypeError:  # an annotation of a user's class for which there is no rule: handed over as it came
        return value


def _plugins() -> dict[str, Any]:
    from importlib.metadata import entry_points  # costs more than the rest of this module, and is rarely needed

    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def _plugin_version(name: str) -> str:
    distribution = _plugins()[name].dist
    return f"{distribution.name}-{distribution.version}" if distribution else "unknown"
