"""EmpRL's reward: the product, or the mean, of the probabilities of the target levels."""

import math
from typing import Any

import pytest

from rewards.level_alignment import LevelAlignment
from rewards.protocol import RewardError
from rewards.reward_sum import RewardSum, Term
from rewriting.errors import UserError
from tests.rewards.fakes import ODD_TEXTS, FakeIdentifier

COLUMNS: dict[str, Any] = {
    "completions": ["I am sorry. Why?", "Stop.", "I am sorry."],
    "seeker_post": ["I failed.", "I failed.", "I lost."],
    "emotional_reactions": [2, 0, 1],
    "interpretations": [0, 0, 1],
    "explorations": [2, 0, 1],
}


def test_the_product_of_probabilities_by_hand() -> None:
    found = LevelAlignment(FakeIdentifier())(**COLUMNS)
    assert found == pytest.approx([0.7 * 0.8 * 0.7, 0.8**3, 0.2 * 0.15 * 0.15])


def test_it_is_the_exponential_of_minus_the_cross_entropies() -> None:
    weights = {"emotional_reactions": 2.0, "interpretations": 0.5}
    found = LevelAlignment(FakeIdentifier(), weights=weights)(**COLUMNS)[0]
    cross_entropies = [-math.log(0.7), -math.log(0.8), -math.log(0.7)]
    weighted = zip([2.0, 0.5, 1.0], cross_entropies, strict=True)
    assert found == pytest.approx(math.exp(-sum(w * entropy for w, entropy in weighted)))


def test_a_weight_of_0_leaves_a_mechanism_and_its_column_out() -> None:
    term = LevelAlignment(FakeIdentifier(), weights={"explorations": 0})
    columns = {name: values for name, values in COLUMNS.items() if name != "explorations"}
    assert term(**columns) == pytest.approx([0.7 * 0.8, 0.8 * 0.8, 0.2 * 0.15])


def test_the_mean_of_probabilities_by_hand() -> None:
    found = LevelAlignment(FakeIdentifier(), combine="mean")(**COLUMNS)
    assert found == pytest.approx([(0.7 + 0.8 + 0.7) / 3, 0.8, (0.2 + 0.15 + 0.15) / 3])
    weights = {"emotional_reactions": 2.0, "explorations": 0}
    found = LevelAlignment(FakeIdentifier(), weights=weights, combine="mean")(**COLUMNS)
    assert found == pytest.approx([(2 * 0.7 + 0.8) / 3, 0.8, (2 * 0.2 + 0.15) / 3])


def test_relative_takes_away_what_the_others_would_have_got_for_the_target() -> None:
    found = LevelAlignment(FakeIdentifier(), combine="mean", relative=True)(**COLUMNS)
    absolute = LevelAlignment(FakeIdentifier(), combine="mean")
    for row in range(3):
        target = {name: [COLUMNS[name][row]] * 3 for name in list(COLUMNS)[2:]}
        everyone = absolute(**(COLUMNS | target))
        others = [value for number, value in enumerate(everyone) if number != row and value]
        assert found[row] == pytest.approx((everyone[row] or 0) - sum(others) / 2)


def test_relative_where_all_say_the_same_nothing_is_better_than_anything() -> None:
    columns = COLUMNS | {"completions": ["Stop."] * 3, "seeker_post": ["I failed."] * 3}
    term = LevelAlignment(FakeIdentifier(), relative=True)
    assert term(**columns) == pytest.approx([0.0, 0.0, 0.0])
    alone = {name: values[:1] for name, values in COLUMNS.items()}
    assert term(**alone) == LevelAlignment(FakeIdentifier())(**alone)


def test_an_unknown_way_to_combine_is_refused() -> None:
    with pytest.raises(UserError, match="combine is product or mean, not 'sum'"):
        LevelAlignment(FakeIdentifier(), combine="sum")


@pytest.mark.parametrize("missing", [None, "", math.nan])
def test_a_row_without_a_target_is_left_out_and_not_assessed(missing: Any) -> None:
    identifier = FakeIdentifier()
    found = LevelAlignment(identifier)(**(COLUMNS | {"interpretations": [0, missing, 1]}))
    assert found == [pytest.approx(0.7 * 0.8 * 0.7), None, pytest.approx(0.2 * 0.15 * 0.15)]
    assert identifier.asked == [[("I failed.", "I am sorry. Why?"), ("I lost.", "I am sorry.")]]


def test_a_row_has_its_own_target_even_where_texts_are_equal() -> None:
    columns = {name: [values[0], values[0]] for name, values in COLUMNS.items()}
    columns["explorations"] = [2, 0]
    identifier = FakeIdentifier()
    found = LevelAlignment(identifier)(**columns)
    assert found == pytest.approx([0.7 * 0.8 * 0.7, 0.7 * 0.8 * 0.1])
    assert identifier.asked == [[("I failed.", "I am sorry. Why?")]]


def test_batch_size_and_order_do_not_matter() -> None:
    whole = LevelAlignment(FakeIdentifier())(**COLUMNS)
    for order in ([2, 0, 1], [1], [0, 2]):
        part = {name: [values[i] for i in order] for name, values in COLUMNS.items()}
        assert LevelAlignment(FakeIdentifier())(**part) == [whole[i] for i in order]


@pytest.mark.parametrize("combine", ["product", "mean"])
def test_silence_meets_no_target(combine: str) -> None:
    targets = {"emotional_reactions": [0], "interpretations": [0], "explorations": [0]}
    term = LevelAlignment(FakeIdentifier(), combine=combine)
    assert term(completions=["  "], seeker_post=["Hi."], **targets) == [0.0]


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_odd_texts_score_between_0_and_1(text: str) -> None:
    targets = {"emotional_reactions": [0], "interpretations": [1], "explorations": [2]}
    (found,) = LevelAlignment(FakeIdentifier())(completions=[text], seeker_post=["Hi."], **targets)
    assert found is not None
    assert 0 <= found <= 1


def test_wrong_targets_are_named() -> None:
    rewards = RewardSum({"level_alignment": Term(LevelAlignment(FakeIdentifier()))})
    with pytest.raises(RewardError, match="explorations of row 1 is 5; a level is 0, 1 or 2"):
        rewards.score(**(COLUMNS | {"explorations": [2, 5, 1]}))
    with pytest.raises(RewardError, match="'level_alignment': the data has no column explorations"):
        rewards.score(**{name: v for name, v in COLUMNS.items() if name != "explorations"})


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"warmth": 1.0}, "'warmth' is no mechanism. Mechanisms: emotional_reactions"),
        ({"explorations": -1.0}, "0 or more"),
        (dict.fromkeys(("emotional_reactions", "interpretations", "explorations"), 0), "above 0"),
    ],
)
def test_impossible_weights_are_refused(weights: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        LevelAlignment(FakeIdentifier(), weights=weights)
