# empathic-rewriting: this line says whose the package is (rewriting/distribution.py reads it).
"""Who acts: policies that rewrite responses, and the loops that train them.

    from policies import load_policy

gives a policy behind the safety gate. `load_bare_policy` gives one without, for training and
evaluation. Both are imported when they are first asked for, so that `import policies` costs
nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from policies.gated import GatedPolicy, load_policy
    from policies.named import load_bare_policy

__all__ = ["GatedPolicy", "load_bare_policy", "load_policy"]

_PLACES: Final = {
    "GatedPolicy": "policies.gated",
    "load_bare_policy": "policies.named",
    "load_policy": "policies.gated",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
