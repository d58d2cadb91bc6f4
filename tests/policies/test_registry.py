from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import robotrials
from robotrials.errors import ConfigError
from robotrials.plan.config import PolicyChoice
from robotrials.policies import files, registry
from robotrials.policies.base import Policy
from robotrials.policies.expert import ExpertPolicy
from robotrials.policies.lerobot import policy as lerobot_policy
from robotrials.policies.registry import is_served, make_policy, names, policy_class, revision, type_of, validate

OWN = """
    from __future__ import annotations
    from typing import TYPE_CHECKING, Literal
    import numpy as np
    from robotrials.policies.base import Policy, PolicySpec
    if TYPE_CHECKING:
        from decimal import Decimal

    class Lean(Policy):
        def __init__(self, gain: float, tags: list[str] | None = None, side: Literal["l", "r"] = "l",
                     price: Decimal | None = None):
            self.gain, self.tags, self.side, self.price = gain, tags, side, price
        def spec(self):
            return PolicySpec("lean")
        def act(self, sessions, observations):
            return np.full((len(sessions), 1, 2), self.gain)

    class Loose(Policy):
        def __init__(self, **anything):
            self.anything = anything
        def spec(self):
            return PolicySpec("loose")
        def act(self, sessions, observations):
            return np.zeros((len(sessions), 1, 2))

    class Half(Policy):
        def spec(self):
            return PolicySpec("half")

    class Stranger:
        pass
"""


@pytest.fixture
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's module in the current directory."""
    file = tmp_path / f"own_{tmp_path.name.replace('-', '_')}.py"
    file.write_text(textwrap.dedent(OWN))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != ""])
    return file


def refusal(choice: PolicyChoice) -> str:
    with pytest.raises(ConfigError) as caught:
        make_policy(choice)
    return str(caught.value)


def test_the_policies_of_the_package_are_known_by_name() -> None:
    assert {"expert", "random", "zero", "replay", "onnx", "lerobot"} <= set(names())
    assert not {"base", "registry", "files", "checks", "lerobot_support"} & set(names())


def test_a_type_leads_to_its_class() -> None:
    assert policy_class(PolicyChoice("expert")) is ExpertPolicy


def test_an_unknown_type_names_the_nearest_and_all_that_exist() -> None:
    message = refusal(PolicyChoice("expret"))
    assert "did you mean expert?" in message
    assert all(name in message for name in names())


def test_a_shipped_model_given_as_a_type_is_told_where_it_belongs() -> None:
    assert "named by --policy.path=builtin:metaworld-bc" in refusal(PolicyChoice("builtin:metaworld-bc"))


@pytest.mark.parametrize("helper", ["base", "registry", "files", "no such", "os.path"])
def test_a_module_that_is_no_policy_is_an_unknown_type(helper: str) -> None:
    assert "unknown --policy.type" in refusal(PolicyChoice(helper))


def test_neither_type_nor_path_says_which_to_give() -> None:
    message = refusal(PolicyChoice())
    assert "--policy.type" in message
    assert "--policy.path" in message


@pytest.mark.parametrize(
    ("path", "kind"),
    [("anything.onnx", "onnx"), ("builtin:metaworld-bc", "onnx"), ("lerobot/act_v1.5", "lerobot")],
)
def test_a_path_alone_tells_its_type(path: str, kind: str) -> None:
    assert type_of(PolicyChoice(path=path)) == kind


def test_a_folder_is_taken_for_a_lerobot_checkpoint(tmp_path: Path) -> None:
    assert type_of(PolicyChoice(path=str(tmp_path))) == "lerobot"


@pytest.mark.parametrize("path", ["runs/gone.npz", "./gone", "/gone/too", "a/b/c"])
def test_a_path_that_does_not_exist_is_refused(path: str) -> None:
    assert "no such file or folder" in refusal(PolicyChoice(path=path))


def test_a_file_of_unknown_kind_asks_for_the_type(tmp_path: Path) -> None:
    (tmp_path / "actions.npy").touch()
    assert "add --policy.type" in refusal(PolicyChoice(path=str(tmp_path / "actions.npy")))


def test_an_unknown_shipped_model_lists_those_that_are() -> None:
    message = refusal(PolicyChoice(path="builtin:metaworld-bb"))
    assert "did you mean metaworld-bc?" in message
    assert "builtin:metaworld-bc" in message


def test_options_are_read_as_the_constructor_annotates_them() -> None:
    assert make_policy(PolicyChoice("random", options={"n_action_steps": "3"})).spec().n_action_steps == 3


def test_an_unknown_option_names_the_nearest() -> None:
    message = refusal(PolicyChoice("random", options={"n_action_step": "3"}))
    assert "--policy.n_action_step (did you mean n_action_steps?)" in message


def test_an_option_of_another_type_is_refused_with_its_flag() -> None:
    assert "--policy.n_action_steps must be a whole number" in refusal(
        PolicyChoice("random", options={"n_action_steps": "many"})
    )


def test_a_path_for_a_policy_that_takes_none_is_refused() -> None:
    assert "policy expert has no option --policy.path" in refusal(PolicyChoice("expert", path="x"))


def test_a_missing_option_is_named() -> None:
    assert refusal(PolicyChoice("replay")) == "policy replay needs --policy.path"


def test_validate_refuses_what_make_policy_would(tmp_path: Path) -> None:
    for wrong in (
        PolicyChoice("expret"),
        PolicyChoice("random", options={"steps": "3"}),
        PolicyChoice("replay"),
        PolicyChoice("replay", path=str(tmp_path / "gone.npy")),
        PolicyChoice("onnx", path=str(tmp_path / "gone.onnx")),
        PolicyChoice("gone.module:Class"),
        PolicyChoice("gone.py:Class"),
    ):
        with pytest.raises(ConfigError):
            validate(wrong)


def test_validate_accepts_what_is_right(own_file: Path) -> None:
    validate(PolicyChoice("expert"))
    validate(PolicyChoice("random", options={"n_action_steps": "3"}))
    validate(PolicyChoice(f"{own_file.name}:Lean", options={"gain": "2"}))


def test_a_users_class_is_found_by_file_and_by_module(own_file: Path) -> None:
    for name in (f"{own_file.name}:Lean", f"{own_file}:Lean", f"{own_file.stem}:Lean"):
        policy = make_policy(PolicyChoice(name, options={"gain": "2.5", "tags": "a,b"}))
        assert policy.gain == 2.5  # type: ignore[attr-defined]
        assert policy.tags == ["a", "b"]  # type: ignore[attr-defined]


def test_an_annotation_that_cannot_be_read_hands_the_option_over_as_it_came(own_file: Path) -> None:
    choice = PolicyChoice(f"{own_file.name}:Lean", options={"gain": "1", "side": "r", "price": "7"})
    policy = make_policy(choice)
    assert (policy.gain, policy.side, policy.price) == (1.0, "r", "7")  # type: ignore[attr-defined]


def test_a_constructor_that_takes_anything_gets_anything(own_file: Path) -> None:
    policy = make_policy(PolicyChoice(f"{own_file.name}:Loose", options={"a": "1"}))
    assert policy.anything == {"a": "1"}  # type: ignore[attr-defined]


def test_a_users_class_that_is_not_there_lists_the_policies_that_are(own_file: Path) -> None:
    message = refusal(PolicyChoice(f"{own_file.name}:Leen"))
    assert "did you mean Lean?" in message
    assert "Loose" in message
    assert "Half" not in message


def test_a_users_class_that_is_no_policy_says_what_to_derive_from(own_file: Path) -> None:
    assert "robotrials.policies.base.Policy" in refusal(PolicyChoice(f"{own_file.name}:Stranger"))


def test_a_users_class_that_lacks_a_method_says_which(own_file: Path) -> None:
    assert "Half lacks act()" in refusal(PolicyChoice(f"{own_file.name}:Half"))


def test_validate_does_not_run_a_users_module(own_file: Path) -> None:
    own_file.write_text("raise RuntimeError('this was run')")
    validate(PolicyChoice(f"{own_file.name}:Lean"))
    assert "this was run" in refusal(PolicyChoice(f"{own_file.name}:Lean"))


def test_a_plugin_is_found_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plugged_in.py").write_text(textwrap.dedent(OWN))
    info = tmp_path / "plugged-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[robotrials.policies]\nlean = plugged_in:Lean\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "lean" in names()
    assert make_policy(PolicyChoice("lean", options={"gain": "2"})).gain == 2.0  # type: ignore[attr-defined]
    assert revision(PolicyChoice("lean")) == "plugged-1.2"
    assert "lean" in refusal(PolicyChoice("leen"))


def test_the_revision_of_a_built_in_policy_is_the_version() -> None:
    assert revision(PolicyChoice("expert")) == f"builtin-{robotrials.__version__}"


def test_the_revision_follows_the_contents_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "actions.npy"
    np.save(file, np.zeros((3, 2)))
    choice = PolicyChoice("replay", path=str(file))
    before = revision(choice)
    assert revision(choice) == before
    np.save(file, np.ones((3, 2)))
    assert revision(choice) != before


def test_the_revision_of_a_folder_follows_names_and_contents(tmp_path: Path) -> None:
    choice = PolicyChoice("replay", path=str(tmp_path))
    np.save(tmp_path / "0.npy", np.zeros((3, 2)))
    before = revision(choice)
    (tmp_path / "0.npy").rename(tmp_path / "1.npy")
    assert revision(choice) != before
    (tmp_path / "1.npy").rename(tmp_path / "0.npy")
    assert revision(choice) == before


def test_the_revision_of_a_users_class_follows_its_source_and_its_weights(own_file: Path) -> None:
    weights = own_file.with_suffix(".bin")
    weights.write_bytes(b"1")
    choice = PolicyChoice(f"{own_file.name}:Loose", path=str(weights))
    seen = {revision(choice)}
    weights.write_bytes(b"2")
    seen.add(revision(choice))
    own_file.write_text(own_file.read_text() + "\n# changed\n")
    seen.add(revision(choice))
    assert len(seen) == 3


def test_a_worker_imports_the_policy_it_needs_and_no_other() -> None:
    program = """
        import sys
        from robotrials.plan.config import PolicyChoice
        from robotrials.policies.registry import is_served, make_policy
        make_policy(PolicyChoice("expert"))
        print(*sorted(m for m in sys.modules if m.startswith("robotrials.policies.")))
        print(*sorted({"torch", "onnxruntime", "onnx", "importlib.metadata"} & set(sys.modules)))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    own, heavy = done.stdout.split("\n")[:2]
    assert own.split() == [f"robotrials.policies.{m}" for m in ("base", "expert", "files", "registry")]
    assert heavy == ""


def test_every_named_policy_is_a_complete_policy_class() -> None:
    for name in names():
        assert issubclass(policy_class(PolicyChoice(name)), Policy)


def test_the_table_names_classes_of_this_package() -> None:
    for name, path in registry.OWN.items():
        cls = policy_class(PolicyChoice(name))
        assert f"{cls.__module__}:{cls.__qualname__}" == path
    assert list(registry.OWN) == sorted(registry.OWN)


SERVED = """
    from robotrials.policies.base import Policy
    from other import Heavy as Model


    class Plain(Policy):
        def __init__(self):
            raise RuntimeError("this was run")


    class Big(Plain):
        served: bool = True


    class Bigger(Big):
        pass


    class Small(Bigger):
        served = False


    class Far(Model):
        pass


    raise RuntimeError("this was run")
"""


@pytest.fixture
def served_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "heavy_policies.py"
    file.write_text(textwrap.dedent(SERVED))
    (tmp_path / "other.py").write_text("class Base:\n    served = True\n\n\nclass Heavy(Base):\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return file


@pytest.mark.parametrize(
    ("cls", "served"), [("Plain", False), ("Big", True), ("Bigger", True), ("Small", False), ("Far", True)]
)
def test_a_class_of_the_users_own_says_whether_it_is_served_without_being_imported(
    served_file: Path, cls: str, served: bool
) -> None:
    assert is_served(PolicyChoice(f"{served_file}:{cls}")) is served
    assert is_served(PolicyChoice(f"heavy_policies:{cls}")) is served


def test_a_plugins_class_says_whether_it_is_served(served_file: Path, tmp_path: Path) -> None:
    package = tmp_path / "plugged_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('this was run')\n")
    (package / "policy.py").write_text("from heavy_policies import Big\n\n\nclass Mine(Big):\n    pass\n")
    (package / "__main__.py").write_text("from .policy import Mine\n")
    info = tmp_path / "plugged-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(
        "[robotrials.policies]\nheavy = plugged_package.policy:Mine\nalias = plugged_package.__main__:Mine\n"
        "light = heavy_policies:Plain\n"
    )
    assert is_served(PolicyChoice("heavy"))
    assert is_served(PolicyChoice("alias"))
    assert not is_served(PolicyChoice("light"))


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("lerobot/act.base", True),
        ("lerobot/pi0.5-libero", True),
        ("me/act_v1.5", True),
        ("runs/actions.npz", False),
        ("runs/policy.pt", False),
        ("./lerobot/act", False),
        ("~/act", False),
        ("/tmp/act", False),
        ("act", False),
        ("a/b/c", False),
        ("me/", False),
        ("me/a b", False),
    ],
)
def test_one_rule_tells_a_hub_id_from_a_path(
    path: str, is_one: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert files.is_hub_id(path) is is_one
    if is_one:
        assert type_of(PolicyChoice(path=path)) == "lerobot"
        lerobot_policy.validate(PolicyChoice(path=path))
        (tmp_path / path).mkdir(parents=True)
        assert not files.is_hub_id(path)  # what is here is meant first
    else:
        with pytest.raises(ConfigError, match="no such file or folder"):
            type_of(PolicyChoice(path=path))


@pytest.mark.parametrize("name", ["groot", "act", "diffusion", "pi0", "pi05", "smolvla", "ACT"])
def test_a_type_of_lerobots_leads_to_the_path_of_its_checkpoint(name: str) -> None:
    said = refusal(PolicyChoice(name))
    assert "give its checkpoint as --policy.path=CHECKPOINT" in said
    assert "leave --policy.type out" in said
