"""Seeds, their owners, and features by hand: with and without a response's own rationales."""

from collections.abc import Sequence

import numpy as np
import pytest

from rewards.identifiers.seed_sentences import (
    SEEDS,
    Seeds,
    SentenceVectors,
    seed_owners,
    training_features,
)
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange, Label
from tests.rewards.identifiers.hand_made import HandMade, labelled

SORRY = labelled("Sorry! Where?", emotional_reactions=Label(1, ("Sorry!",)))
POOR = labelled("Poor you.", emotional_reactions=Label(2, ("Poor you.",)))
SORRY_TOO = labelled("Sorry! I see.", emotional_reactions=Label(1, (" Sorry! ",)))


def features(exchanges: Sequence[Exchange], leave_one_out: bool = True) -> list[float]:
    """The features of emotional reactions."""
    vectors = SentenceVectors(HandMade())
    owners = {m: seed_owners(exchanges, "emotional_reactions", "rationales") for m in MECHANISMS}
    seeds = {m: Seeds(tuple(o), np.stack(vectors(list(o)))) for m, o in owners.items()}
    found = training_features(exchanges, vectors, seeds, owners if leave_one_out else None)
    assert found.shape == (len(exchanges), 3)
    return [float(value) for value in found[:, 0]]


def test_vectors_have_length_1_and_zeros_stay_zeros() -> None:
    poor, unknown = SentenceVectors(HandMade())(["Poor you.", "…"])
    assert poor == pytest.approx([0.6, 0.8, 0.0])
    assert unknown.tolist() == [0.0, 0.0, 0.0]


def test_equal_texts_are_embedded_once_and_together() -> None:
    encoder = HandMade()
    vectors = SentenceVectors(encoder, batch_size=2, remember_all=True)
    vectors(["Sorry!", "Why?", "Sorry!"])
    vectors(["Why?", "I see."])
    assert encoder.asked == [["Why?", "Sorry!"], ["I see."]]


def test_similarities_by_hand() -> None:
    vectors = SentenceVectors(HandMade())
    seeds = Seeds(("Sorry!", "I see."), np.stack(vectors(["Sorry!", "I see."])))
    found = seeds.similarities(vectors(["Poor you.", "Get lost."]))
    assert found == pytest.approx(np.array([[0.6, 0.8], [-1.0, 0.0]]))
    assert seeds.similarities([]).shape == (0, 2)


def test_a_response_is_not_compared_with_its_own_rationales() -> None:
    assert features([SORRY, POOR]) == pytest.approx([0.6, 0.6])


def test_the_naive_way_sees_its_own_answers() -> None:
    assert features([SORRY, POOR], leave_one_out=False) == pytest.approx([1.0, 1.0])


def test_a_seed_that_others_have_too_counts() -> None:
    assert features([SORRY, POOR, SORRY_TOO]) == pytest.approx([1.0, 0.6, 1.0])


def test_a_row_that_is_drawn_twice_is_still_the_same_response() -> None:
    assert features([SORRY, POOR, SORRY]) == pytest.approx([0.6, 0.6, 0.6])


def test_without_a_seed_left_or_a_sentence_the_feature_is_0() -> None:
    assert features([SORRY]) == [0.0]
    assert features([SORRY, labelled(" \n")]) == [0.0, 0.0]


def test_rationales_are_collected_with_their_responses() -> None:
    assert seed_owners([SORRY, POOR, SORRY_TOO], "emotional_reactions", "rationales") == {
        "Sorry!": {"sorry! where?", "sorry! i see."},
        "Poor you.": {"poor you."},
    }


def test_three_seeds_belong_to_nobody() -> None:
    found = seed_owners([SORRY], "explorations", "three")
    assert found == {text: set() for text in SEEDS["explorations"]}
    assert list(found) == ["Why?", "What happened?", "Why do you feel like that?"]


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(UserError, match="no rationale of explorations"):
        seed_owners([SORRY], "explorations", "rationales")
    with pytest.raises(UserError, match="seeds are rationales or three, not 'four'"):
        seed_owners([SORRY], "explorations", "four")
