"""No pauses, and both kinds of reward."""

from typing import Any

import pytest

from rewards import calling


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """No test waits between two tries; these are the pauses there would have been."""
    found: list[float] = []
    original = calling._Caller._pause

    def pause(*arguments: Any) -> float:
        found.append(original(*arguments))
        return 0.0

    monkeypatch.setattr(calling._Caller, "_pause", pause)
    return found


@pytest.fixture(params=["sync", "patient"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)
