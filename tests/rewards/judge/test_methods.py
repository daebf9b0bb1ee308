"""From answers to numbers, worked out by hand."""

from collections.abc import Sequence

import pytest

from rewards.judge.methods import (
    Change,
    Compare,
    Grade,
    Likelihood,
    expected_value,
    normalised,
    preference,
)
from rewards.judge.question import Numbers, Question
from rewards.judge.rubric import load_rubric
from rewards.terms.judge import position_bias
from rewriting.errors import UserError


class Asked:
    """Answers from a function of the texts. Keeps the questions."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.questions: list[Question] = []

    def __call__(self, questions: Sequence[Question]) -> list[Numbers]:
        self.questions += questions
        return [self.answer(dict(one.texts)) for one in questions]  # type: ignore[operator]


def test_normalised_and_expected() -> None:
    assert normalised((0.2, 0.6)) == pytest.approx((0.25, 0.75))
    # (1 · 0 + 2 · 1 + 1 · 2) / 4 on probabilities that sum to 0.4.
    assert expected_value((0.1, 0.2, 0.1), ("0", "1", "2")) == pytest.approx(1.0)
    assert expected_value((0.0, 0.3, 0.1), ("3", "4", "5")) == pytest.approx(4.25)
    with pytest.raises(UserError, match="never answers as the rubric asks"):
        normalised((0.0, 0.0))


def test_the_place_alone_cancels_out() -> None:
    # Always A: p(A) = 0.9 in both orders, so a tie, and a bias of 0.4.
    change = preference((0.9, 0.1), (0.9, 0.1))
    assert change.value == 0
    assert change.position_bias == pytest.approx(0.4)
    # p(it wins) = 0.8 as A and 0.6 as B: mean 0.7, mapped to 0.4. p(A) = 0.8 and 0.4: bias 0.1.
    change = preference((0.8, 0.2), (0.4, 0.6))
    assert change.value == pytest.approx(0.4)
    assert change.position_bias == pytest.approx(0.1)
    assert preference((1.0, 0.0), (0.0, 1.0)) == Change(1.0, (1.0, 0.0))
    # Half of the mass is on other tokens: it does not count.
    assert preference((0.4, 0.1), (0.2, 0.3)).value == pytest.approx(0.8 - 0.4)


def test_compare_asks_in_both_orders() -> None:
    ask = Asked(lambda texts: (0.9, 0.1) if "sorry" in texts["response_a"] else (0.5, 0.5))
    compare = Compare(ask, load_rubric("", "compare"))
    (change,) = compare.changes([("I failed.", " Study. ", "So sorry.")])
    orders = [(dict(q.texts)["response_a"], dict(q.texts)["response_b"]) for q in ask.questions]
    assert orders == [("So sorry.", "Study."), ("Study.", "So sorry.")]
    assert change.value == pytest.approx(0.4)
    assert change.orders == pytest.approx((0.9, 0.5))
    # The other way round it is the other way round.
    (mirrored,) = compare.changes([("I failed.", "So sorry.", "Study.")])
    assert mirrored.value == pytest.approx(-0.4)
    assert mirrored.position_bias == change.position_bias


def test_compare_does_not_ask_what_it_knows() -> None:
    ask = Asked(lambda texts: (0.7, 0.3))
    rows = [("p", "Same.", "Same. "), ("p", "Some.", " "), ("p", "", "Some."), ("p", "", "")]
    changes = Compare(ask, load_rubric("", "compare")).changes(rows)
    assert [change.value for change in changes] == [0, -1, 1, 0]
    assert ask.questions == []
    assert position_bias(changes) is None


def test_position_bias_is_the_mean_over_what_was_asked() -> None:
    changes = [Change(0.0, (0.9, 0.9)), Change(0.0), Change(1.0, (1.0, 0.0))]
    assert position_bias(changes) == pytest.approx((0.4 + 0.0) / 2)


def test_grade_is_after_minus_before() -> None:
    kind, rude = (0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.0), (0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0)
    ask = Asked(lambda texts: kind if "sorry" in texts["response"] else rude)
    grade = Grade(ask, load_rubric("", "grade"))
    changes = grade.changes([("I failed.", "Study.", "So sorry."), ("I failed.", "Study.", " ")])
    assert [change.value for change in changes] == pytest.approx([4.5 - 0.5, 0 - 0.5])
    assert changes[0].position_bias is None


def test_the_grades_of_several_questions_are_added() -> None:
    ask = Asked(lambda texts: (0.25, 0.25, 0.5))
    grade = Grade(ask, load_rubric("mechanisms", "grade"))
    assert grade.grades([("I failed.", "So sorry."), ("I failed.", "")]) == [3 * 1.25, 0.0]
    assert len(ask.questions) == 3


def test_likelihood_is_the_gain_of_the_post() -> None:
    def log_prob(texts: dict[str, str]) -> Numbers:
        known = "seeker_post" in texts
        return (-2.0,) if "exam" in texts["response"] and known else (-3.0,)

    ask = Asked(log_prob)
    likelihood = Likelihood(ask, load_rubric("", "likelihood"))
    pairs = [("The exam.", "That exam!"), ("The exam.", "Oh."), ("The exam.", " ")]
    assert likelihood.gains(pairs) == [1.0, 0.0, 0.0]
    (change,) = likelihood.changes([("The exam.", "Oh.", "That exam!")])
    assert change == Change(1.0)
