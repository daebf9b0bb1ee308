"""Levels, rationales and explanations by hand; folders; any text in any company."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from rewards.identifiers.assessment import Assessment
from rewards.identifiers.micromodels.boosting import AdditiveModel
from rewards.identifiers.micromodels.identifier import Micromodels
from rewards.identifiers.named import load_identifier
from rewards.identifiers.seed_sentences import Seeds, SentenceVectors
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange
from rewriting.runtime.models.named import load_sentence_encoder
from tests.rewards.fakes import ODD_TEXTS
from tests.rewards.identifiers.hand_made import HandMade, labels_of
from tests.tiny_lm import write_tiny_encoder

SEEDS = dict(zip(MECHANISMS, ("Sorry!", "I see.", "Why?"), strict=True))
RESPONSE = "Poor you. Where?"  # features 0.6, 0.8, 0.8
SURE, OTHER = math.exp(2) / (math.exp(2) + 2), 1 / (math.exp(2) + 2)


def steps_of(own: int) -> AdditiveModel:
    """Level 0, 1 or 2 as the own feature is below 0.5, below 0.75, or above."""
    return AdditiveModel(
        (0, 1, 2),
        tuple(np.array([0.5, 0.75] if place == own else []) for place in range(3)),
        tuple(np.eye(3) * 2 if place == own else np.zeros((1, 3)) for place in range(3)),
        np.zeros(3),
    )


def by_hand(encoder: HandMade | None = None) -> Micromodels:
    vectors = SentenceVectors(encoder or HandMade(), name="hand-made")
    seeds = {m: Seeds((text,), np.stack(vectors([text]))) for m, text in SEEDS.items()}
    return Micromodels(vectors, seeds, {m: steps_of(i) for i, m in enumerate(MECHANISMS)})


def assess(model: Micromodels, responses: Sequence[str]) -> list[Assessment]:
    return model.assess(["I failed again."] * len(responses), responses)


def test_levels_and_rationales_by_hand() -> None:
    (found,) = assess(by_hand(), [RESPONSE])
    assert [found.judgements[m].level for m in MECHANISMS] == [1, 2, 2]
    assert found.judgements["emotional_reactions"].probabilities == pytest.approx(
        (OTHER, SURE, OTHER)
    )
    # 0.6 is not near enough; 0.8 is.
    assert [found.judgements[m].rationales for m in MECHANISMS] == [
        (),
        ("Poor you.",),
        ("Where?",),
    ]


def test_level_0_has_no_rationales_however_near_a_sentence_is() -> None:
    model = by_hand()
    model.offsets["explorations"] = (9.0, 0.0, 0.0)
    (found,) = assess(model, [RESPONSE])
    assert found.judgements["explorations"].level == 0
    assert found.judgements["explorations"].rationales == ()
    assert found.judgements["explorations"].probabilities == pytest.approx((OTHER, OTHER, SURE))


def test_thresholds_are_each_mechanisms_own() -> None:
    model = by_hand()
    model.thresholds["emotional_reactions"] = 0.55
    (found,) = assess(model, [RESPONSE])
    assert found.judgements["emotional_reactions"].rationales == ("Poor you.",)


def test_rationales_can_be_left_out() -> None:
    (found,) = by_hand().assess(["Hi."], [RESPONSE], rationales=False)
    assert all(not judgement.rationales for judgement in found.judgements.values())


def test_the_seeker_post_is_not_read_but_has_to_be_there() -> None:
    encoder = HandMade()
    by_hand(encoder).assess(["A post of its own."], [RESPONSE])
    assert "A post of its own." not in [text for texts in encoder.asked for text in texts]
    with pytest.raises(ValueError, match="longer"):
        by_hand().assess([], [RESPONSE])


def test_an_explanation_by_hand() -> None:
    found = by_hand().explain(RESPONSE)["interpretations"]
    assert (found.level, found.sentence, found.seed) == (2, "Poor you.", "I see.")
    assert found.similarity == pytest.approx(0.8)
    # 2 for this level, 0 for the two others: 2 minus their mean.
    assert found.contributions == pytest.approx(
        {"emotional_reactions": 0.0, "interpretations": 4 / 3, "explorations": 0.0}
    )
    assert found.intercept == 0


def test_the_explanation_of_a_blank_response() -> None:
    found = by_hand().explain("  ")["explorations"]
    assert (found.level, found.sentence, found.seed, found.similarity) == (0, "", "", 0.0)


LEVELS = [
    dict(zip(MECHANISMS, levels, strict=True)) for levels in ((0, 0, 0), (1, 2, 0), (2, 0, 1))
]
TEXTS = ("Get lost.", "Sorry! I see.", "Poor you. Where?")
ROWS = [
    Exchange(f"Post {n}.", text, labels=labels_of(levels, **{m: (SEEDS[m],) for m in MECHANISMS}))
    for n in range(8)
    for text, levels in zip(TEXTS, LEVELS, strict=True)
]


@pytest.fixture(scope="module")
def fitted() -> Micromodels:
    return Micromodels.fit(ROWS, SentenceVectors(HandMade(), name="hand-made"))


def test_a_fit_learns_what_the_features_tell(fitted: Micromodels) -> None:
    found = assess(fitted, TEXTS)
    assert [[a.judgements[m].level for m in MECHANISMS] for a in found] == [
        list(levels.values()) for levels in LEVELS
    ]
    assert {m: seeds.texts for m, seeds in fitted.seeds.items()} == {
        m: (s,) for m, s in SEEDS.items()
    }


def test_an_explanation_adds_up_to_the_probability(fitted: Micromodels) -> None:
    for found in fitted.explain("Sorry! I see.").values():
        logs = [math.log(p) for p in found.probabilities if p]
        logit = math.log(found.probabilities[found.level]) - sum(logs) / len(logs)
        assert sum(found.contributions.values()) + found.intercept == pytest.approx(logit)


def test_save_and_load_give_the_same_numbers(fitted: Micromodels, tmp_path: Path) -> None:
    fitted.offsets["explorations"] = (0.0, 0.25, 0.5)
    fitted.thresholds["explorations"] = 0.65
    fitted.save(tmp_path / "model")
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        "micromodels.json",
        "micromodels.safetensors",
    ]
    again = Micromodels.load(tmp_path / "model", encoder=HandMade())
    assert again.name == "model"
    assert assess(again, TEXTS) == assess(fitted, TEXTS)
    assert again.explain(RESPONSE) == fitted.explain(RESPONSE)


def test_a_folder_without_micromodels_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no micromodels"):
        Micromodels.load(tmp_path)


def test_rows_without_a_mechanism_cannot_teach_it() -> None:
    rows = [Exchange("Hi.", "Sorry!", labels=labels_of({"explorations": 1}))]
    with pytest.raises(UserError, match="no exchange is labelled for emotional_reactions"):
        Micromodels.fit(rows, SentenceVectors(HandMade()), seeds="three")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Micromodels:
    """A real, if tiny, network behind it, loaded by name from the folder it was saved to."""
    folder = tmp_path_factory.mktemp("micromodels")
    name = str(write_tiny_encoder(folder))
    vectors = SentenceVectors(load_sentence_encoder(name), name=name)
    Micromodels.fit(ROWS, vectors).save(folder / "model")
    model = load_identifier(str(folder / "model"))
    assert isinstance(model, Micromodels)
    return model


MANY = [*TEXTS, *ODD_TEXTS, "Why? Why! " * 40, "I am so sorry… really\nsorry 🥺 Where to?", *TEXTS]


def test_order_and_batch_do_not_change_an_assessment(real: Micromodels) -> None:
    whole = assess(real, MANY)
    real.vectors = SentenceVectors(real.vectors.encoder)
    assert [assess(real, [text])[0] for text in MANY] == whole
    real.vectors = SentenceVectors(real.vectors.encoder)
    assert assess(real, MANY[::-1]) == whole[::-1]
    assert assess(real, []) == []


def test_any_text_has_a_finite_assessment_with_exact_rationales(real: Micromodels) -> None:
    for text, assessment in zip(MANY, assess(real, MANY), strict=True):
        for judgement in assessment.judgements.values():
            assert sum(judgement.probabilities) == pytest.approx(1)
            assert all(math.isfinite(p) for p in judgement.probabilities)
            assert judgement.level in (0, 1, 2)
            assert all(piece and piece in text for piece in judgement.rationales)
        explained = real.explain(text)
        assert json.dumps([e.similarity for e in explained.values()], allow_nan=False)


def test_some_text_has_rationales(real: Micromodels) -> None:
    assert any(j.rationales for a in assess(real, MANY) for j in a.judgements.values())


@pytest.mark.integration
def test_with_the_real_encoder_paraphrases_are_near() -> None:
    vectors = SentenceVectors(load_sentence_encoder("minilm-l6"), name="minilm-l6")
    model = Micromodels.fit(ROWS, vectors, seeds="three")
    found = model.explain("I really do understand what you feel. Try yoga.")["interpretations"]
    assert found.sentence == "I really do understand what you feel."
    assert found.seed in ("I understand how you feel.", "I know how you feel.")
    assert 0.7 < found.similarity < 1
