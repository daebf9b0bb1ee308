"""How much of what the seeker appraised is met: by hand, and on odd input."""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from rewards.appraisals.alignment.pairs import Grid
from rewards.appraisals.alignment.reading import (
    Reading,
    met_appraisals,
    met_share,
    with_called_labels,
)
from rewards.appraisals.appraiser import Appraisal
from rewards.appraisals.units import LABELS
from rewards.named import Models, build_rewards
from rewards.terms.appraisal_alignment import AlignmentReader, AppraisalAlignment
from rewriting.errors import UserError
from tests.rewards.appraisals.alignment.test_model import grid_of
from tests.rewards.appraisals.test_appraiser import ByWord
from tests.rewards.fakes import ODD_TEXTS
from tests.test_docs import DOCS, run_page


def appraisal(**probabilities: float) -> Appraisal:
    names = {"advice": "Advice", "agency": "Self-Other Agency", "none": "None"}
    given = {names[key]: value for key, value in probabilities.items()}
    return Appraisal(0, 1, "x", tuple(given.get(label, 0.0) for label in LABELS))


def test_the_share_by_hand() -> None:
    reading = Reading(
        (appraisal(agency=1.0), appraisal(agency=0.5, none=0.5)),
        (appraisal(agency=0.8, none=0.2), appraisal(advice=1.0)),
        ((0.5, 0.9), (0.1, 0.4)),
    )
    # Advice counts half: 0.5·0.8 = 0.4 against 0.9·0.5 = 0.45; then 0.08 against 0.2.
    assert met_share(reading, advice_weight=0.5) == pytest.approx((0.45 + 0.5 * 0.2) / 1.5)
    # Not at all: 0.4 and 0.08. Like everything else: 0.9 and 0.4.
    assert met_share(reading, advice_weight=0.0) == pytest.approx((0.4 + 0.5 * 0.08) / 1.5)
    assert reading.met == pytest.approx((0.9 + 0.5 * 0.4) / 1.5)


def test_nothing_appraised_or_nothing_said_is_nothing_met() -> None:
    bare = appraisal(none=1.0)
    assert met_share(Reading((), (), ()), advice_weight=1.0) == 0.0
    assert met_share(Reading((bare,), (bare,), ((0.9,),)), advice_weight=1.0) == 0.0
    assert met_share(Reading((appraisal(agency=1.0),), (), ((),)), advice_weight=1.0) == 0.0


def test_what_is_met_appraisal_by_appraisal() -> None:
    reading = Reading(
        (appraisal(agency=0.9, none=0.1), appraisal(agency=1.0), appraisal(none=1.0)),
        (appraisal(none=1.0), appraisal(advice=0.6, none=0.4)),
        ((0.9, 0.6), (0.9, 0.4), (0.9, 0.9)),
    )
    # What says nothing meets nothing; a sentence that appraises nothing is not there to be met.
    assert met_appraisals(reading) == {"Self-Other Agency": 0.5}
    assert met_appraisals(Reading((appraisal(advice=1.0),), (), ((),))) == {"Advice": 0.0}
    assert met_appraisals(Reading((), (), ())) == {}


class Encoder:
    """Counts how often it is told to forget."""

    batch_size = 1

    def __init__(self) -> None:
        self.forgotten = 0

    def forget(self) -> None:
        self.forgotten += 1


@pytest.mark.parametrize("batch_size", [1, 8])
def test_a_batched_reader_starts_every_call_afresh(batch_size: int) -> None:
    appraiser, alignment, shared = ByWord(), SameWord(), Encoder()
    appraiser.states = alignment.states = shared  # type: ignore[attr-defined]
    reader = AlignmentReader(appraiser, alignment, batch_size=batch_size)
    assert shared.batch_size == batch_size
    reader([POST], ["Rest."])
    reader([POST], ["Rest."])
    assert shared.forgotten == (2 if batch_size > 1 else 0)


class SameWord:
    """Aligned where the two sentences share the word fault, or the reply says rest."""

    name = "same word"
    scale = 1.0
    thresholds = {"empathy": 0.0, "advice": 0.0}  # noqa: RUF012

    def __init__(self) -> None:
        self.asked = 0

    def scores(self, grids: Sequence[Grid]) -> list[Tensor]:
        self.asked += len(grids)
        return [
            torch.tensor(
                [
                    [50.0 if "fault" in a and ("fault" in b or "rest" in b.lower()) else -50.0
                     for b in grid.observer.spans]
                    for a in grid.target.spans
                ]
            )
            for grid in grids
        ]  # fmt: skip


POST = "It was my fault. Why?"


def test_the_term_rewards_what_meets_this_post() -> None:
    alignment = SameWord()
    term = AppraisalAlignment(AlignmentReader(ByWord(), alignment), name="met")
    values = term(
        completions=["No fault of yours.", "Rest.", "Oh dear.", "", "No fault of yours."],
        seeker_post=[POST, POST, POST, POST, "It rained."],
        response_post=["Stop."] * 5,
    )
    assert values == pytest.approx([1.0, 0.5, 0.0, 0.0, 0.0])
    assert alignment.asked == 4  # blank replies are not asked for
    assert term.__name__ == "met"
    twice = term(completions=["Rest."] * 3, seeker_post=[POST] * 3)
    assert twice == pytest.approx([0.5] * 3)
    assert alignment.asked == 5  # equal rows are read once


def test_odd_input_is_finite() -> None:
    term = AppraisalAlignment(AlignmentReader(ByWord(), SameWord()))
    posts = [post for post in ODD_TEXTS for _ in ODD_TEXTS]
    values = term(completions=list(ODD_TEXTS) * len(ODD_TEXTS), seeker_post=posts)
    assert all(math.isfinite(value) and 0 <= value <= 1 for value in values)
    assert term(completions=[], seeker_post=[]) == []


def test_by_name_and_with_options() -> None:
    models = Models(alignment=AlignmentReader(ByWord(), SameWord()))
    rewards = build_rewards("{appraisal_alignment: {weight: 2, advice_weight: 0.25}}", models)
    scores = rewards.score(completions=["Rest."], seeker_post=[POST], response_post=["Oh."])
    assert scores.totals == pytest.approx([0.5])
    with pytest.raises(UserError, match="from 0 to 1"):
        AppraisalAlignment(AlignmentReader(ByWord(), SameWord()), advice_weight=2)


def test_called_labels_take_the_place_of_annotated_ones() -> None:
    (grid,) = with_called_labels([grid_of(["my fault"], ["rest", "oh"], "ann")], ByWord())
    assert grid.target.labels[0][LABELS.index("Self-Other Agency")] == 1.0
    assert grid.observer.labels[0][LABELS.index("Advice")] == 1.0
    assert sum(grid.observer.labels[1]) == 0.0  # no appraisal has no share


@pytest.mark.integration
def test_the_shipped_models_prefer_a_reply_to_its_own_post() -> None:
    from rewriting.data.appraisals import load_appraisals

    rows = [e for e in load_appraisals("sample:test") if len(e.alignments) > 1][:24]
    posts = [e.target_text for e in rows]
    replies = [e.observer_text for e in rows]
    term = AppraisalAlignment()
    own = term(completions=replies, seeker_post=posts)
    moved = term(completions=replies[7:] + replies[:7], seeker_post=posts)
    above = sum((a > b) + 0.5 * (a == b) for a in own for b in moved)
    assert above / (len(own) * len(moved)) > 0.8


@pytest.mark.integration
def test_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    assert run_page(DOCS / "appraisals.md", tmp_path) == 2
