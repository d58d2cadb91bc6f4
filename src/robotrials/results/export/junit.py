"""A run as JUnit XML, for continuous integration: one test a task, or one an episode.

The dialect is the one that GitHub, GitLab and Jenkins read: ``testsuites``, ``testsuite``, ``testcase`` with
``failure``, ``error`` or ``skipped``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from robotrials.results.counting import out_of_order_words
from robotrials.results.stored import StoredEpisode
from robotrials.results.summary import Rates, RunSummary

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, even escaped: an error text from a simulator may have any."""


def task_report(
    name: str, summary: RunSummary, min_success: float | None, errors: Mapping[tuple[str, str], str]
) -> bytes:
    """A test for each task and one over all. ``errors`` holds one message for each task that has any.

    A task fails when even the upper end of its interval is below ``min_success``: a task of few episodes is not to
    fail by bad luck alone. Over all, the rate itself must reach ``min_success``. Errors, and episodes that were not
    run, are errors of their task.
    """
    suites = [(suite.name, [(suite.name, task) for task in suite.tasks]) for suite in summary.suites]
    root = ElementTree.Element("testsuites", name=_clean(name))
    for suite_name, tasks in suites:
        element = ElementTree.SubElement(root, "testsuite", name=_clean(suite_name))
        for suite, task in tasks:
            case = _case(element, suite_name, task.name, sum(task.seconds.values()))
            _judge_task(case, task, min_success, errors.get((suite, task.name), ""))
        _count(element)
    element = ElementTree.SubElement(root, "testsuite", name="overall")
    case = _case(element, "overall", "success rate", 0.0)
    overall = summary.overall
    if overall.rate is None:
        _add(case, "error", summary.out_of_order or "no episode has finished")
    elif min_success is not None and overall.rate < min_success:
        _add(case, "failure", f"{_rate(overall)} is below the {100 * min_success:.1f} % asked for")
    ElementTree.SubElement(case, "system-out").text = _clean(_words(overall))
    _count(element)
    return _bytes(root)


def episode_report(name: str, episodes: Sequence[StoredEpisode], out_of_order: Sequence[StoredEpisode] = ()) -> bytes:
    """A test for each episode: it fails where the policy failed. Those ``out_of_order`` are skipped: they do not count
    while the run is unfinished."""
    root = ElementTree.Element("testsuites", name=_clean(name))
    by_task: dict[str, list[StoredEpisode]] = {}
    not_counted = {episode.name for episode in out_of_order}
    for episode in (*episodes, *out_of_order):
        by_task.setdefault(f"{episode.suite}/{episode.task}", []).append(episode)
    for task, own in by_task.items():
        element = ElementTree.SubElement(root, "testsuite", name=_clean(task))
        for episode in own:
            seconds = episode.record.timings.total if episode.record is not None else 0.0
            case = _case(element, task, f"episode {episode.index} (seed {episode.seed})", seconds)
            if episode.name in not_counted:
                _add(case, "skipped", "ended out of order in an unfinished run: not counted yet")
            elif episode.is_error:
                _add(case, "error", episode.error or "no message")
            elif not episode.success:
                _add(case, "failure", f"{episode.end} after {episode.steps} steps")
            if episode.video:
                ElementTree.SubElement(case, "system-out").text = _clean(f"video: {episode.video}")
        _count(element)
    return _bytes(root)


def _judge_task(case: ElementTree.Element, task: Rates, min_success: float | None, error: str) -> None:
    if task.n_errors:
        _add(case, "error", f"{task.n_errors} of {task.n_planned} episodes ended in an error: {error}")
    elif task.n_missing:
        _add(case, "error", f"{task.n_missing} of {task.n_planned} episodes were not run")
    elif min_success is not None and task.interval is not None and task.interval[1] < min_success:
        _add(case, "failure", f"{_rate(task)} lies below the {100 * min_success:.1f} % asked for")
    ElementTree.SubElement(case, "system-out").text = _clean(_words(task))


def _words(figures: Rates) -> str:
    counts = f"{figures.n_success} of {figures.n_finished} finished episodes succeeded, {figures.n_errors} errors"
    counts += f", {figures.n_missing} not run"
    if words := out_of_order_words(figures.n_out_of_order, figures.n_errors_out_of_order):
        counts += f"; {words}"
    return f"{counts}; {_rate(figures)}"


def _rate(figures: Rates) -> str:
    if figures.rate is None or figures.interval is None:
        return "no rate"
    low, high = figures.interval
    return f"success {100 * figures.rate:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def _case(parent: ElementTree.Element, where: str, name: str, seconds: float) -> ElementTree.Element:
    return ElementTree.SubElement(parent, "testcase", classname=_clean(where), name=_clean(name), time=f"{seconds:.3f}")


def _add(case: ElementTree.Element, kind: str, message: str) -> None:
    first_line = message.split("\n", 1)[0]
    ElementTree.SubElement(case, kind, message=_clean(first_line)).text = _clean(message)


def _count(suite: ElementTree.Element) -> None:
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", str(len(suite.findall("testcase/error"))))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    suite.set("time", f"{sum(float(case.get('time', '0')) for case in suite.findall('testcase')):.3f}")


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _bytes(root: ElementTree.Element) -> bytes:
    ElementTree.indent(root)
    data: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return data + b"\n"
