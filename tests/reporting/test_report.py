from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from robotrials.errors import ConfigError, LedgerError
from robotrials.reporting.loading import distinct_labels, policy_name
from robotrials.reporting.report import write_report
from robotrials.results.record import EndReason
from robotrials.stats.intervals import clopper_pearson, suite_rate, wilson
from tests.engine.toy_runs import run as run_engine
from tests.engine.toy_runs import toy_config
from tests.reporting.runs import make_run, mostly, read_data

HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=alert(1)>"


def words_of(page: bytes) -> str:
    """What can be read on the page before any script runs."""
    visible = re.sub(r"<(script|style)\b.*?</\1>", "", page.decode(), flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", visible).replace("\u2009", " ").replace("\u00a0", " "))


def test_the_page_says_rate_interval_counts_and_errors_before_any_script_runs(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", lambda e: "RuntimeError: boom" if e.id == 1 else mostly(e))
    made = write_report([run])
    assert made.path == run / "report.html"
    page = words_of(made.path.read_bytes())
    rate, low, high = suite_rate([(3, 3), (0, 4), (2, 4)])
    assert f"{100 * rate:.1f} % 95 % interval {100 * low:.1f} – {100 * high:.1f} %" in page
    assert "5 of 11 finished episodes" in page
    assert "1 episode ended in an error. The rate is over finished episodes only." in page
    assert "RuntimeError: boom" in page
    assert "metaworld 3.1.1" in page
    low, high = wilson(0, 4)
    assert f"0.0\u00a0%, interval {100 * low:.1f}\u2009–\u2009{100 * high:.1f}\u00a0%" in made.path.read_text()


def test_tasks_stand_lowest_rate_first(tmp_path: Path) -> None:
    page = write_report([make_run(tmp_path / "run")]).path.read_text()
    assert re.findall(r'data-task="([^"]*)"', page) == ["easy/reach", "hard/hammer", "easy/push"]


def test_a_partial_run_says_what_was_not_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", lambda e: mostly(e) if e.index < 3 else None)
    assert "Partial: 3 of 12 planned episodes not run." in words_of(write_report([run]).path.read_bytes())


def test_the_means_say_which_task_they_lack(tmp_path: Path) -> None:
    whole = words_of(write_report([make_run(tmp_path / "whole")]).path.read_bytes())
    assert "every one of the 3 tasks weighs the same" in whole
    run = make_run(tmp_path / "run", lambda e: "boom" if e.task == "hammer" else mostly(e))
    page = words_of(write_report([run]).path.read_bytes())
    assert "every one of" not in page
    assert "The mean is over 2 of 3 tasks: nothing of hard/hammer has finished." in page


def test_a_run_without_any_result_has_a_page(tmp_path: Path) -> None:
    page = write_report([make_run(tmp_path / "run", lambda e: None)]).path.read_bytes()
    assert "Partial: 12 of 12 planned episodes not run." in words_of(page)
    assert read_data(page)["runs"][0]["episodes"]["task"] == []


def test_text_of_tasks_policies_and_errors_is_never_markup(tmp_path: Path) -> None:
    tasks = [("easy", HOSTILE), ("hard", 'a"b')]
    run = make_run(tmp_path / "run", lambda e: f"{HOSTILE} {e.id}", tasks, policy=HOSTILE, instruction=HOSTILE)
    page = write_report([run]).path.read_bytes()
    assert HOSTILE.encode() not in page
    assert b"<img" not in page
    assert page.count(b"<script") == 2
    assert read_data(page)["runs"][0]["tasks"][0]["name"] == HOSTILE


def test_the_policy_allows_this_style_and_script_and_nothing_else(tmp_path: Path) -> None:
    page = write_report([make_run(tmp_path / "run")]).path.read_text()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src &#x27;none&#x27;;")
    assert "unsafe" not in policy
    for name, opening in (("style-src", "<style>"), ("script-src", "<script>")):
        content = page.partition(opening)[2].partition(f"</{opening[1:]}")[0]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{name} &#x27;sha256-{digest}&#x27;" in policy
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page


def test_the_data_holds_every_episode_and_its_place(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", lambda e: "boom" if e.id in (1, 2) else mostly(e), video=b"mp4")
    data = read_data(write_report([run]).path.read_bytes())
    (entry,) = data["runs"]
    episodes = entry["episodes"]
    assert data["ends"] == ["failure", "exception", "time_limit", "error", "success"]
    assert episodes["end"] == [4, 3, 3, 4, 2, 2, 2, 2, 4, 2, 4, 2]
    assert episodes["seed"] == [1000, 1001, 1002, 1003] * 3
    assert episodes["task"] == [0] * 4 + [1] * 4 + [2] * 4
    assert episodes["video"][4] == "videos/easy/reach/0.mp4"
    assert entry["errors"] == ["boom"]
    assert episodes["error"] == [None, 0, 0, None, *[None] * 8]


def test_videos_are_linked_from_where_the_page_lies(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a run", video=b"mp4")
    made = write_report([run], tmp_path / "pages" / "one.html")
    data = read_data(made.path.read_bytes())
    assert data["runs"][0]["episodes"]["video"][0] == "../a%20run/videos/easy/push/0.mp4"
    assert (made.linked, made.embedded) == (12, 0)


def test_videos_are_embedded_failures_first_up_to_the_limit(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", video=b"x" * 100)
    made = write_report([run], embed_bytes=650)
    videos = read_data(made.path.read_bytes())["runs"][0]["episodes"]["video"]
    assert [video for video in videos if video.startswith("#")] == ["#0/4", "#0/5", "#0/6", "#0/7", "#0/9", "#0/11"]
    assert (made.embedded, made.linked) == (6, 6)
    assert base64.b64encode(b"x" * 100) in made.path.read_bytes()


def test_a_video_outside_the_run_or_gone_is_not_linked(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", video=b"mp4")
    (tmp_path / "secret.mp4").write_bytes(b"secret")
    (run / "videos/easy/push/0.mp4").unlink()
    (run / "videos/easy/push/1.mp4").unlink()
    (run / "videos/easy/push/1.mp4").symlink_to(tmp_path / "secret.mp4")
    made = write_report([run], embed_bytes=10**6)
    assert read_data(made.path.read_bytes())["runs"][0]["episodes"]["video"][:2] == [None, None]
    assert base64.b64encode(b"secret") not in made.path.read_bytes()


def test_several_runs_share_a_row_a_task_and_differences_are_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make_run(tmp_path / "first")
    second = make_run(tmp_path / "second", lambda e: EndReason.SUCCESS, policy="expert")
    monkeypatch.chdir(tmp_path)
    made = write_report([first, second])
    assert made.path == tmp_path / "report.html"
    page = made.path.read_text()
    assert "<h1>act, expert on metaworld</h1>" in page
    assert '<tr class="differs"><th scope="row">policy.type</th><td>act</td><td>expert</td></tr>' in page
    assert '<tr><th scope="row">seed</th><td>1000</td><td>1000</td></tr>' in page
    assert page.count('class="dot run1"') == 1 + 3 + 1  # its card, every task, the one suite of several tasks
    assert "not over the same episodes" not in page


def test_runs_over_other_episodes_are_not_said_to_compare(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / "first"), make_run(tmp_path / "second", seed=7)]
    assert "not over the same episodes" in write_report(runs, tmp_path / "both.html").path.read_text()


def test_an_inexact_run_and_a_mixed_run_say_so(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    text = (run / "run.json").read_text().replace('"exact": true', '"exact": false')
    (run / "run.json").write_text(text.replace('"mixed": []', '"mixed": [["x: 1 -> 2"]]'))
    page = words_of(write_report([run]).path.read_bytes())
    assert "Not exact (--eval.exact=false)" in page
    assert "Mixed (--allow_mixed=true)" in page


def test_many_tasks_show_the_lowest_rates_and_count_the_others(tmp_path: Path) -> None:
    tasks = [("many", f"t{i}") for i in range(450)]
    page = write_report([make_run(tmp_path / "run", tasks=tasks, n=1)]).path.read_text()
    assert page.count("data-task=") == 400
    assert "The 400 lowest rates; 50 other tasks are in eval_info.json." in page


def test_a_file_of_somebody_else_is_not_written_over_but_a_report_is(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    mine = tmp_path / "thesis.html"
    mine.write_text("<html>my thesis</html>")
    with pytest.raises(ConfigError, match="no page of robotrials"):
        write_report([run], mine)
    assert mine.read_text() == "<html>my thesis</html>"
    assert write_report([run]).size == write_report([run]).size


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with pytest.raises(ConfigError, match="not a run directory"):
        write_report([tmp_path])
    with pytest.raises(ConfigError, match="given twice"):
        write_report([run, run / ".." / "run"])
    (run / "ledger.sqlite").unlink()
    with pytest.raises(LedgerError, match="no ledger"):
        write_report([run])


def test_a_real_run_has_a_page_too(tmp_path: Path) -> None:
    run_engine(toy_config(tmp_path / "run", trouble="raise@a/1", max_attempts=1, n_episodes=2, record="all"))
    made = write_report([tmp_path / "run"])
    page = words_of(made.path.read_bytes())
    assert "RuntimeError: the physics exploded" in page
    assert made.linked == 3
    assert read_data(made.path.read_bytes())["runs"][0]["episodes"]["seed"] == [1000, 1001, 1000, 1001]


def test_a_shard_has_a_page_even_if_it_has_no_episode_of_some_tasks(tmp_path: Path) -> None:
    config = toy_config(tmp_path / "run", tasks="a,b,c,d", n_episodes=1, num_shards=2, shard_id=1)
    run_engine(config)
    (run,) = read_data(write_report([tmp_path / "run"]).path.read_bytes())["runs"]
    assert [task["name"] for task in run["tasks"]] == ["b", "c"]
    assert run["episodes"]["task"] == [0, 1]


def test_only_the_episodes_that_count_of_a_run_that_stopped_early_are_in_its_page(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    described = json.loads((run / "run.json").read_text())
    described["stopping"] = {"rule": "width<=0.5", "counted": 6, "words": "valid interval [9.0, 59.0]"}
    (run / "run.json").write_text(json.dumps(described))
    page = write_report([run]).path.read_bytes()
    assert "3 of 6 finished episodes" in words_of(page)
    assert "Stopped early (--until=width&lt;=0.5)" in words_of(page)
    assert "suppose a number of episodes fixed beforehand" in words_of(page)
    assert "What decided: valid interval [9.0, 59.0]." in words_of(page)
    assert read_data(page)["runs"][0]["episodes"]["index"] == [0, 1, 0, 1, 0, 1]


def test_a_run_whose_rule_was_never_met_is_not_said_to_have_stopped_early(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    described = json.loads((run / "run.json").read_text())
    described["stopping"] = {"rule": "width<=0.1", "counted": None, "planned": 12}
    (run / "run.json").write_text(json.dumps(described))
    page = words_of(write_report([run]).path.read_bytes())
    assert "6 of 12 finished episodes" in page
    assert "Stopped early" not in page


def test_the_intervals_are_those_that_the_run_asked_for(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", tasks=[("easy", "push")])
    text = (run / "run.json").read_text().replace('"config": {', '"config": {"stats": {"interval": "exact"},', 1)
    (run / "run.json").write_text(text)
    low, _ = clopper_pearson(4, 4)
    assert f"95 % interval {100 * low:.1f} – 100.0 %" in words_of(write_report([run]).path.read_bytes())


def test_labels_are_the_shortest_that_tell_runs_apart() -> None:
    paths = [Path("/runs/a/seed0"), Path("/runs/b/seed0")]
    assert distinct_labels(paths) == ["a/seed0", "b/seed0"]
    assert distinct_labels([Path("/runs/a"), Path("/runs/b")]) == ["a", "b"]


@pytest.mark.parametrize(
    ("policy", "name"),
    [
        ({"type": "expert", "path": None}, "expert"),
        ({"type": "my.module:Clever"}, "Clever"),
        ({"type": "onnx", "path": "builtin:metaworld-bc"}, "metaworld-bc"),
        ({"type": "act", "path": "/runs/act_aloha/checkpoints/last/pretrained_model"}, "act_aloha"),
        ({"type": "smolvla", "path": "lerobot/smolvla_base"}, "lerobot/smolvla_base"),
    ],
)
def test_a_policy_is_called_what_people_call_it(policy: dict[str, str], name: str) -> None:
    assert policy_name(policy) == name
