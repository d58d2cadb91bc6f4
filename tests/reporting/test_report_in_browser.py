"""The report as people use it, in Chromium: sorted, filtered, watched, on a phone, in the dark, on paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from robotrials.plan.episode import EpisodeSpec
from robotrials.reporting.report import write_report
from robotrials.results.record import EndReason
from tests.reporting.browser import chromium, horizontal_scroll, opened, until
from tests.reporting.runs import make_run, mostly, short_video
from tests.reporting.test_report import HOSTILE

PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return short_video(tmp_path_factory.mktemp("video") / "short.mp4")


def with_an_error(episode: EpisodeSpec) -> str | EndReason:
    return f"RuntimeError: {HOSTILE}\nat line 3" if (episode.task, episode.index) == ("push", 1) else mostly(episode)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, video: bytes) -> Path:
    """12 episodes, all with video: 5 successes, 6 time limits, 1 error."""
    return write_report([make_run(tmp_path_factory.mktemp("one") / "run", with_an_error, video=video)]).path


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory, video: bytes) -> Path:
    folder = tmp_path_factory.mktemp("two")
    runs = [make_run(folder / "learned", video=video)]
    runs.append(make_run(folder / "expert", lambda e: EndReason.SUCCESS, policy="expert", video=video))
    return write_report(runs, folder / "report.html").path


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tasks = [("many", f"task-{i:02}") for i in range(50)]
    return write_report([make_run(tmp_path_factory.mktemp("large") / "run", tasks=tasks, n=100)]).path


def task_names(page: Any) -> list[str]:
    return [
        row.split("/")[-1]
        for row in page.eval_on_selector_all("#tasks .tasks tr", "all => all.map(r => r.dataset.name)")
    ]


def cards(page: Any) -> list[str]:
    return page.eval_on_selector_all("#gallery .shot", "all => all.map(c => c.getAttribute('aria-label'))")  # type: ignore[no-any-return]


def plays(page: Any, selector: str) -> bool:
    """Whether the video goes on by itself until it has shown a third of a second."""
    until(page, "s => document.querySelector(s)?.currentTime > 0.3", selector)
    return not page.eval_on_selector(selector, "v => v.paused")


def test_tasks_are_sorted_by_a_click_on_a_heading(browser: Any, report: Path) -> None:
    with opened(browser, report) as page:
        assert task_names(page) == ["reach", "hammer", "push"]
        page.click("#tasks th:nth-child(2) button")
        assert task_names(page) == ["push", "hammer", "reach"]
        assert page.get_attribute("#tasks th:nth-child(2)", "aria-sort") == "descending"
        page.click("#tasks th:nth-child(1) button")
        assert task_names(page) == ["push", "reach", "hammer"]


def test_failures_come_first_and_errors_are_apart(browser: Any, report: Path) -> None:
    with opened(browser, report) as page:
        shown = cards(page)
        assert [card.rsplit(", ", 1)[1] for card in shown] == ["time limit"] * 6 + ["error"] + ["success"] * 5
        assert shown[0] == "easy/reach, episode 0, time limit"
        page.click("[data-outcome=failure]")
        assert len(cards(page)) == 6
        page.click("[data-outcome=error]")
        assert cards(page) == ["easy/push, episode 1, error"]
        assert page.inner_text("#shown") == "1 shown, 1 with video"


def test_a_tasks_name_shows_its_failures(browser: Any, report: Path) -> None:
    with opened(browser, report) as page:
        page.click('a[data-task="hard/hammer"]')
        assert cards(page) == ["hard/hammer, episode 1, time limit", "hard/hammer, episode 3, time limit"]
        assert page.input_value("#filter-task") == "hard/hammer"
        page.select_option("#filter-task", "")
        page.click("[data-outcome=all]")
        page.fill("#filter-text", "1003")
        assert len(cards(page)) == 3


def test_the_filters_are_in_the_address_and_come_back_from_it(browser: Any, report: Path, two_runs: Path) -> None:
    with opened(browser, report) as page:
        page.click("[data-outcome=failure]")
        page.select_option("#filter-task", "hard/hammer")
        page.click("[data-view=table]")
        page.fill("#filter-text", "1003")
        address = page.evaluate("location.hash")
        assert address == "#outcome=failure&task=hard/hammer&find=1003&view=table"
        page.click("#table tbody tr[data-at='0']")
        assert (
            page.evaluate("location.hash")
            == "#episode=hard/hammer/3&outcome=failure&task=hard/hammer&find=1003&view=table"
        )
        page.keyboard.press("Escape")
        until(page, "location.hash === '#outcome=failure&task=hard/hammer&find=1003&view=table'")
    with opened(browser, report, address) as page:
        assert page.inner_text("#shown") == "1 shown, 1 with video"
        assert page.input_value("#filter-task") == "hard/hammer"
        assert page.input_value("#filter-text") == "1003"
        assert page.get_attribute("[data-view=table]", "aria-pressed") == "true"
        page.click("nav a[href='#section-time']")
        assert page.inner_text("#shown") == "1 shown, 1 with video"
    with opened(browser, two_runs, "#of=1&outcome=nonsense") as page:
        assert page.inner_text("#shown") == "12 shown, 12 with video"
        assert page.input_value("#filter-run") == "1"


def test_a_command_is_copied_by_a_click(browser: Any, report: Path) -> None:
    with opened(browser, report, permissions=["clipboard-read", "clipboard-write"]) as page:
        page.click("#section-commands button >> nth=0")
        until(page, "document.getElementById('copied').textContent === 'copied'")
        assert page.evaluate("navigator.clipboard.readText()").startswith("robotrials eval --policy.type=act")


def test_a_video_plays_and_the_arrows_go_on(browser: Any, report: Path) -> None:
    with opened(browser, report) as page:
        page.click("#gallery .shot >> nth=0")
        assert plays(page, "#viewer video")
        assert page.evaluate("location.hash") == "#episode=easy/reach/0"
        page.keyboard.press("ArrowRight")
        page.wait_for_selector("#viewer-title >> text=episode 1")  # the page hears of its new address a moment later
        assert page.evaluate("location.hash") == "#episode=easy/reach/1"
        page.keyboard.press("Escape")
        until(page, "location.hash === ''")
        assert not page.evaluate("document.getElementById('viewer').open")


def test_cards_show_the_end_of_their_videos(browser: Any, report: Path) -> None:
    with opened(browser, report) as page:
        page.locator("#gallery").scroll_into_view_if_needed()
        until(page, "document.querySelector('#gallery video').currentTime > 2.5")


def test_a_link_opens_its_episode_and_hostile_text_stays_text(browser: Any, report: Path) -> None:
    with opened(browser, report, "#episode=easy/push/1") as page:
        assert page.inner_text("#viewer pre") == f"RuntimeError: {HOSTILE}\nat line 3"
        assert page.evaluate("window.pwned") is None
        assert page.locator("#viewer img, main img").count() == 0


def test_a_link_to_an_episode_that_is_not_there_opens_the_page(browser: Any, report: Path) -> None:
    with opened(browser, report, "#episode=no/such/1") as page:
        assert len(cards(page)) == 12


def test_runs_stand_side_by_side(browser: Any, two_runs: Path) -> None:
    with opened(browser, two_runs, "#episode=easy/reach/0&run=0") as page:
        assert plays(page, "#viewer figure:nth-child(1) video")
        assert plays(page, "#viewer figure:nth-child(2) video")
        assert page.inner_text("#viewer figure:nth-child(2) figcaption").split() == ["expert", "success"]
        page.keyboard.press("Escape")
        page.select_option("#filter-run", "1")
        assert page.inner_text("#shown") == "12 shown, 12 with video"
        page.click("[data-outcome=differs]")
        assert [card.split(",")[0] for card in cards(page)] == ["easy/reach"] * 4 + ["hard/hammer"] * 2
        assert page.locator("#tasks .tasks tr:first-child .dot").count() == 2


def test_an_embedded_video_plays_in_a_page_that_was_sent_alone(browser: Any, tmp_path: Path, video: bytes) -> None:
    run = make_run(tmp_path / "run", video=video)
    page_file = write_report([run], embed_bytes=50_000_000).path.rename(tmp_path / "alone.html")
    with opened(browser, page_file, "#episode=easy/push/0") as page:
        assert plays(page, "#viewer video")
        assert page.get_attribute("#viewer video", "src").startswith("blob:")


def test_a_video_that_was_moved_away_is_named(browser: Any, tmp_path: Path, video: bytes) -> None:
    run = make_run(tmp_path / "run", video=video)
    page_file = write_report([run]).path.rename(tmp_path / "alone.html")
    window = browser.new_page()
    window.goto(page_file.as_uri() + "#episode=easy/push/0")
    window.wait_for_selector("#viewer .none")
    assert window.inner_text("#viewer .none") == "the video is not here: videos/easy/push/0.mp4"
    window.close()


def test_five_thousand_episodes_are_a_table_of_few_rows(browser: Any, large: Path) -> None:
    with opened(browser, large) as page:
        assert page.inner_text("#shown") == "5,000 shown, 0 with video"
        assert page.locator("#table tbody tr[data-at]").count() < 100
        assert page.locator("#table tbody tr[data-at]").first.inner_text().split()[0] == "many/task-00"
        page.evaluate("document.querySelector('#table .window').scrollTop = 1e9")
        page.wait_for_selector("#table tr[data-at='4999']")
        page.click("#table th:nth-child(2) button")
        page.click("#table th:nth-child(2) button")
        assert page.inner_text("#table tr[data-at='0'] td:nth-child(2)") == "99"
        page.click("#table tr[data-at='1']")
        assert page.inner_text("#viewer-title") == "many/task-01 · episode 99"


def test_on_a_phone_nothing_is_wider_than_the_screen(browser: Any, report: Path, two_runs: Path) -> None:
    for file in (report, two_runs):
        with opened(browser, file, **PHONE) as page:
            assert horizontal_scroll(page) == 0
            page.click("[data-view=table]")
            page.click("#table tbody tr[data-at='0']")
            assert horizontal_scroll(page) == 0
            assert plays(page, "#viewer video")


def test_long_names_fit_on_a_phone_and_the_intervals_are_in_sight(browser: Any, tmp_path: Path) -> None:
    tasks = [("libero_10", f"put_both_the_alphabet_soup_and_the_tomato_sauce_in_the_basket_{i}") for i in range(2)]
    with opened(browser, write_report([make_run(tmp_path / "run", tasks=tasks)]).path, **PHONE) as page:
        assert horizontal_scroll(page) == 0
        box = page.locator("#tasks .tasks tr:first-child .dot").bounding_box()
        assert 0 < box["x"] < 360
        assert page.locator("#tasks").bounding_box()["width"] < 360


def test_in_the_dark_the_page_is_dark(browser: Any, report: Path) -> None:
    brightness = "Math.max(...getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number))"
    with opened(browser, report, color_scheme="dark") as page:
        assert page.evaluate(brightness) < 60
    with opened(browser, report, color_scheme="light") as page:
        assert page.evaluate(brightness) > 200


def test_on_paper_the_figures_remain_and_the_controls_go(browser: Any, report: Path) -> None:
    with opened(browser, report) as page:
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).color") == "rgb(22, 32, 44)"
        assert page.is_visible("#tasks")
        assert page.is_visible("#section-configuration")
        assert not page.is_visible(".toolbar")
        assert not page.is_visible("nav")


def test_without_script_the_figures_are_there(browser: Any, report: Path) -> None:
    with opened(browser, report, java_script_enabled=False) as page:
        assert "50.0" in page.inner_text(".rate")
        assert page.locator("#tasks .tasks tr").count() == 3
