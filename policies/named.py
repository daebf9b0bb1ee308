"""Policies by name, in one explicit dictionary."""

from __future__ import annotations

from collections.abc import Callable

from rewriting import UserError
from rewriting.loop import Policy


def _generic() -> Policy:
    from policies.generic import GenericPolicy

    return GenericPolicy()


def _prompted() -> Policy:
    from policies.prompted import PromptedPolicy

    return PromptedPolicy()


POLICIES: dict[str, Callable[[], Policy]] = {"generic": _generic, "prompted": _prompted}


def load_policy(name: str) -> Policy:
    """The policy of that name; heavy ones load their models now."""
    if name not in POLICIES:
        raise UserError(f"there is no policy {name!r}. Known policies: {', '.join(POLICIES)}.")
    return POLICIES[name]()
