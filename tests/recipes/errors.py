"""What a command says of a mistake."""

from collections.abc import Callable
from typing import Any

import pytest


def the_error(
    run: Callable[..., None], arguments: list[str], capfd: pytest.CaptureFixture[Any]
) -> str:
    """The one line of a run that ends with code 1."""
    with pytest.raises(SystemExit) as stop:
        run(*arguments)
    assert stop.value.code == 1
    errors = [line for line in capfd.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    return errors[0]
