"""Empathy after minus empathy before, with an identifier whose numbers are known."""

from typing import Any

import pytest

from rewards.reward_sum import RewardSum, Term
from rewards.terms.levels.empathy_change import EmpathyChange
from tests.rewards.fakes import ODD_TEXTS, FakeIdentifier

COLUMNS: dict[str, Any] = {
    "completions": ["I am sorry. Why?", "Stop.", "Stop."],
    "seeker_post": ["I failed.", "I failed.", "I lost."],
    "response_post": ["Stop.", "I am sorry.", "Stop."],
}


def test_expected_and_called_levels_by_hand() -> None:
    gain = 1.6 - 0.25
    assert EmpathyChange(FakeIdentifier())(**COLUMNS) == pytest.approx([2 * gain, -gain, 0.0])
    assert EmpathyChange(FakeIdentifier(), argmax=True)(**COLUMNS) == [4.0, -2.0, 0.0]


def test_the_change_of_each_mechanism_is_a_part() -> None:
    scores = RewardSum({"change": Term(EmpathyChange(FakeIdentifier()))}).score(**COLUMNS)
    gain = 1.6 - 0.25
    assert {name: pytest.approx(values) for name, values in scores.parts.items()} == {
        "change/emotional_reactions": [gain, -gain, 0.0],
        "change/interpretations": [0.0, 0.0, 0.0],
        "change/explorations": [gain, 0.0, 0.0],
    }
    parts = [sum(row) for row in zip(*scores.parts.values(), strict=True)]
    assert scores.terms["change"] == pytest.approx(parts)


def test_with_batches_originals_and_rewrites_are_assessed_in_one_call() -> None:
    one_by_one, identifier = EmpathyChange(FakeIdentifier()), FakeIdentifier()
    assert EmpathyChange(identifier, batch_size=8)(**COLUMNS) == one_by_one(**COLUMNS)
    (asked,) = identifier.asked
    assert sorted(asked) == sorted(set(asked))
    assert ("I failed.", "I am sorry.") in asked
    assert ("I failed.", "I am sorry. Why?") in asked


def test_equal_pairs_are_assessed_once_and_originals_never_again() -> None:
    identifier = FakeIdentifier()
    term = EmpathyChange(identifier)
    term(**COLUMNS)
    # Originals one by one, so that what is remembered does not depend on its company; then the
    # rewrites that differ from their originals, together.
    assert identifier.asked == [
        [("I failed.", "Stop.")],
        [("I failed.", "I am sorry.")],
        [("I lost.", "Stop.")],
        [("I failed.", "I am sorry. Why?"), ("I failed.", "Stop.")],
    ]
    new = {"completions": ["New.", "New.", "Stop."]}
    term(**(COLUMNS | new))
    assert identifier.asked[4:] == [[("I failed.", "New.")]]


def test_batch_size_and_order_do_not_matter() -> None:
    whole = EmpathyChange(FakeIdentifier())(**COLUMNS)
    for order in ([2, 0, 1], [1], [0, 2]):
        part = {name: [values[i] for i in order] for name, values in COLUMNS.items()}
        assert EmpathyChange(FakeIdentifier())(**part) == [whole[i] for i in order]


def test_a_blank_response_has_no_empathy_and_is_not_assessed() -> None:
    identifier = FakeIdentifier()
    term = EmpathyChange(identifier)
    assert term(completions=[" "], seeker_post=["Hi."], response_post=[""]) == [0.0]
    assert identifier.asked == []
    erased = term(completions=[""], seeker_post=["Hi."], response_post=["Sorry."])
    assert erased == pytest.approx([-(1.6 + 0.25 + 0.25)])


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_odd_texts_are_unchanged_at_zero(text: str) -> None:
    term = EmpathyChange(FakeIdentifier())
    assert term(completions=[text], seeker_post=["Hi."], response_post=[text]) == [0.0]


def test_conversations_are_read_as_their_text() -> None:
    message = [{"role": "assistant", "content": "Sorry."}]
    term = EmpathyChange(FakeIdentifier(), argmax=True)
    assert term(completions=[message], seeker_post=["Hi."], response_post=["Ok."]) == [2.0]
    assert term.__name__ == "empathy_change"
