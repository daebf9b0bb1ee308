"""An identifier that counts empathy only as far as it fits the post: `in-context`.

    identifier = ContextualIdentifier.load("rewards/shipped/context")
    (assessment,) = identifier.assess(["I planted tulips."], ["I know how you feel."])  # level 0

Any identifier inside, a gate beside it (gate.py). The probabilities of weak and strong are
multiplied by the gate; what is taken from them goes to none. Called levels fall to 0 only where the
post calls for no empathy: a kind word to somebody in pain is one, even if it would suit others too,
and is worth less by its expected level, which is what a reward sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from rewards.identifiers.assessment import Assessment, Identifier, Judgement, shrunk
from rewards.identifiers.in_context.gate import ContextGate, Verdict, read_settings
from rewriting.exchange import MECHANISMS


class ContextualIdentifier:
    """Assesses pairs with the identifier it is given, and closes the gate on what does not fit."""

    def __init__(
        self, identifier: Identifier, gate: ContextGate, *, name: str = "in-context"
    ) -> None:
        self.identifier = identifier
        self.gate = gate
        self.name = name

    @property
    def reader(self) -> Any:
        """The reader of the identifier inside, where it has one; otherwise None."""
        return getattr(self.identifier, "reader", None)

    @classmethod
    def load(
        cls,
        folder: Path | str,
        *,
        identifier: Any = None,
        encoder: Any = None,
        batch_size: int = 1,
    ) -> Self:
        """The gate in a folder, around the identifier that it was fitted with, or another."""
        from rewards.identifiers.named import load_identifier

        gate = ContextGate.load(folder, encoder=encoder, batch_size=batch_size)
        if identifier is None:
            name = read_settings(folder)["identifier"]
            identifier = load_identifier(name, batch_size=batch_size)
        return cls(identifier, gate, name=Path(folder).name)

    def assess(
        self,
        seeker_posts: Sequence[str],
        response_posts: Sequence[str],
        *,
        rationales: bool = True,
    ) -> list[Assessment]:
        """Assess pairs of posts. The inner identifier's rationales are always needed: they say
        which sentences have to fit."""
        plain = self.identifier.assess(seeker_posts, response_posts)
        rows = [
            (seeker, response, [assessment.judgements[m].rationales for m in MECHANISMS])
            for seeker, response, assessment in zip(
                seeker_posts, response_posts, plain, strict=True
            )
        ]
        verdicts = self.gate(rows)
        return [
            Assessment(
                {
                    mechanism: gated(assessment.judgements[mechanism], verdict, rationales)
                    for mechanism, verdict in zip(MECHANISMS, row, strict=True)
                }
            )
            for assessment, row in zip(plain, verdicts, strict=True)
        ]


def gated(judgement: Judgement, verdict: Verdict, rationales: bool = True) -> Judgement:
    """The judgement as far as it fits: weak and strong times the gate, the rest is none."""
    level = judgement.level if verdict.counts else 0
    words = judgement.rationales if level and rationales else ()
    return Judgement(level, shrunk(judgement.probabilities, verdict.gate), words)
