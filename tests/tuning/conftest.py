from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _nothing_measured_before(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a test measures lays out no run of another."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("ROBOTRIALS_HOME", str(home))
    return home
