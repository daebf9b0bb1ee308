"""The measures of rewrites on rows whose figures can be worked out."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from rewriting import Edit, Exchange, Rewrite
from rewriting.measures.measure import figures_of
from rewriting.measures.rewrites import (
    MEASURES,
    ON_REQUEST,
    Outcome,
    Outcomes,
    compared_measures,
    initial_group,
    measure_of,
    measures_of,
    rows_by_initial,
    scored_terms,
)


@dataclass(frozen=True)
class Level:
    """What an identifier says, as a number."""

    empathy: int
    judgements: dict[str, Any] = field(default_factory=dict)


def outcome(post: str, before: int, after: int, **values: float | None) -> Outcome:
    rewrite = Rewrite(Exchange(post, "Rest."), "Oh. Rest.", (Edit.insert(0, "Oh."),))
    return Outcome(rewrite, Level(before), Level(after), values)


ROWS = [
    outcome("I failed.", 0, 2, perplexity=10.0, coherence=0.5),
    outcome("I failed.", 3, 3, perplexity=1000.0, coherence=None),
    outcome("It rains.", 6, 2, perplexity=100.0, coherence=0.25),
]


def test_figures_by_hand() -> None:
    figures, intervals = figures_of(measures_of(ROWS), Outcomes(ROWS))
    assert list(figures) == list(intervals) == list(MEASURES)
    assert (figures["empathy_before"], figures["empathy_after"]) == pytest.approx((3, 7 / 3))
    assert figures["empathy_change"] == pytest.approx(-2 / 3)
    assert (figures["improved"], figures["worsened"]) == pytest.approx((100 / 3, 100 / 3))
    assert figures["perplexity"] == pytest.approx(100)
    assert intervals["perplexity"] == pytest.approx((100, 100))  # both seekers have 100
    assert figures["coherence"] == pytest.approx(0.375)
    assert figures["specificity"] is None
    assert figures["edit_rate"] == pytest.approx(1 / 2)
    assert figures["distinct_1"] == pytest.approx(2 / 6)
    assert figures["repeated_sentences"] == 100
    assert figures["same_sentence"] is None  # nobody told how to compare
    assert figures["n"] == 3


def test_nearly_the_same_needs_an_encoder() -> None:
    table = Outcomes(ROWS, encode=lambda texts: np.ones((len(texts), 1)))
    assert MEASURES["same_sentence"].figure(table) == (100, (100, 100))


def test_terms_that_were_asked_for_stand_behind_the_others_and_are_tested() -> None:
    rows = [outcome("x", 0, 1, **{"rewards/mine": 1.0, "judge": 0.5, "judge_position_bias": 0.0})]
    assert list(measures_of(rows))[len(MEASURES) :] == [
        "rewards/mine",
        "judge",
        "judge_position_bias",
    ]
    tested = ["empathy_change", "perplexity", "coherence", "specificity", "specificity_new"]
    assert list(compared_measures(rows)) == [*tested, "judge", "rewards/mine"]
    own = measure_of("rewards/mine")
    assert (own.title, own.better, own.digits, own.plotted) == ("mine", "", 3, True)
    assert own.figure(Outcomes(rows)) == (1.0, None)


def test_terms_are_asked_for_without_a_weight() -> None:
    assert set(scored_terms()) == {"perplexity", "coherence", "specificity"}
    assert all(options["weight"] == 0 for options in scored_terms().values())


def test_groups_of_originals() -> None:
    assert [initial_group(level) for level in range(7)] == ["none", *["some"] * 3, *["high"] * 3]
    assert rows_by_initial([5, 0, 2, 0]) == {"none": [1, 3], "some": [2], "high": [0]}


def test_every_measure_is_whole() -> None:
    for measure in (MEASURES | ON_REQUEST).values():
        assert measure.better in ("higher", "lower", "")
        assert measure.title
        assert measure.meaning
        assert (measure.value is None) != (measure.of_all is None)
        # What is compared must be better one way, and measured row by row.
        assert not measure.tested or (measure.better and measure.value)
