"""The gate by hand: centred similarity, carriers of a mechanism, verdicts, a folder and back."""

from pathlib import Path

import numpy as np
import pytest

from rewards.identifiers.in_context.gate import (
    ContextGate,
    GateWeights,
    carriers,
    centred_similarity,
    encoder_name,
    term_shares,
)
from rewards.identifiers.seed_sentences import SentenceVectors
from rewriting.errors import UserError
from tests.rewards.fakes import FakeEncoder

# FakeEncoder counts rain, exam and dog; a post about an exam is in need here, no other is.
WEIGHTS = GateWeights(
    need_weights_D=np.array([0.0, 4.0, 0.0]),
    term_weights_V=np.array([-8.0, 3.0]),
    terms=("calm", "^ oh"),
    need_bias=-2.0,
    mean_post_D=np.zeros(3),
    mean_reply_D=np.array([0.0, 0.5, 0.0]),
    fit_slopes_2=np.array([2.0, 4.0]),
    fit_biases_2=np.array([-1.0, 0.0]),
)


def gate() -> ContextGate:
    return ContextGate(SentenceVectors(FakeEncoder(), name="fake"), WEIGHTS)


def test_a_text_that_is_as_near_as_every_text_fits_by_zero() -> None:
    posts = np.array([[1.0, 0.0], [1.0, 0.0]])
    texts = np.array([[0.6, 0.8], [1.0, 0.0]])
    found = centred_similarity(posts, texts, np.array([0.0, 0.0]), np.array([0.6, 0.8]))
    assert found == pytest.approx([0.0, 0.4])


def test_carriers_are_the_sentences_that_a_rationale_touches() -> None:
    reply = "Oh no. I am sorry, truly. Buy milk! What now?"
    assert carriers(reply, ["sorry, truly."]) == ["I am sorry, truly."]
    assert carriers(reply, ["truly. Buy"]) == ["I am sorry, truly.", "Buy milk!"]
    assert carriers(reply, ["What now?", "Oh no."]) == ["Oh no.", "What now?"]


def test_without_a_rationale_every_sentence_carries() -> None:
    assert carriers("One. Two.", []) == ["One.", "Two."]
    assert carriers("One. Two.", ["not in it"]) == ["One.", "Two."]


def test_features_and_verdict_by_hand() -> None:
    reply = "The exam is over. Look, a dog."
    row = ("My exam!", reply, [["The exam is over."], [], ["a dog"]])
    # The reply is (0, 1, 1)/√2, and 0.5 is taken off its middle: fit 0.2071.
    reply_fit = 1 / np.sqrt(2) - 0.5
    features = gate().features([row])[0]
    words = (0.5, (0.5 - 0.5) / 2, -0.5)
    assert features == pytest.approx(np.array([[2.0, reply_fit, fit] for fit in words]))
    verdicts = gate()([row])[0]
    need, reply_odds, words_odds = np.exp([2.0, 2 * reply_fit - 1, 4 * 0.5])
    parts = [odds / (1 + odds) for odds in (need, reply_odds, words_odds)]
    assert verdicts[0].gate == pytest.approx(np.prod(parts))
    assert verdicts[0].counts
    assert verdicts[2].gate < verdicts[1].gate < verdicts[0].gate


def test_a_post_without_need_does_not_count() -> None:
    verdict = gate()([("My dog!", "A dog.", [[], [], []])])[0][0]
    assert not verdict.counts
    assert verdict.gate < 1 / (1 + np.exp(2.0))


def test_words_and_pairs_speak_as_well() -> None:
    assert term_shares("Calm? calm, it’s") == {
        "calm": 2**-0.5,
        "it's": 2**-0.5,
        "^ calm": 3**-0.5,
        "calm calm": 3**-0.5,
        "calm it's": 3**-0.5,
    }
    assert term_shares("?!") == {}
    (features,) = gate().features([("Oh, calm exam", "Oh.", [[], [], []])])
    assert features[0][0] == pytest.approx(4 - 8 / 3**0.5 + 3 / 3**0.5 - 2)


def test_rows_do_not_depend_on_each_other() -> None:
    rows = [("My exam!", "Exam? Rain.", [["Rain."], [], []]), ("Rain", "The dog.", [[], [], []])]
    together = gate().features(rows)
    apart = np.concatenate([gate().features([row]) for row in rows])
    assert np.array_equal(together, apart)


def test_a_folder_and_back(tmp_path: Path) -> None:
    gate().save(tmp_path, identifier="epitome")
    assert encoder_name(tmp_path) == "fake"
    loaded = ContextGate.load(tmp_path, encoder=FakeEncoder())
    row = ("My exam!", "The exam. A dog.", [["The exam."], [], []])
    assert loaded([row]) == gate()([row])


def test_a_folder_without_a_gate(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no context gate"):
        ContextGate.load(tmp_path)
