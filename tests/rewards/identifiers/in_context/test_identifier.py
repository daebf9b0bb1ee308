"""Levels as far as they fit: what the gate leaves of an identifier's judgement."""

from collections.abc import Sequence

import pytest

from rewards.identifiers.assessment import Assessment, Judgement
from rewards.identifiers.in_context.gate import Row, Verdict
from rewards.identifiers.in_context.identifier import ContextualIdentifier, gated
from rewriting.exchange import MECHANISMS

STRONG = Judgement(2, (0.1, 0.2, 0.7), ("so sorry",))


def test_weak_and_strong_shrink_and_none_takes_what_they_lose() -> None:
    found = gated(STRONG, Verdict(0.5, True))
    assert found.probabilities == pytest.approx((0.55, 0.1, 0.35))
    assert found.level == 2
    assert found.rationales == ("so sorry",)
    assert found.expected_level == pytest.approx(0.5 * STRONG.expected_level)


def test_what_does_not_count_has_neither_level_nor_rationale() -> None:
    found = gated(STRONG, Verdict(0.01, False))
    assert found.level == 0
    assert found.rationales == ()
    assert sum(found.probabilities) == pytest.approx(1)


class Inner:
    name = "inner"

    def assess(
        self, seeker_posts: Sequence[str], response_posts: Sequence[str], *, rationales: bool = True
    ) -> list[Assessment]:
        assert rationales, "the gate needs to know which sentences carry a mechanism"
        return [Assessment(dict.fromkeys(MECHANISMS, STRONG)) for _ in response_posts]


class Gate:
    """Fits where the post is named in the reply; explorations never count."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def __call__(self, rows: Sequence[Row]) -> list[list[Verdict]]:
        self.rows += rows
        fits = [float(post in reply) for post, reply, _ in rows]
        return [[Verdict(fit, True), Verdict(fit, True), Verdict(fit, False)] for fit in fits]


def test_assessments_go_through_the_gate() -> None:
    gate = Gate()
    identifier = ContextualIdentifier(Inner(), gate)  # type: ignore[arg-type]
    own, other = identifier.assess(["Rex", "Tom"], ["so sorry about Rex"] * 2, rationales=False)
    assert own.expected_empathy == pytest.approx(3 * 1.6)
    assert other.expected_empathy == 0
    assert [own.judgements[m].level for m in MECHANISMS] == [2, 2, 0]
    assert own.judgements["interpretations"].rationales == ()
    assert gate.rows[0] == ("Rex", "so sorry about Rex", [("so sorry",)] * 3)
    (with_words,) = identifier.assess(["Rex"], ["so sorry about Rex"])
    assert with_words.judgements["interpretations"].rationales == ("so sorry",)
    assert with_words.judgements["explorations"].rationales == ()
