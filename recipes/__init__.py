# empathic-rewriting: this line says whose the package is (rewriting/distribution.py reads it).
"""The wiring: one file per thing a user can start. Only here meet data, rewards and policies.

    from recipes import load_rewriter

gives what the command `rewriting rewrite` rewrites with; it is imported when it is asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recipes.shared.rewriter import load_rewriter

__all__ = ["load_rewriter"]


def __getattr__(name: str) -> Any:
    if name != "load_rewriter":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from recipes.shared.rewriter import load_rewriter

    return load_rewriter


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
