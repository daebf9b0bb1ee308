# empathic-rewriting: this line says whose the package is (rewriting/distribution.py reads it).
"""What is good: the reward protocol, its terms, and the models behind them.

    from rewards import build_rewards, load_identifier

Both are imported when they are first asked for, so that `import rewards` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rewards.identifiers.named import load_identifier
    from rewards.named import build_rewards

__all__ = ["build_rewards", "load_identifier"]

_PLACES: Final = {
    "build_rewards": "rewards.named",
    "load_identifier": "rewards.identifiers.named",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
