"""Publishing, by the real huggingface_hub client against a stand-in of the Hub's API on this machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from robotrials.stats.intervals import suite_rate
from tests.reporting.hub_server import TOKEN, Hub, serving
from tests.reporting.runs import make_run, mostly

hub_package = pytest.importorskip("huggingface_hub", reason="robotrials[hub]", minversion="1.4")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving(Hub(repos={"me/act": {}, "lab/act": {}})) as running:
        yield running


def robotrials(hub: Hub, home: Path, *words: str, token: str | None = TOKEN) -> subprocess.CompletedProcess[str]:
    """A process of its own, as huggingface_hub reads the Hub's address and the token when it is imported."""
    settings = {"HF_ENDPOINT": hub.url, "HF_HOME": str(home / "hf"), "HF_HUB_DISABLE_XET": "1", "NO_PROXY": "*"}
    if token:
        settings["HF_TOKEN"] = token
    env = {name: value for name, value in os.environ.items() if not name.startswith("HF_")} | settings
    command = [sys.executable, "-m", "robotrials", *words]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)


def published(files: dict[str, bytes], name: str = ".eval_results/metaworld.yaml") -> list[dict[str, object]]:
    content: list[dict[str, object]] = yaml.safe_load(files[name])
    return content


def test_artifacts_videos_and_results_are_one_commit_to_ones_own_repository(hub: Hub, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", video=b"not really mp4")
    done = robotrials(
        hub, tmp_path, "push", str(run), "--repo_id=me/act", "--benchmark_dataset_id=lerobot/metaworld",
        "--eval_result_notes=n_action_steps 50",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    files = hub.repos["me/act"]
    assert sorted(name for name in files if not name.endswith(".mp4")) == [
        ".eval_results/metaworld.yaml",
        "eval/metaworld/eval_config.json",
        "eval/metaworld/eval_info.json",
        "eval/metaworld/metrics.json",
    ]
    assert files["eval/metaworld/videos/easy/push/0.mp4"] == b"not really mp4"
    assert sum(name.endswith(".mp4") for name in files) == 12
    assert json.loads(files["eval/metaworld/eval_info.json"])["overall"]["n_success"] == 6
    easy, hard = published(files)
    assert (easy["dataset"], easy["value"]) == ({"id": "lerobot/metaworld", "task_id": "easy"}, 50.0)
    assert (hard["dataset"], hard["value"]) == ({"id": "lerobot/metaworld", "task_id": "hard"}, 50.0)
    assert easy["source"] == {"url": f"{hub.url}/me/act/tree/main/eval/metaworld", "name": "robotrials eval"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(easy["date"]))
    assert str(easy["notes"]).startswith(
        "n_action_steps 50; success rate in percent, 4 of 8 episodes over 2 tasks of equal weight; 95% interval "
    )
    assert "seeds 1000 to 1003; robotrials 0.1.0, metaworld 3.1.1, mujoco 3.3.0" in str(easy["notes"])
    assert (len(hub.commits), hub.pulls) == (1, [])
    assert done.stdout.endswith(f"16 files, commit: {hub.url}/me/act/commit/{'b' * 40}\n")
    (again,) = [entry for entry in hub_package.parse_eval_result_entries(published(files)) if entry.task_id == "easy"]
    assert again.value == 50.0


@pytest.mark.parametrize(
    ("rule", "counted", "words"),
    [
        ("width<=0.5", 6, "stopped early by --until=width<=0.5 after 6 of 12 planned episodes"),
        ("vs=/home/me/runs/base", 6, "stopped early by --until=vs=base after 6 of 12 planned episodes"),
        ("width<=0.1", None, ""),
    ],
)
def test_the_notes_say_that_a_rule_chose_the_number_of_episodes(
    hub: Hub, tmp_path: Path, rule: str, counted: int | None, words: str
) -> None:
    run = make_run(tmp_path / "run")
    described = json.loads((run / "run.json").read_text())
    described["stopping"] = {"rule": rule, "counted": counted}
    (run / "run.json").write_text(json.dumps(described))
    done = robotrials(hub, tmp_path, "push", str(run), "--repo_id=me/act", "--benchmark_dataset_id=lerobot/metaworld")
    assert done.returncode == 0, done.stderr
    parts = str(published(hub.repos["me/act"])[0]["notes"]).split("; ")
    assert [part for part in parts if part.startswith("stopped")] == ([words] if words else [])


def test_somebody_elses_repository_gets_a_pull_request(hub: Hub, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    done = robotrials(hub, tmp_path, "push", str(run), "--repo_id=lab/act", "--benchmark_dataset_id=lerobot/metaworld")
    assert done.returncode == 0, done.stderr
    assert hub.repos["lab/act"] == {}
    ((repo, files),) = hub.pulls
    assert (repo, len(published(files))) == ("lab/act", 2)
    assert f"pull request: {hub.url}/lab/act/discussions/1" in done.stdout


def test_an_organisation_where_one_may_write_is_ones_own(hub: Hub, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    hub.orgs = [{"name": "lab", "roleInOrg": "write"}]
    assert robotrials(hub, tmp_path, "push", str(run), "--repo_id=lab/act").returncode == 0
    assert (len(hub.pulls), "eval/metaworld/eval_info.json" in hub.repos["lab/act"]) == (0, True)
    hub.orgs = [{"name": "lab", "roleInOrg": "read"}]
    assert robotrials(hub, tmp_path, "push", str(run), "--repo_id=lab/act").returncode == 0
    assert len(hub.pulls) == 1


def test_results_of_other_tasks_stay_and_ours_are_replaced(hub: Hub, tmp_path: Path) -> None:
    def entry(task: str) -> dict[str, object]:
        return {"dataset": {"id": "lerobot/metaworld", "task_id": task}, "value": 1.5}

    hub.repos["me/act"][".eval_results/metaworld.yaml"] = yaml.safe_dump([entry("easy"), entry("medium")]).encode()
    run = make_run(tmp_path / "run")
    words = ["push", str(run), "--repo_id=me/act", "--benchmark_dataset_id=lerobot/metaworld"]
    assert robotrials(hub, tmp_path, *words).returncode == 0
    values = {item["dataset"]["task_id"]: item["value"] for item in published(hub.repos["me/act"])}  # type: ignore[index]
    assert values == {"medium": 1.5, "easy": 50.0, "hard": 50.0}


def test_an_earlier_result_is_replaced_with_its_videos_and_said(hub: Hub, tmp_path: Path) -> None:
    first = make_run(tmp_path / "first", n=6, video=b"first")
    second = make_run(tmp_path / "second", n=4, video=b"second")
    hub.repos["me/act"]["eval/pusht/videos/0.mp4"] = b"other"
    done = robotrials(hub, tmp_path, "push", str(first), "--repo_id=me/act")
    assert "replaces" not in done.stderr
    done = robotrials(hub, tmp_path, "push", str(second), "--repo_id=me/act")
    assert done.returncode == 0, done.stderr
    told = "replaces an earlier result in eval/metaworld: 18 episodes before, 12 now; 6 of its videos removed"
    assert told in done.stderr
    videos = {name: content for name, content in hub.repos["me/act"].items() if name.endswith(".mp4")}
    assert videos.pop("eval/pusht/videos/0.mp4") == b"other"
    assert (len(videos), set(videos.values())) == (12, {b"second"})


def test_a_file_of_results_that_cannot_be_read_is_left_alone(hub: Hub, tmp_path: Path) -> None:
    hub.repos["me/act"][".eval_results/metaworld.yaml"] = b"eval_results: {}\n"
    run = make_run(tmp_path / "run")
    done = robotrials(hub, tmp_path, "push", str(run), "--repo_id=me/act", "--benchmark_dataset_id=lerobot/metaworld")
    assert done.returncode == 1
    assert "cannot be read, so it is left alone: it holds a dict, not a list" in done.stderr
    assert hub.commits == []


def test_the_model_cards_index_keeps_the_card(hub: Hub, tmp_path: Path) -> None:
    hub.repos["me/act"]["README.md"] = b"---\nlicense: mit\n---\n\n# My model\n"
    run = make_run(tmp_path / "run")
    words = ["push", str(run), "--repo_id=me/act", "--model_index", "--benchmark_task_id=all"]
    for _ in range(2):  # a second time replaces, and does not add
        assert robotrials(hub, tmp_path, *words).returncode == 0
    card = hub_package.ModelCard(hub.repos["me/act"]["README.md"].decode())
    assert card.data.license == "mit"
    assert card.text.strip() == "# My model"
    (result,) = card.data.eval_results
    assert (result.metric_value, result.dataset_config) == (50.0, "all")
    _, *bounds = suite_rate([(4, 4), (0, 4), (2, 4)])
    assert result.metric_args["interval_95"] == pytest.approx([100 * bound for bound in bounds], abs=1e-4)


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (lambda e: mostly(e) if e.id else None, "1 episodes were not run"),
        (lambda e: mostly(e) if e.id else "boom", "1 ended in an error"),
        (lambda e: None, "12 episodes were not run"),
    ],
)
def test_a_partial_run_is_refused_and_never_written_as_zero(
    hub: Hub, tmp_path: Path, outcome: object, message: str
) -> None:
    run = make_run(tmp_path / "run", outcome)  # type: ignore[arg-type]
    words = ["push", str(run), "--repo_id=me/act", "--benchmark_dataset_id=lerobot/metaworld"]
    for more in ([], [f"--dry_run={tmp_path / 'out'}"]):
        done = robotrials(hub, tmp_path, *words, *more)
        assert done.returncode == 1
        assert message in done.stderr
        assert f"robotrials resume {run}" in done.stderr
    assert hub.repos["me/act"] == {}
    assert not (tmp_path / "out").exists()


def test_a_dry_run_writes_the_same_files_to_a_folder_without_network(hub: Hub, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", video=b"mp4")
    words = ["push", str(run), "--repo_id=me/act", "--benchmark_dataset_id=lerobot/metaworld", "--model_index"]
    assert robotrials(hub, tmp_path, *words).returncode == 0
    offline = Hub(url="http://127.0.0.1:9")
    done = robotrials(offline, tmp_path, *words, f"--dry_run={tmp_path / 'out'}", token=None)
    assert done.returncode == 0, done.stderr
    written = {
        f.relative_to(tmp_path / "out").as_posix(): f.read_bytes() for f in (tmp_path / "out").rglob("*") if f.is_file()
    }
    same = {
        name: content.replace(hub.url.encode(), offline.url.encode()) for name, content in hub.repos["me/act"].items()
    }
    assert written == same


@pytest.mark.parametrize(
    ("flags", "token", "message"),
    [
        (["--repo_id=me/nothing"], TOKEN, "there is no model repository me/nothing"),
        ([], TOKEN, "write --repo_id=USER/MODEL"),
        (["--repo_id=act"], TOKEN, "--repo_id=USER/act"),
        (["--repo_id=a b/c"], TOKEN, "is no repository's name"),
        (["--repo_id=me/act", "--benchmark_dataset_id=a b"], TOKEN, "--benchmark_dataset_id=a b is no repository's"),
        (["--repo_id=me/act", "--benchmark_dataset_id=toys"], TOKEN, "--benchmark_dataset_id=USER/toys"),
        (["--repo_id=me/act", "--eval_result_source_url=javascript:x"], TOKEN, "is no link"),
        (["--repo_id=me/act", "--eval_result_source_url=http://"], TOKEN, "is no link"),
        (["--repo_id=me/act"], None, "nobody is logged in to the Hub"),
        (["--repo_id=me/act"], "hf_wrong", "the Hub refused (401)"),
        (["--repo_id=me/act", "--create_pr=perhaps"], TOKEN, "--create_pr must be true or false"),
    ],
)
def test_what_cannot_be_pushed_is_said_in_one_line(
    hub: Hub, tmp_path: Path, flags: list[str], token: str | None, message: str
) -> None:
    done = robotrials(hub, tmp_path, "push", str(make_run(tmp_path / "run")), *flags, token=token)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert hub.commits == []


def test_a_refused_commit_says_so(hub: Hub, tmp_path: Path) -> None:
    hub.refuse_commits = True
    done = robotrials(hub, tmp_path, "push", str(make_run(tmp_path / "run")), "--repo_id=me/act")
    assert done.returncode == 1
    assert "(403)" in done.stderr
    assert "nothing was published" in done.stderr


def toy_eval(run: Path, *more: str) -> list[str]:
    return [
        "eval", "--policy.type=tests.toy:Seer", "--env.type=tests.toy:Toy", "--eval.n_episodes=2",
        "--eval.batch_size=1", f"--output_dir={run}", *more,
    ]  # fmt: skip


def test_eval_pushes_when_it_is_done_and_asks_before_it_begins(hub: Hub, tmp_path: Path) -> None:
    push = ["--push_to_hub=true", "--repo_id=me/act", "--benchmark_dataset_id", "me/toys"]
    done = robotrials(hub, tmp_path, *toy_eval(tmp_path / "run", *push))
    assert done.returncode == 0, done.stderr
    (entry,) = published(hub.repos["me/act"], ".eval_results/toys.yaml")
    assert entry["dataset"] == {"id": "me/toys", "task_id": "toys"}
    assert "eval/Toy/eval_info.json" in hub.repos["me/act"]
    refused = robotrials(hub, tmp_path, *toy_eval(tmp_path / "other", "--push_to_hub=true", "--repo_id=me/nothing"))
    assert refused.returncode == 1
    assert "there is no model repository me/nothing" in refused.stderr
    assert not (tmp_path / "other").exists()


def test_a_partial_eval_is_not_pushed(hub: Hub, tmp_path: Path) -> None:
    words = toy_eval(tmp_path / "run", "--env.trouble=raise@a/1", "--eval.max_attempts=1")
    done = robotrials(hub, tmp_path, *words, "--push_to_hub", "--repo_id=me/act")
    assert done.returncode == 2
    assert f"not pushed, because it is partial; later: robotrials push {tmp_path / 'run'}" in done.stderr
    assert hub.commits == []


def test_flags_of_a_push_without_a_push_are_refused(hub: Hub, tmp_path: Path) -> None:
    done = robotrials(hub, tmp_path, *toy_eval(tmp_path / "run", "--model_index"))
    assert done.returncode == 1
    assert "--model_index means something only with --push_to_hub=true" in done.stderr


def test_flags_of_a_push_in_a_file_are_refused_by_name(hub: Hub, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("push_to_hub: true\nrepo_id: me/act\n")
    done = robotrials(hub, tmp_path, *toy_eval(tmp_path / "run", f"--config_path={file}"))
    assert done.returncode == 1
    assert "run.yaml: push_to_hub cannot stand in a file" in done.stderr
    assert "write --push_to_hub=... on the command line" in done.stderr
    assert not (tmp_path / "run").exists()
