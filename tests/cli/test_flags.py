from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotrials.cli.flags import BOOLEAN, KNOWN, parse_eval, read_flags
from robotrials.errors import ConfigError
from robotrials.plan.config import EvalSettings, RunConfig

BOTH = ["--policy.type=expert", "--env.type=metaworld"]


def parse(*words: str) -> RunConfig:
    return parse_eval([*BOTH, *words]).config


def refusal(*words: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_eval(list(words))
    return str(caught.value)


def test_defaults_are_those_of_the_dataclasses() -> None:
    config = parse()
    assert config.eval == EvalSettings()
    assert (config.seed, config.output_dir, config.job_name, config.rename_map) == (1000, None, None, {})
    assert (config.policy.type, config.policy.path, dict(config.policy.options)) == ("expert", None, {})
    assert (config.env.type, dict(config.env.options)) == ("metaworld", {})


def test_every_kind_of_flag_lands_in_its_place() -> None:
    config = parse(
        "--policy.path=weights.onnx",
        "--policy.noise=0.1",
        "--env.task=reach-v3,drawer-open-v3",
        "--env.fps=10",
        "--eval.n_episodes=4",
        "--eval.step_timeout=2.5",
        "--eval.record=first:10",
        "--eval.exact=false",
        "--seed=7",
        "--output_dir=runs/a",
        "--job_name=a b",
        '--rename_map={"a": "b"}',
        "--allow_mixed",
    )
    assert config.policy.path == "weights.onnx"
    assert config.policy.options == {"noise": "0.1"}
    assert config.env.options == {"task": "reach-v3,drawer-open-v3", "fps": "10"}
    assert config.eval == EvalSettings(n_episodes=4, step_timeout=2.5, record="first:10", exact=False)
    assert (config.seed, config.output_dir, config.job_name) == (7, Path("runs/a"), "a b")
    assert config.rename_map == {"a": "b"}
    assert config.allow_mixed is True


@pytest.mark.parametrize("word", ["--eval.n-episodes=3", "--eval.n_episodes=3"])
def test_dashes_stand_for_underscores_in_names(word: str) -> None:
    assert parse(word).eval.n_episodes == 3


def test_dashes_in_values_stay() -> None:
    assert parse("--output-dir=my-run", "--policy.some-thing=a-b").policy.options == {"some_thing": "a-b"}
    assert parse("--output-dir=my-run").output_dir == Path("my-run")


@pytest.mark.parametrize(("value", "seed"), [("null", None), ("none", None), ("0", 0), ("-3", -3)])
def test_seed_may_be_null_or_negative_and_may_follow_a_space(value: str, seed: int | None) -> None:
    assert parse(f"--seed={value}").seed == seed
    assert parse("--seed", value).seed == seed


@pytest.mark.parametrize(("words", "exact"), [(["--eval.exact"], True), (["--eval.exact", "false"], False)])
def test_a_boolean_may_stand_bare_or_take_a_value(words: list[str], exact: bool) -> None:
    assert parse(*words).eval.exact is exact
    assert parse(*words, "--seed=1").seed == 1


def test_a_bare_boolean_does_not_swallow_the_next_word() -> None:
    assert "unexpected 'reach'" in refusal(*BOTH, "--allow_mixed", "reach")


def test_a_bare_option_of_a_policy_is_true_and_another_takes_the_next_word() -> None:
    assert parse("--policy.use_amp", "--policy.device", "cuda:0").policy.options == {
        "use_amp": "true",
        "device": "cuda:0",
    }


@pytest.mark.parametrize(
    ("word", "right"),
    [
        ("--eval.n_episode=3", "--eval.n_episodes"),
        ("--eval.nepisodes=3", "--eval.n_episodes"),
        ("--n_episodes=3", "--eval.n_episodes"),
        ("--eval.batchsize=3", "--eval.batch_size"),
        ("--sede=3", "--seed"),
        ("--eval.seed=3", "--seed"),
        ("--ouput_dir=x", "--output_dir"),
        ("--task=reach-v3", "--env.task"),
        ("--policy=expert", "--policy.type"),
        ("--env=metaworld", "--env.type"),
        ("--rename-mpa={}", "--rename_map"),
        ("--dryrun", "--dry_run"),
        ("--config=run.yaml", "--config_path"),
        ("-n=5", "--eval.n_episodes=5"),
        ("-n5", "--eval.n_episodes=5"),
        ("-n", "--eval.n_episodes=N"),
        ("--save_video", "--eval.record"),
        ("--eval.save-video=true", "--eval.record"),
        ("--eval.instance_id=1", "--eval.shard_id"),
        ("--instance_id=1", "--eval.shard_id"),
        ("-seed=3", "--seed=3"),
        ("seed=3", "--seed=3"),
        ("policy.type=expert", "--policy.type=expert"),
    ],
)
def test_a_misspelt_flag_is_refused_with_the_right_one(word: str, right: str) -> None:
    message = refusal(*BOTH, word)
    assert f"did you mean {right}?" in message
    assert word.partition("=")[0].replace("-", "_").strip("_") in message.replace("-", "_")


@pytest.mark.parametrize(
    ("words", "right"),
    [
        (["--env.tpye=metaworld", "--policy.type=expert"], "unknown flag --env.tpye (did you mean --env.type?)"),
        (["--env.type=metaworld", "--policy.pth=x"], "unknown flag --policy.pth (did you mean --policy.path?)"),
    ],
)
def test_a_misspelt_type_is_recognised_though_options_are_open(words: list[str], right: str) -> None:
    assert refusal(*words) == right


def test_a_flag_like_no_other_points_to_the_help() -> None:
    assert refusal("--zzzz=1") == "unknown flag --zzzz; robotrials eval --help lists what exists"


def test_a_flag_given_twice_is_refused_also_when_spelt_differently() -> None:
    assert refusal(*BOTH, "--seed=1", "--seed=2") == "--seed is given twice: '1' and '2'"
    assert "--output_dir is given twice" in refusal(*BOTH, "--output_dir=a", "--output-dir", "b")
    assert "--policy.x is given twice" in refusal(*BOTH, "--policy.x=1", "--policy.x=1")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["reach-v3"], "'reach-v3'"),
        (["--seed=1", "2"], "'2'"),
        (["--"], "'--'"),
        (["-x"], "'-x'"),
        (["--seed", "1", "2"], "'2'"),
    ],
)
def test_a_leftover_word_is_refused_by_name(words: list[str], named: str) -> None:
    assert f"unexpected {named}" in refusal(*BOTH, *words)


@pytest.mark.parametrize("words", [["--seed"], ["--seed", "--allow_mixed"], ["--job_name", "-x"], ["--seed="]])
def test_a_flag_without_its_value_is_refused(words: list[str]) -> None:
    message = refusal(*BOTH, *words)
    assert message.startswith(words[0])
    assert "value" in message


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("--eval.n_episodes=many", "--eval.n_episodes must be a whole number, got 'many'"),
        ("--eval.n_episodes=2.5", "--eval.n_episodes must be a whole number, got '2.5'"),
        ("--eval.exact=maybe", "--eval.exact must be true or false, got 'maybe'"),
        ("--eval.step_timeout=soon", "--eval.step_timeout must be a number, got 'soon'"),
        ("--eval.order=random", "--eval.order must be one of longest, shuffled, balanced; got 'random'"),
        ("--seed=x", "--seed must be a whole number, got 'x'"),
        ('--rename_map={"a": 1}', "--rename_map must map names to names, got 'a': 1"),
        ("--rename_map=[1]", "--rename_map must be a map such as {a: b}, got [1]"),
        ("--dry_run=perhaps", "--dry_run must be true or false, got 'perhaps'"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_flag(word: str, message: str) -> None:
    assert refusal(*BOTH, word) == message


def test_a_broken_rename_map_says_what_json_looks_like() -> None:
    assert "--rename_map must be a map such as {a: b}" in refusal(*BOTH, "--rename_map=a:b")


def test_a_run_without_benchmark_or_policy_is_refused_with_what_exists() -> None:
    assert "--env.type is missing" in refusal("--policy.type=expert")
    assert "metaworld" in refusal("--policy.type=expert")
    assert "--policy.type or --policy.path is missing" in refusal("--env.type=metaworld")
    assert "expert" in refusal("--env.type=metaworld")


def test_dry_run_is_no_part_of_the_configuration() -> None:
    assert parse_eval([*BOTH, "--dry_run"]).dry_run is True
    assert parse_eval([*BOTH, "--dry-run=false"]).dry_run is False
    assert parse_eval([*BOTH, "--dry_run"]).config == parse()


@pytest.mark.parametrize(
    "word",
    [
        "--eval.use_async_envs=false",
        "--env.max_parallel_tasks=4",
        "--trust_remote_code=true",
        "--env.disable_env_checker",
        "--env.render_mode=rgb_array",
        "--env.multitask_eval",
        "--env.features={}",
        '--env.features_map={"action": "action"}',
    ],
)
def test_flags_of_lerobot_eval_that_mean_nothing_are_taken_with_one_line(word: str) -> None:
    call = parse_eval([*BOTH, word])
    assert call.config == parse()
    assert len(call.notes) == 1
    assert call.notes[0].startswith(word.partition("=")[0] + " changes nothing: ")


@pytest.mark.parametrize("word", ["--policy.push_to_hub=false", "--policy.repo_id=me/act", "--policy.private"])
def test_flags_of_training_are_taken_with_one_line_where_the_policy_is_lerobots(word: str) -> None:
    call = parse_eval(["--policy.path=me/act", "--env.type=pusht", word])
    assert call.config == parse_eval(["--policy.path=me/act", "--env.type=pusht"]).config
    assert [note.partition(" changes nothing: ")[0] for note in call.notes] == [word.partition("=")[0]]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("--eval.instance_count=3", "--eval.batch_size=3"),
        ("--eval.instance_count=3 --eval.batch_size=4", "--eval.batch_size=12"),
        ("--eval.instance_count=3 --eval.batch_size=0", "--eval.batch_size=3"),
        ("--eval.runtime=multiprocess", "--eval.runtime=local"),
        ("--eval.port=5760", "--eval.listen=tcp://127.0.0.1:5760"),
        ("--eval.docker.pull=true", "--docker.pull=missing"),
        ("--eval.docker.pull=false", "--docker.pull=never"),
        ("--eval.docker.gpus=null", "--docker.gpus=none"),
        ("--eval.docker.image=a --eval.docker.shm_size=1g", "--docker.image=a --docker.shm_size=1g"),
        ("--render-device=cpu", "--render.device=cpu"),
    ],
)
def test_flags_of_forerunners_have_their_nearest_meaning(words: str, meant: str) -> None:
    assert parse(*words.split()) == parse(*meant.split())


def test_a_forerunners_flags_in_a_file_mean_the_same(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("eval: {instance_count: 2, batch_size: 3}\ndocker: {pull: true, gpus: null}\n")
    assert parse(f"--config_path={file}").eval.batch_size == 6
    assert parse(f"--config_path={file}").docker == parse("--docker.pull=missing").docker


def test_an_instance_count_below_one_is_refused() -> None:
    assert "--eval.instance_count must be at least 1, got -1" in refusal(*BOTH, "--eval.instance_count=-1")


def test_a_hub_environment_beside_a_container_is_the_environment() -> None:
    call = parse_eval(["--policy.type=random", "--eval.docker.envhub_ref=envhub://me/env@v1"])
    assert (call.config.env.type, call.config.env.options) == ("hub", {"repo": "me/env@v1"})
    assert "goes with --env.type=hub, not with --env.type=metaworld" in refusal(
        *BOTH, "--eval.docker.envhub_ref=me/env"
    )


def test_flags_that_a_bridge_or_a_class_of_ones_own_may_have_are_left_to_it() -> None:
    call = parse_eval(
        ["--policy.type=mine.py:Mine", "--env.type=lerobot_env", "--policy.repo_id=a/b", "--env.features={}"]
    )
    assert call.config.policy.options == {"repo_id": "a/b"}
    assert call.config.env.options == {"features": "{}"}
    assert not call.notes


def test_rename_map_of_null_renames_nothing(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("rename_map: null\n")
    assert parse_eval([*BOTH, "--rename_map=null"]).config == parse()
    assert parse_eval([*BOTH, f"--config_path={file}"]).config == parse()


def test_lerobots_recording_flags_are_taken_and_a_push_is_said_to_be_left_undone() -> None:
    call = parse_eval([*BOTH, "--eval.recording", "--eval.recording_repo_id=me/rollouts", "--eval.recording_private"])
    settings = call.config.eval
    assert (settings.recording, settings.recording_repo_id, settings.recording_private) == (True, "me/rollouts", True)
    assert len(call.notes) == 1
    assert "nothing is pushed" in call.notes[0]
    assert parse_eval([*BOTH, "--eval.recording=false", "--eval.recording_repo_id=null"]).notes == ()


NAMES = st.from_regex(r"[a-z][a-z0-9]{0,5}(_[a-z0-9]{1,4}){0,2}", fullmatch=True)
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)


@given(
    st.dictionaries(st.tuples(st.sampled_from(["policy", "env"]), NAMES), VALUES, max_size=6),
    st.randoms(use_true_random=False),
)
def test_options_come_back_as_they_were_written(options: dict[tuple[str, str], str], random: object) -> None:
    """However they are ordered, spelt with dashes or underscores, joined by = or a space."""
    expected: dict[str, str] = {}
    words: list[list[str]] = []
    for (section, name), value in options.items():
        full = f"{section}.{name}"
        expected[full] = value
        spelt = full.replace("_", "-") if random.random() < 0.5 else full  # type: ignore[attr-defined]
        apart = not value.startswith("-") and full not in BOOLEAN and random.random() < 0.5  # type: ignore[attr-defined]
        words.append([f"--{spelt}", value] if apart else [f"--{spelt}={value}"])
    random.shuffle(words)  # type: ignore[attr-defined]
    assert read_flags([word for pair in words for word in pair]) == expected


@given(
    n_episodes=st.integers(-(2**63) + 1, 2**63 - 1),
    step_timeout=st.floats(allow_nan=False, allow_infinity=False),
    exact=st.booleans(),
    seed=st.none() | st.integers(-(2**63) + 1, 2**32 - 1),
    rename_map=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
)
def test_typed_flags_come_back_as_their_values(
    n_episodes: int, step_timeout: float, exact: bool, seed: int | None, rename_map: dict[str, str]
) -> None:
    words = [
        f"--eval.n_episodes={n_episodes}",
        "--eval.step_timeout",
        repr(step_timeout),
        f"--eval.exact={str(exact).lower()}",
        "--seed",
        "null" if seed is None else str(seed),
        f"--rename_map={json.dumps(rename_map)}",
    ]
    config = parse(*words)
    assert (config.eval.n_episodes, config.eval.step_timeout, config.eval.exact) == (n_episodes, step_timeout, exact)
    assert (config.seed, config.rename_map) == (seed, rename_map)


@given(st.lists(st.text(max_size=12), max_size=4))
def test_any_other_words_are_refused_or_read_but_never_crash(words: list[str]) -> None:
    try:
        flags = read_flags(words)
    except ConfigError:
        return
    assert all(name in KNOWN or name.startswith(("policy.", "env.")) for name in flags)


def test_the_method_of_the_intervals_is_one_of_three() -> None:
    assert parse().stats.interval == "wilson"
    assert parse("--stats.interval=jeffreys").stats.interval == "jeffreys"
    with pytest.raises(ConfigError, match=r"--stats.interval must be one of wilson, exact, jeffreys; got 'wald'"):
        parse("--stats.interval=wald")


def test_a_short_flag_is_answered_with_the_long_one_and_its_value() -> None:
    assert "did you mean --eval.n_episodes=5?" in refusal(*BOTH, "-n", "5")
    assert "robotrials show DIR" in refusal(*BOTH, "--view")
    assert "robotrials --version" in refusal("-V")


@pytest.mark.parametrize("value", ["{a: b, c.d: e}", '{"a": "b", "c.d": "e"}', "{a: 'b', \"c.d\": e, }"])
def test_a_map_is_json_or_yaml_in_flow_style(value: str) -> None:
    assert parse(f"--rename_map={value}").rename_map == {"a": "b", "c.d": "e"}
    assert parse("--ray.runtime_env", value).ray.runtime_env == {"a": "b", "c.d": "e"}
