"""Identifiers by name: a shipped one, a folder of a recipe, here or on the hub, a judge, or an
ensemble of these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rewards.identifiers.assessment import Identifier
from rewriting.errors import UserError
from rewriting.runtime.loading import did_you_mean

SHIPPED = Path(__file__).parent.parent / "shipped"
GROUNDED, EPITOME, IN_CONTEXT, JOINT = "grounded", "epitome", "in-context", "joint"
DEFAULT_IDENTIFIER = IN_CONTEXT
JUDGE, ENSEMBLE = "judge:", "ensemble:"
NAMES = {
    GROUNDED: SHIPPED / "reader",
    EPITOME: SHIPPED / "identifier",
    IN_CONTEXT: SHIPPED / "context",
    JOINT: SHIPPED / "sense",
}
KINDS = ("identifier.json", "reader.json", "micromodels.json", "context.json", "sense.json")
"""The settings files of identifiers: which of them a folder holds tells its kind."""


def folder_of(name: str) -> Path:
    """The folder that a name stands for; it need not exist. What a hub id names is brought now."""
    from rewriting.runtime.models.hub import found_folder

    return NAMES.get(name) or found_folder(name, *KINDS)


def kind_of(name: str) -> str:
    """The settings file in the folder of that name; nothing is loaded."""
    folder = folder_of(name)
    for kind in KINDS:
        if (folder / kind).is_file():
            return kind
    raise UserError(
        f"{name!r} is no identifier. {did_you_mean(name, NAMES)}It is neither a known name "
        f"({', '.join(NAMES)}), nor a folder or hub id of what "
        "train.py reader, sense, identifier, micromodels or context has written, nor a language "
        "model as judge:MODEL, nor several of these as ensemble:NAME,NAME."
    )


def check_name(name: str) -> None:
    """Say what is wrong with the name of an identifier, in milliseconds; nothing is loaded."""
    if name.startswith(ENSEMBLE):
        from rewards.identifiers.ensemble import EnsembleName

        for member in EnsembleName.parse(name.removeprefix(ENSEMBLE)).members:
            check_name(member)
    elif name.startswith(JUDGE):
        from rewards.identifiers.judged import JudgeIdentifier

        JudgeIdentifier.check(name.removeprefix(JUDGE))
    else:
        kind_of(name)


def is_grounded(given: Any) -> bool:
    """Whether an identifier, by name, as a folder or loaded, has a reader; nothing is loaded.

    A gate of context has that of the identifier beside it. An ensemble has none of its own,
    whatever its members have.
    """
    if not isinstance(given, str | Path | None):
        return getattr(given, "reader", None) is not None
    name = str(given or DEFAULT_IDENTIFIER)
    if name.startswith((ENSEMBLE, JUDGE)):
        return False
    folder = folder_of(name)
    if (folder / "context.json").is_file():
        from rewards.identifiers.in_context.gate import read_settings

        return is_grounded(read_settings(folder)["identifier"])
    return (folder / "reader.json").is_file()


def load_identifier(name: str = DEFAULT_IDENTIFIER, *, batch_size: int = 1) -> Identifier:
    """The identifier of that name, in that folder or of that hub id; its files tell its kind.

    `judge:MODEL` is a language model that grades each mechanism, `ensemble:NAME,NAME` the mean of
    several identifiers. batch_size: sentences that a reader, a gate or the model of `joint` reads
    at once. `epitome` and judges have budgets of their own; micromodels read one at a time, since
    the steps of a boosting machine feel the last bit.
    """
    if name.startswith(ENSEMBLE):
        from rewards.identifiers.ensemble import EnsembleIdentifier

        return EnsembleIdentifier.load(name.removeprefix(ENSEMBLE), batch_size=batch_size)
    if name.startswith(JUDGE):
        from rewards.identifiers.judged import JudgeIdentifier

        return JudgeIdentifier.load(name.removeprefix(JUDGE))
    folder, kind = folder_of(name), kind_of(name)
    if kind == "identifier.json":
        from rewards.identifiers.epitome.identifier import EpitomeIdentifier

        return EpitomeIdentifier.load(folder)
    if kind == "reader.json":
        from rewards.identifiers.grounded.identifier import GroundedIdentifier

        return GroundedIdentifier.load(folder, batch_size=batch_size)
    if kind == "micromodels.json":
        from rewards.identifiers.micromodels.identifier import Micromodels

        return Micromodels.load(folder)
    if kind == "sense.json":
        from rewards.identifiers.joint import JointIdentifier
        from rewards.reading.sense_model import SenseModel

        # The shipped model is loaded once: the reward `sense` and the output gate ask it too.
        shared = SenseModel.shared(batch_size) if folder == NAMES[JOINT] else None
        return JointIdentifier.load(folder, model=shared, batch_size=batch_size)
    from rewards.identifiers.in_context.identifier import ContextualIdentifier

    return ContextualIdentifier.load(folder, batch_size=batch_size)
