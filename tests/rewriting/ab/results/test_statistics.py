"""Win rates, agreement and strengths of studies against numbers worked out by hand."""

import math

import numpy as np
import pytest

from rewriting.ab.results.statistics import Table, alpha, bradley_terry, rate_figures, table_of
from rewriting.statistics.agreement import nominal_alpha
from rewriting.statistics.shares import wilson

NAN = math.nan


def test_alpha_agrees_with_evalicas_and_has_an_interval() -> None:
    outcome = np.array([[1, 0, 1, 0.5, 1], [1, 0, 0, 0.5, NAN], [1, 0, 1, 1, NAN]])
    found = alpha(Table((1, 2, 3), tuple("abcde"), outcome), seed=0)
    counts = np.array([[3, 0, 0], [0, 0, 3], [2, 0, 1], [1, 2, 0]], float)
    assert found["alpha"] == pytest.approx(nominal_alpha(counts, np.ones((1, 4)))[0])
    low, high = found["interval"]
    assert low < found["alpha"] < high <= 1
    assert found["items"] == 4


@pytest.mark.parametrize("outcome", [[[1, 1], [1, 1]], [[1, NAN], [NAN, 0]]])
def test_without_anything_to_agree_on_there_is_no_alpha(outcome: list[list[float]]) -> None:
    found = alpha(Table((1, 2), ("a", "b"), np.array(outcome)), seed=0)
    assert (found["alpha"], found["interval"]) == (None, None)


def test_alphas_interval_covers() -> None:
    """Two raters who copy an item's answer with a known chance: alpha is its square."""
    generator, copied, studies, held = np.random.default_rng(0), 0.7, 300, 0
    for _ in range(studies):
        truth = generator.integers(0, 2, 80)
        own = generator.integers(0, 2, (2, 80))
        outcome = np.where(generator.random((2, 80)) < copied, truth, own).astype(float)
        table = Table((1, 2), tuple(map(str, range(80))), outcome)
        low, high = alpha(table, seed=1, resamples=400)["interval"]
        held += low <= copied**2 <= high
    assert 0.92 <= held / studies <= 0.98


def test_ties_are_left_out_or_split() -> None:
    votes = [(1, "a", 1.0), (1, "b", 0.5), (1, "c", 1.0), (2, "a", 0.0), (2, "b", 1.0)]
    table = table_of(votes)
    assert (table.wins, table.ties, table.losses) == (3, 1, 1)
    out = rate_figures(table, ties="left_out", seed=0)
    split = rate_figures(table, ties="split", seed=0)
    assert (out["votes"], out["win_rate"]) == (4, 0.75)
    assert (split["votes"], split["win_rate"]) == (5, pytest.approx(0.7))
    assert out["wilson"] == wilson(3, 4)
    assert split["wilson"] == wilson(3.5, 5)
    assert out["binomial_p"] == pytest.approx(10 / 16)


@pytest.mark.parametrize(
    "votes",
    [
        [],
        [(1, "a", 0.5), (2, "b", 0.5)],
        [(1, "a", 1.0), (1, "b", 0.0)],  # one rater
        [(1, "a", 1.0), (2, "b", 0.0), (3, "c", 1.0)],  # raters and items are the same thing
    ],
)
def test_too_few_votes_have_no_clustered_figures(votes: list[tuple[int, str, float]]) -> None:
    found = rate_figures(table_of(votes), ties="left_out", seed=0)
    assert found["clustered"] is None
    assert found["clustered_p"] is None


def test_strengths_of_two_systems_are_their_log_odds() -> None:
    votes = [(n % 5, f"e{n}", "a", "b", float(n % 4 > 0)) for n in range(40)]  # 30 to 10
    found = bradley_terry(votes, ("a", "b"), seed=0, resamples=40)
    assert found["a"]["strength"] == pytest.approx(math.log(3) / 2, abs=1e-3)
    assert found["b"]["strength"] == pytest.approx(-math.log(3) / 2, abs=1e-3)
    low, high = found["a"]["interval"]
    assert low < math.log(3) / 2 < high


def test_strengths_follow_who_beats_whom() -> None:
    pairs = [("a", "b"), ("b", "c"), ("a", "c")]
    votes = [
        (rater, f"e{n}", *pairs[n % 3], 1.0 if n % 7 else 0.5)
        for rater in (1, 2)
        for n in range(60)
    ]
    found = bradley_terry(votes, ("c", "b", "a"), seed=0, resamples=10)
    assert list(found) == ["c", "b", "a"]
    assert found["a"]["strength"] > found["b"]["strength"] > found["c"]["strength"]
    assert sum(one["strength"] for one in found.values()) == pytest.approx(0)


def test_correlations_are_what_a_plan_asks_for() -> None:
    from rewriting.ab.study.simulation import simulated_votes

    votes, _, _ = simulated_votes(
        np.random.default_rng(0),
        studies=1,
        raters=60,
        items=60,
        votes_per_item=60,
        win_rate=0.6,
        rater_correlation=0.2,
        item_correlation=0.1,
    )
    table = Table(tuple(range(60)), tuple(map(str, range(60))), votes[0])
    found = rate_figures(table, ties="left_out", seed=0)
    assert found["rater_correlation"] == pytest.approx(0.2, abs=0.06)
    assert found["item_correlation"] == pytest.approx(0.1, abs=0.04)


def test_one_vote_an_item_can_be_compared() -> None:
    votes = [(n // 40, f"item {n}", float(n % 4 > 0)) for n in range(240)]
    found = rate_figures(table_of(votes), ties="left_out", seed=0)
    assert found["clustered_p"] < 0.01
    low, high = found["clustered"]
    assert low < 0.75 < high
    assert found["item_correlation"] is None
    assert found["rater_correlation"] is not None
