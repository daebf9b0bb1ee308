"""EmpRL's reward: the product, or the mean, of the probabilities of the target levels."""

import itertools
import math
from typing import Any

import pytest

from rewards.protocol import RewardError
from rewards.reward_sum import RewardSum, Term
from rewards.terms.levels.level_alignment import LevelAlignment
from rewriting.errors import UserError
from tests.rewards.fakes import ODD_TEXTS, FakeIdentifier
from tests.rewards.terms.levels.toys import COLUMNS


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


def test_the_probability_of_each_target_level_is_a_part() -> None:
    term = LevelAlignment(FakeIdentifier(), relative=True, weights={"interpretations": 0})
    columns = COLUMNS | {"completions": ["I am sorry. Why?", " ", "I am sorry."]}
    columns["explorations"] = [2, 0, None]
    for update in (True, False):
        scores = RewardSum({"levels": Term(term)}).score(update=update, **columns)
        assert scores.parts == {
            "levels/emotional_reactions": [0.7, 0.0, None],
            "levels/explorations": [0.7, 0.0, None],
        }


@pytest.mark.parametrize("combine", ["mean", "product"])
def test_three_probabilities_for_a_level_give_the_score_to_be_expected(combine: str) -> None:
    term = LevelAlignment(FakeIdentifier(), combine=combine, weights={"explorations": 2.0})
    shares = [[0.5, 0.3, 0.2], [0.0, 1.0, 0.0], [0.1, 0.1, 0.8]]
    mixed = {name: [shares[n]] * 3 for n, name in enumerate(list(COLUMNS)[2:])}
    expected = [0.0, 0.0, 0.0]
    for levels in itertools.product(range(3), repeat=3):
        chance = math.prod(shares[n][level] for n, level in enumerate(levels))
        sure = {name: [levels[n]] * 3 for n, name in enumerate(list(COLUMNS)[2:])}
        scores = term(**(COLUMNS | sure))
        expected = [e + chance * (s or 0) for e, s in zip(expected, scores, strict=True)]
    assert term(**(COLUMNS | mixed)) == pytest.approx(expected)


@pytest.mark.parametrize("wrong", [[0.5, 0.5], [0.5, 0.2, 0.2], [1.5, -0.5, 0.0]])
def test_probabilities_that_are_none_are_refused(wrong: list[float]) -> None:
    columns = COLUMNS | {"interpretations": [0, wrong, 1]}
    with pytest.raises(UserError, match=r"interpretations of row 1 is .* that add up to 1"):
        LevelAlignment(FakeIdentifier())(**columns)


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
