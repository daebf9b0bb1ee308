"""The change counts as far as it fits, and originals are scored once."""

from collections.abc import Sequence

import pytest

from rewards.identifiers.assessment import Assessment, Judgement
from rewards.named import Models, build_rewards
from rewards.terms.levels.empathy_in_context import EmpathyInContext
from rewriting.exchange import MECHANISMS


class Contextual:
    """Expected level 1 per mechanism for `sorry`, of which a stranger's post leaves a tenth."""

    name = "contextual"

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def assess(
        self, seeker_posts: Sequence[str], response_posts: Sequence[str], *, rationales: bool = True
    ) -> list[Assessment]:
        pairs = list(zip(seeker_posts, response_posts, strict=True))
        self.asked += pairs
        return [self.one(*pair) for pair in pairs]

    def one(self, post: str, reply: str) -> Assessment:
        gate = ("sorry" in reply) * (1.0 if post in reply else 0.1)
        return Assessment(dict.fromkeys(MECHANISMS, Judgement(0, (1 - gate, gate, 0.0))))


COLUMNS = {
    "completions": ["Ok. So sorry about Rex.", "Ok. So sorry about Rex.", "Ok."],
    "seeker_post": ["Rex", "Tom", "Rex"],
    "response_post": ["Ok.", "Ok.", "Ok."],
}


def test_the_same_words_are_worth_less_to_a_stranger() -> None:
    term = EmpathyInContext(Contextual())  # type: ignore[arg-type]
    assert term(**COLUMNS) == pytest.approx([3.0, 0.3, 0.0])
    assert term.__name__ == "empathy_in_context"


def test_originals_are_scored_once() -> None:
    identifier = Contextual()
    term = EmpathyInContext(identifier)  # type: ignore[arg-type]
    term(**COLUMNS)
    term(**COLUMNS)
    assert identifier.asked.count(("Rex", "Ok.")) == 1
    assert identifier.asked.count(("Rex", "Ok. So sorry about Rex.")) == 2


def test_by_name_with_a_given_model() -> None:
    total = build_rewards({"empathy_in_context": 1.0}, Models(context=Contextual()))
    assert total(**COLUMNS) == pytest.approx([3.0, 0.3, 0.0])
