"""Identifiers by name: the shipped one, a folder that a recipe has written, or a judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rewards.identifiers.assessment import Identifier
from rewriting.errors import UserError

SHIPPED = Path(__file__).parent.parent / "shipped"
GROUNDED, EPITOME, IN_CONTEXT = "grounded", "epitome", "in-context"
DEFAULT_IDENTIFIER = GROUNDED
JUDGE = "judge:"
NAMES = {
    GROUNDED: SHIPPED / "reader",
    EPITOME: SHIPPED / "identifier",
    IN_CONTEXT: SHIPPED / "context",
}


def is_grounded(given: Any) -> bool:
    """Whether an identifier, by name, as a folder or loaded, has a reader; nothing is loaded."""
    if not isinstance(given, str | Path | None):
        return hasattr(given, "reader")
    name = str(given or DEFAULT_IDENTIFIER)
    return (NAMES.get(name, Path(name).expanduser()) / "reader.json").is_file()


def load_identifier(name: str = DEFAULT_IDENTIFIER) -> Identifier:
    """The identifier of that name or in that folder; what is in the folder tells its kind.

    `judge:MODEL` is a language model that grades each mechanism.
    """
    if name.startswith(JUDGE):
        from rewards.judge.identifier import JudgeIdentifier

        return JudgeIdentifier.load(name.removeprefix(JUDGE))
    folder = NAMES.get(name, Path(name).expanduser())
    if (folder / "identifier.json").is_file():
        from rewards.identifiers.epitome import EpitomeIdentifier

        return EpitomeIdentifier.load(folder)
    if (folder / "reader.json").is_file():
        from rewards.identifiers.grounded import GroundedIdentifier

        return GroundedIdentifier.load(folder)
    if (folder / "micromodels.json").is_file():
        from rewards.identifiers.micromodels import Micromodels

        return Micromodels.load(folder)
    if (folder / "context.json").is_file():
        from rewards.identifiers.in_context import ContextualIdentifier

        return ContextualIdentifier.load(folder)
    raise UserError(
        f"{name!r} is no identifier: neither a known name ({', '.join(NAMES)}), nor a folder that "
        "train.py reader, identifier, micromodels or context has written, nor a language model as "
        "judge:MODEL."
    )
