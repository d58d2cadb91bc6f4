from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from robotrials.cli.flags import EvalCall, parse_eval
from robotrials.errors import ConfigError
from robotrials.plan.config import EvalSettings
from robotrials.run.description import config_to_json
from tests.engine.toy_runs import toy_config

BOTH = "policy: {type: expert}\nenv: {type: metaworld}\n"


@pytest.fixture
def run_yaml(tmp_path: Path) -> Path:
    return tmp_path / "run.yaml"


def load(path: Path, text: str, *words: str) -> EvalCall:
    path.write_text(text)
    return parse_eval([f"--config_path={path}", *words])


def refusal(path: Path, text: str, *words: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(path, text, *words)
    return str(caught.value)


def test_a_date_is_text_as_it_is_written(tmp_path: Path) -> None:
    text = f"{BOTH}output_dir: 2026-11-30\njob_name: 2026-1-3\npolicy.when: 2026-13-77\n"
    config = load(tmp_path / "run.yaml", text).config
    assert (config.output_dir, config.job_name) == (Path("2026-11-30"), "2026-1-3")
    assert config.policy.options == {"when": "2026-13-77"}


def test_a_path_of_digits_alone_needs_quotes(tmp_path: Path) -> None:
    words = refusal(tmp_path / "run.yaml", f"{BOTH}output_dir: 0123\n")  # YAML reads it as 83
    assert "output_dir must be a path, got 83; in YAML a name of digits needs quotes" in words
    assert load(tmp_path / "run.yaml", f"{BOTH}output_dir: '0123'\n").config.output_dir == Path("0123")


def test_a_file_holds_the_same_names_nested(run_yaml: Path) -> None:
    text = """
    policy: {path: weights.onnx, type: onnx, threads: 2}
    env: {type: metaworld, task: [reach-v3, drawer-open-v3]}
    eval: {n_episodes: 4, exact: no, step_timeout: 1e1}
    seed: null
    rename_map: {observation.image: observation.images.top}
    output_dir: runs/a
    """
    config = load(run_yaml, text).config
    assert (config.policy.type, config.policy.path, config.policy.options) == ("onnx", "weights.onnx", {"threads": 2})
    assert config.env.options == {"task": ["reach-v3", "drawer-open-v3"]}
    assert config.eval == EvalSettings(n_episodes=4, exact=False, step_timeout=10.0)
    assert (config.seed, config.output_dir) == (None, Path("runs/a"))
    assert config.rename_map == {"observation.image": "observation.images.top"}


def test_dotted_names_and_dashes_mean_the_same(run_yaml: Path) -> None:
    config = load(run_yaml, BOTH + "eval.n-episodes: 3\noutput-dir: x\n").config
    assert (config.eval.n_episodes, config.output_dir) == (3, Path("x"))


def test_the_command_line_wins_flag_by_flag(run_yaml: Path) -> None:
    text = BOTH + "eval: {n_episodes: 4, record: none}\nseed: 1\n"
    config = load(run_yaml, text, "--eval.n_episodes=9", "--policy.type=random").config
    assert (config.eval.n_episodes, config.eval.record, config.seed) == (9, "none", 1)
    assert (config.policy.type, config.env.type) == ("random", "metaworld")


def test_lerobots_container_section_lies_within_eval(run_yaml: Path) -> None:
    run_yaml.write_text(
        "policy: {type: expert}\nenv: {type: metaworld}\neval: {runtime: docker, docker: {image: mine, gpus: all}}\n"
    )
    docker = parse_eval([f"--config_path={run_yaml}"]).config.docker
    assert (docker.image, docker.gpus) == ("mine", "all")
    run_yaml.write_text("eval.docker.image: a\ndocker: {image: b}\n")
    with pytest.raises(ConfigError, match=r"docker\.image is given twice"):
        parse_eval([f"--config_path={run_yaml}"])


def test_json_is_yaml(run_yaml: Path) -> None:
    text = '{"policy": {"type": "expert"}, "env": {"type": "pusht"}, "seed": 3}'
    assert load(run_yaml, text).config.seed == 3


def test_an_empty_file_and_an_empty_section_change_nothing(run_yaml: Path) -> None:
    words = ["--policy.type=expert", "--env.type=metaworld"]
    assert load(run_yaml, "# nothing\n", *words).config == parse_eval(words).config
    assert load(run_yaml, "eval:\n", *words).config == parse_eval(words).config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("eval: {n_episode: 3}", "unknown name eval.n_episode (did you mean eval.n_episodes?)"),
        ("sede: 3", "unknown name sede (did you mean seed?)"),
        ("n_episodes: 3", "unknown name n_episodes (did you mean eval.n_episodes?)"),
        ("evall: {n_episodes: 3}", "unknown name evall.n_episodes (did you mean eval.n_episodes?)"),
        ("config_path: other.yaml", "unknown name config_path"),
        ("dry_run: true", "unknown name dry_run"),
        ("eval: {n_episodes: many}", "eval.n_episodes must be a whole number, got 'many'"),
        ("eval: {n_episodes: null}", "eval.n_episodes must be a whole number, got None"),
        ("eval: {exact: 3}", "eval.exact must be true or false, got 3"),
        ("eval: {order: x}", "eval.order must be one of longest, shuffled, balanced; got 'x'"),
        ("rename_map: [a, b]", "rename_map must be a map such as {a: b}, got ['a', 'b']"),
        ("rename_map: {a: 1}", "rename_map must map names to names, got 'a': 1"),
        ("policy: expert", "policy must be a map such as {type: expert}, got 'expert'"),
        ("seed: 1\neval.n_episodes: 2\neval: {n_episodes: 3}", "eval.n_episodes is given twice"),
    ],
)
def test_what_is_wrong_in_a_file_is_refused_with_its_name(run_yaml: Path, text: str, message: str) -> None:
    told = refusal(run_yaml, text, "--policy.type=expert", "--env.type=metaworld")
    assert told.startswith(f"{run_yaml}: ")
    assert message in told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed: 1\nseed: 2", "seed is given twice (line 2, column 1)"),
        ("eval: {n_episodes: 1, n_episodes: 2}", "n_episodes is given twice (line 1, column 23)"),
        ("eval: {n_episodes: 1", "not valid YAML"),
        ("seed: !!python/object/apply:os.getcwd []", "not valid YAML"),
        ("- seed", "must hold a map of flag names to values, not a list"),
        ("seed", "must hold a map of flag names to values, not a str"),
    ],
)
def test_a_file_that_is_no_strict_yaml_map_is_refused(run_yaml: Path, text: str, message: str) -> None:
    told = refusal(run_yaml, text)
    assert str(run_yaml) in told
    assert message in told


def test_a_missing_file_and_a_folder_are_refused_by_name(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(ConfigError, match=f"--config_path={path} cannot be read"):
            parse_eval([f"--config_path={path}"])


def test_flags_of_lerobot_eval_are_taken_from_a_file_too(run_yaml: Path) -> None:
    call = load(run_yaml, BOTH + "eval: {use_async_envs: true}\ntrust_remote_code: false\n")
    assert len(call.notes) == 2


def test_a_runs_own_eval_config_starts_the_same_run_elsewhere(run_yaml: Path, tmp_path: Path) -> None:
    config = toy_config(tmp_path / "first", trouble="raise@a/1", policy_options={"n": "3"})
    call = load(run_yaml, json.dumps(config_to_json(config)), f"--output_dir={tmp_path / 'second'}")
    assert call.config == replace(config, output_dir=tmp_path / "second")
