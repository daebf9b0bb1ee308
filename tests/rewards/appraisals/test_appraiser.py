"""Units, heads and the way back from sentences to places in the text."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from rewards.appraisals.appraiser import (
    SHIPPED,
    AppraisalHead,
    SentenceAppraiser,
    appraise,
    load_appraiser,
    signs_of,
)
from rewards.appraisals.sentence_states import SentenceStates
from rewards.appraisals.units import LABELS, Unit, sentences_of, units_of
from rewriting.data.appraisals import AppraisedExchange, Role, Span
from rewriting.errors import UserError
from tests.rewards.fakes import ODD_TEXTS
from tests.tiny_lm import write_tiny_encoder

EXCHANGE = AppraisedExchange(
    "He left, and I let him. Why? So tired.",
    "Rest now.",
    (
        Span(0, 7, "Objective Experience"),
        Span(13, 22, "Self-Other Agency"),
        Span(29, 38, "Anticipated Effort"),
    ),
    (Span(0, 9, "Advice"),),
    frozenset(),
    "train",
    seeker_id="ann",
)


def test_units_are_marked_parts_and_unmarked_sentences() -> None:
    assert units_of([EXCHANGE, EXCHANGE]) == [
        Unit("He left", "target", "Objective Experience", "ann"),
        Unit("I let him", "target", "Self-Other Agency", "ann"),
        Unit("Why?", "target", "None", "ann"),
        Unit("So tired.", "target", "Anticipated Effort", "ann"),
        Unit("Rest now.", "observer", "Advice", "ann"),
    ]


def test_a_whole_sentence_has_the_label_of_most_of_it() -> None:
    assert [(unit.text, unit.label) for unit in sentences_of([EXCHANGE])] == [
        ("He left, and I let him.", "Self-Other Agency"),  # 9 letters against 7
        ("Why?", "None"),
        ("So tired.", "Anticipated Effort"),
        ("Rest now.", "Advice"),
    ]


class ByWord:
    """Advice where it says rest, agency where it says fault, else none."""

    name = "by word"

    def probabilities(self, texts: Sequence[str], roles: Sequence[Role]) -> Tensor:
        found = torch.zeros(len(texts), len(LABELS))
        for row, text in enumerate(texts):
            label = "Advice" if "rest" in text.lower() else "None"
            label = "Self-Other Agency" if "fault" in text else label
            found[row, LABELS.index(label)] = 1.0
        return found


def test_appraisals_stand_where_the_sentences_do() -> None:
    text = " My fault!\n\nWhat now?  Rest. "
    found, nothing = appraise(ByWord(), [text, " \n"], ["target", "observer"])
    assert [(a.label, text[a.start : a.end]) for a in found] == [
        ("Self-Other Agency", "My fault!"),
        ("None", "What now?"),
        ("Advice", "Rest."),
    ]
    assert [a.any_appraisal for a in found] == [1.0, 0.0, 1.0]
    assert nothing == []
    assert appraise(ByWord(), [], []) == []


def test_signs() -> None:
    assert signs_of(["Why me?", "one two three four five"], ["target", "observer"]).tolist() == [
        [0.0, 1.0, pytest.approx(0.1)],
        [1.0, 0.0, 0.25],
    ]


@pytest.fixture
def states(tmp_path: Path) -> SentenceStates:
    return SentenceStates.load(str(write_tiny_encoder(tmp_path)))


def test_states_are_unit_vectors_of_several_layers_free_of_their_batch(
    states: SentenceStates,
) -> None:
    texts = ["a cat", "a much longer sentence about a cat"]
    vectors = states.embed(texts)
    assert vectors.shape == (2, 3, 16)
    assert vectors.norm(dim=-1).flatten().tolist() == pytest.approx([1.0] * 6, abs=1e-5)
    assert torch.equal(states.embed(texts[:1])[0], vectors[0])
    assert torch.allclose(states(texts), vectors, atol=1e-5)  # padding is masked
    assert states.layers == [1, 1, 1]
    states.forget()
    states.batch_size = 2
    assert torch.allclose(states.embed(texts[::-1]), vectors.flip(0), atol=1e-5)


@pytest.mark.parametrize("rank", [0, 2])
def test_a_saved_head_gives_the_same_numbers(tmp_path: Path, rank: int) -> None:
    states = SentenceStates.load(str(write_tiny_encoder(tmp_path)), rank=rank)
    head = AppraisalHead(states.width)
    with torch.no_grad():
        for parameter in (p for p in (*states.parameters(), *head.parameters()) if p.requires_grad):
            parameter.normal_(std=0.3)
    head.temperature.fill_(1.7)
    appraiser = SentenceAppraiser(states, head)
    appraiser.save(tmp_path / "model")
    again = load_appraiser(str(tmp_path / "model"))
    texts, roles = ["It was my fault.", "Rest."], ["target", "observer"]
    same = again.probabilities(texts, roles)  # type: ignore[arg-type]
    assert torch.equal(same, appraiser.probabilities(texts, roles))  # type: ignore[arg-type]
    assert same.sum(dim=-1).tolist() == pytest.approx([1.0, 1.0])
    shared = SentenceAppraiser.load(tmp_path / "model", states=states)
    assert (shared.states is states) == (rank == 0)  # trained matrices are nobody else's
    tuned = SentenceStates.load(states.name, rank=2)
    assert SentenceAppraiser.load(tmp_path / "model", states=tuned).states is not tuned


def test_odd_texts_have_finite_appraisals(states: SentenceStates) -> None:
    appraiser = SentenceAppraiser(states, AppraisalHead(states.width))
    for found in appraise(appraiser, ODD_TEXTS, ["target"] * len(ODD_TEXTS)):
        for appraisal in found:
            assert sum(appraisal.probabilities) == pytest.approx(1.0, abs=1e-5)
    assert appraiser.probabilities([], []).shape == (0, 10)


def test_a_folder_that_is_neither() -> None:
    with pytest.raises(UserError, match="does not exist"):
        load_appraiser("/nowhere/at/all")


@pytest.mark.integration
def test_the_shipped_head_knows_the_plain_cases() -> None:
    appraiser = load_appraiser()
    assert SHIPPED.is_dir()
    cases: list[tuple[str, Role, str]] = [
        (
            "You should call your doctor tomorrow and ask for a second opinion.",
            "observer",
            "Advice",
        ),
        ("Hang in there, it will all work out.", "observer", "Trope"),
        ("I don't know if he will ever come back.", "target", "Certainty"),
        ("It was my fault, I should have called her.", "target", "Self-Other Agency"),
    ]
    found = appraise(appraiser, [text for text, _, _ in cases], [role for _, role, _ in cases])
    assert [row[0].label for row in found] == [label for _, _, label in cases]
