"""How a case may end."""

import random
from collections.abc import Callable
from pathlib import Path

from rewriting.errors import UserError

Case = Callable[[random.Random, Path], str]
"""(chance, an empty folder to work in) → how it ended."""


def one_line(error: UserError, naming: Path | str = "") -> str:
    assert str(naming) in str(error)
    assert "\n" not in str(error), str(error)
    assert len(str(error)) < 2000, str(error)
    return "refused"
