from __future__ import annotations

import importlib
import sys

import pytest

from robotrials.moved import MOVED


@pytest.mark.parametrize("old", sorted(MOVED))
def test_a_public_path_of_before_gives_the_objects_of_today_and_warns(old: str) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=MOVED[old]):
        module = importlib.import_module(old)
    today = importlib.import_module(MOVED[old])
    public = [name for name in vars(today) if name[0].isupper()]
    assert public
    assert all(getattr(module, name) is getattr(today, name) for name in public)


def test_other_unknown_modules_stay_unknown() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("robotrials.running.coordinator")
