"""Chromium without a window, for tests that look at pages as people do."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """The system's Chromium, driven by Playwright.

    Missing, it is a failure where ``make setup`` could install it (CI, root), elsewhere the tests are skipped.
    """
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        message = "no Chromium: scripts/chromium.sh installs it"
        if os.environ.get("CI") or os.geteuid() == 0:
            pytest.fail(message)
        pytest.skip(message)
    sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with sync_api.sync_playwright() as playwright:
        # Chromium refuses to run as root with its sandbox; the pages are our own.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@contextlib.contextmanager
def opened(browser: Any, file: Path, fragment: str = "", **context: Any) -> Iterator[Any]:
    """``file`` open in a new window; at the end nothing may have been written to the console, nor any alert shown."""
    context.setdefault("viewport", {"width": 1200, "height": 900})
    window = browser.new_context(**context)
    page = window.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))

    def refuse(dialog: Any) -> None:
        complaints.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", refuse)
    page.goto(file.as_uri() + fragment)
    yield page
    window.close()
    assert complaints == []


def until(page: Any, condition: str, argument: object = None, seconds: float = 20) -> None:
    """Wait until ``condition``, an expression or a function of ``argument``, holds in the page.

    Asked from here again and again: what Playwright's own ``wait_for_function`` leaves behind in the page evaluates a
    string there, which a report's content security policy forbids, so that it fails whenever the first look comes
    too early.
    """
    end = time.monotonic() + seconds
    while not page.evaluate(condition, argument):
        assert time.monotonic() < end, f"not so within {seconds} s: {condition}"
        page.wait_for_timeout(20)


def horizontal_scroll(page: Any) -> int:
    width: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return width
