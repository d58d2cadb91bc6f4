from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from robotrials.cli.main import main
from robotrials.errors import ConfigError, NotInstalledError
from robotrials.suites.commands import SuiteSettings, count_gpus, eval_words, parse_forwarded, train_command
from robotrials.suites.registry import SUITES, Suite
from robotrials.suites.slurm import batch_script
from tests.suites.checkpoints import write_checkpoint

PUSHT = SUITES["pusht"]


def settings(tmp_path: Path, **changes: object) -> SuiteSettings:
    return SuiteSettings(**{"policy_name": "act", "output_dir": tmp_path, "dry_run": True, "gpus": 0, **changes})  # type: ignore[arg-type]


def test_a_fresh_training_has_what_the_suite_recommends(tmp_path: Path) -> None:
    command = train_command(PUSHT, settings(tmp_path, hub_user="me"), [])
    flags = parse_forwarded([word for word in command if word.startswith("--")])
    assert command[1] == "launch"
    assert flags["dataset.repo_id"] == "lerobot/pusht"
    assert flags["policy.type"] == "act"
    assert flags["policy.repo_id"] == "me/act_pusht"
    assert flags["policy.push_to_hub"] == "true"
    assert flags["steps"] == "200000"
    assert flags["output_dir"] == str(tmp_path / "train/act_pusht")


@pytest.mark.parametrize(
    ("gpus", "launch"),
    [(0, ["--cpu", "--num_processes=1"]), (1, ["--num_processes=1"]), (4, ["--multi_gpu", "--num_processes=4"])],
)
def test_it_is_launched_on_the_cpu_one_gpu_or_many(tmp_path: Path, gpus: int, launch: list[str]) -> None:
    command = train_command(PUSHT, settings(tmp_path, gpus=gpus), [])
    assert command[2 : 2 + len(launch)] == launch
    assert command[2 + len(launch)].endswith("lerobot-train")
    assert ("--policy.device=cpu" in command) == (gpus == 0)


def test_without_a_user_nothing_is_pushed(tmp_path: Path) -> None:
    assert "--policy.push_to_hub=false" in train_command(PUSHT, settings(tmp_path), [])


def test_what_is_forwarded_overrides_once_and_adds(tmp_path: Path) -> None:
    command = train_command(PUSHT, settings(tmp_path), ["--steps=5", "--wandb.enable", "true", "--policy.path=a/b"])
    assert [word for word in command if word.startswith("--steps")] == ["--steps=5"]
    assert "--wandb.enable=true" in command
    assert "--save_freq=1" in command  # a fifth of the steps that are meant
    assert not any(word.startswith("--policy.type") for word in command)


def test_a_training_with_a_checkpoint_is_gone_on_with(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "train/act_pusht", 10)
    flags = train_command(PUSHT, settings(tmp_path, steps=50), [])[-3:]
    assert flags == [
        f"--config_path={folder}/pretrained_model/train_config.json",
        "--resume=true",
        "--steps=50",
    ]


def test_a_missing_trainer_is_named_with_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(NotInstalledError, match="lerobot\\[training\\]"):
        train_command(PUSHT, settings(tmp_path, dry_run=False, train_python=str(tmp_path / "python")), [])


def test_all_tasks_are_evaluated_in_one_plan(tmp_path: Path) -> None:
    words = eval_words(SUITES["libero"], settings(tmp_path), "x", "000010", ["--seed=3", "--eval.n_episodes=2"])
    flags = parse_forwarded(words)
    assert flags["env.task"] == "libero_spatial,libero_object,libero_goal,libero_10"
    assert (flags["seed"], flags["eval.n_episodes"]) == ("3", "2")
    assert flags["output_dir"] == str(tmp_path / "eval/act_libero/000010")


def test_what_robotrials_has_no_benchmark_for_goes_through_lerobots_environments(tmp_path: Path) -> None:
    suite = Suite("mine", "a/b", {"type": "some_plugin", "task": "lift", "obs_type": "pixels"})
    flags = parse_forwarded(eval_words(suite, settings(tmp_path), "x", "1", []))
    assert (flags["env.type"], flags["env.config"], flags["env.task"]) == ("lerobot_env", "some_plugin", "lift")
    assert flags["env.options"] == '{"obs_type": "pixels"}'


def test_values_of_a_yaml_file_reach_both_programs_as_they_read_them(tmp_path: Path) -> None:
    given = {"a": None, "b": True, "c": [1, 2], "d": {"e": "f"}, "g": 0.5}
    suite = Suite("mine", "a/b", {"type": "pusht", "task": ["x", "y"]}, train=given, eval=given)
    words = train_command(suite, settings(tmp_path), [])
    train = parse_forwarded([word for word in words if word.startswith("--")])
    assert [train[name] for name in "abcdg"] == ["null", "true", "[1, 2]", '{"e": "f"}', "0.5"]
    evaluate = parse_forwarded(eval_words(suite, settings(tmp_path), "x", "1", []))
    assert [evaluate[name] for name in "abcdg"] == ["null", "true", "1,2", '{"e": "f"}', "0.5"]
    assert evaluate["env.task"] == "x,y"


def test_words_after_the_dashes_must_be_flags_given_once() -> None:
    assert parse_forwarded(["--a=1", "--b", "2", "--c"]) == {"a": "1", "b": "2", "c": "true"}
    for words, message in ((["x"], "unexpected 'x'"), (["--a=1", "--a=2"], "given twice")):
        with pytest.raises(ConfigError, match=message):
            parse_forwarded(words)


def test_visible_gpus_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    for visible, n in (("", 0), ("-1", 0), ("0", 1), ("1,3", 2)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert count_gpus() == n


def test_a_dry_run_prints_the_commands_of_training_and_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["suite", "all", "pusht", "--policy_name=act", "--gpus=0", f"--output_dir={tmp_path}", "--dry_run"]
    assert main([*words, "--", "--steps=5", "--", "--eval.n_episodes=2"]) == 0
    train, evaluate = map(shlex.split, capsys.readouterr().out.splitlines())
    assert train[1] == "launch"
    assert "--steps=5" in train
    assert evaluate[:2] == ["robotrials", "eval"]
    assert f"--policy.path={tmp_path}/train/act_pusht/checkpoints/000005/pretrained_model" in evaluate
    assert "--eval.n_episodes=2" in evaluate
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--eval.n_episods=2"], "did you mean --eval.n_episodes?"),
        (["--env.tsak=x"], "unknown option --env.tsak"),
        (["--env.type=metaworld", "--env.task=nope"], "no task or group nope"),
        (["--eval.record=some"], "--eval.record"),
        (["--eval.n_episodes=0"], "--eval.n_episodes must be at least 1"),
        (["--policy.n_action_steps=0"], "--policy.n_action_steps must be at least 1"),
    ],
)
def test_what_the_evaluation_would_refuse_is_refused_before_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    monkeypatch.setattr("robotrials.cli.suite._call", lambda command: pytest.fail("it trained"))
    monkeypatch.setattr("robotrials.run.prepare.look_up", lambda env: None)
    assert main(["suite", "all", "pusht", f"--output_dir={tmp_path}", "--", "--", *words]) == 1
    assert message in capsys.readouterr().err


def test_a_simulator_that_is_missing_is_said_before_the_training_but_not_in_a_dry_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(env: object) -> None:
        raise NotInstalledError("no gym-pusht")

    monkeypatch.setattr("robotrials.run.prepare.look_up", missing)
    words = ["suite", "all", "pusht", "--gpus=0", f"--output_dir={tmp_path}"]
    assert main(words) == 1
    assert "no gym-pusht" in capsys.readouterr().err
    assert main([*words, "--dry_run"]) == 0


def test_a_dry_run_checks_the_tasks_where_the_simulator_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("robotrials.run.prepare.look_up", lambda env: None)
    words = ["suite", "all", "metaworld", "--gpus=0", f"--output_dir={tmp_path}", "--dry_run"]
    assert main([*words, "--", "--", "--env.task=reach-v33"]) == 1
    assert "reach-v33" in capsys.readouterr().err


def test_nothing_to_evaluate_is_said_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suite", "eval", "pusht", f"--output_dir={tmp_path}"]) == 1
    assert "robotrials suite train pusht" in capsys.readouterr().err


def test_wrong_words_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        ([], "one of list, train, eval, all"),
        (["evl", "pusht"], "did you mean eval?"),
        (["eval"], "eval of what?"),
        (["all", "pusht,pusht"], "two suites have one name"),
        (["train", "pusht", "--gpu=1"], "did you mean --gpus?"),
        (["train", "pusht", "--gpus=-2"], "at least -1"),
        (["train", "pusht", "--policy_name=me/act"], "letters, digits"),
        (["train", "pusht", "--hub_user=me/act"], "without a repository"),
        (["train", "pusht", "--train_python=/nope"], "--train_python=/nope: no such interpreter"),
        (["train", "pusht", "--dry_run", "--", "--steps=many"], "--steps after -- must be a whole number, got 'many'"),
        (["train", "pusht", "--", "--a=1", "--", "--b=1"], "one part after --"),
    ):
        assert main(["suite", *words]) == 1
        assert message.lower() in capsys.readouterr().err.lower()


def test_the_list_says_which_suites_go_through_the_bridge_where_one_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["suite", "list"]) == 0
    known = capsys.readouterr().out
    assert all(name in known for name in SUITES)
    assert "through" not in known
    file = tmp_path / "mine.yaml"
    file.write_text("dataset: a/b\nenv: {type: some_plugin}\n")
    assert main(["suite", "list", str(file)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["mine", "a/b", "all", "50", "100,000", "lerobot_env"]


def test_the_batch_script_is_bash_that_repeats_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suite", "all", "libero,pusht", "--gpus=4", "--slurm", "--", "--steps=5"]) == 0
    script = capsys.readouterr().out
    assert "#SBATCH --gpus-per-node=4" in script
    assert "robotrials suite all libero,pusht --gpus=4 -- --steps=5 &" in script
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    assert main(["suite", "all", "pusht", "--dry_run", "--slurm=true", "--gpus=0", "--", "--dry_run"]) == 0
    assert "robotrials suite all pusht --gpus=0 -- --dry_run &" in capsys.readouterr().out
    assert main(["suite", "eval", "pusht", "--slurm", "--", "--policy.path=you/act_x"]) == 0
    assert "--job-name=you-act_x_pusht" in capsys.readouterr().out
    assert "gpus" not in batch_script("x", 0, ["train", "pusht"]).split("set -euo")[0]


@pytest.mark.parametrize(
    ("words", "folder"),
    [
        (["--policy.path=you/act_x"], "eval/you-act_x_pusht/given"),
        (["--policy.type=random"], "eval/random_pusht/given"),
        (["--policy.path=builtin:metaworld-bc"], "eval/builtin-metaworld-bc_pusht/given"),
    ],
)
def test_results_of_a_named_policy_have_its_name(
    words: list[str], folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["suite", "eval", "pusht", f"--output_dir={tmp_path}", "--dry_run", "--", *words]) == 0
    assert f"--output_dir={tmp_path / folder}" in capsys.readouterr().out.split()
