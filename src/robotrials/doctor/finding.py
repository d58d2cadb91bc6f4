"""What doctor has to say of one thing."""

from __future__ import annotations

from dataclasses import dataclass

OK, WARNING, PROBLEM = "ok", "warning", "problem"


@dataclass(frozen=True)
class Finding:
    """``check`` names the thing, ``level`` is ok, warning or problem, ``what`` was found, ``todo`` says what to do."""

    check: str
    level: str
    what: str
    todo: str = ""
