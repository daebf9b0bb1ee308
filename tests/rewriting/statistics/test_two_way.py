"""The clustered interval: against hand-made variances, and by how often it holds the truth."""

import numpy as np
import pytest

from rewriting.ab.study.simulation import latent_correlation, rota, simulated_votes
from rewriting.statistics.shares import score_interval
from rewriting.statistics.two_way import Clustered, clustered, two_way_bootstrap

STUDIES = 4000
CLUSTERING = [(0.0, 0.0), (0.05, 0.0), (0.05, 0.1), (0.15, 0.2)]


def only(sure: Clustered, study: int) -> Clustered:
    one = slice(study, study + 1)
    return Clustered(*(getattr(sure, name)[one] for name in Clustered.__slots__))


def test_a_crossed_study_gives_the_mean_squares_of_the_textbook() -> None:
    """Two-way analysis of variance: the variance of the mean is (MS_R + MS_I − MS_E) / RI."""
    raters, items = 3, 5
    votes = np.random.default_rng(0).integers(0, 2, (raters, items)).astype(float)
    votes[0] = 1  # so that raters differ
    mean = votes.mean()
    by_rater, by_item = votes.mean(1), votes.mean(0)
    rest = votes - by_rater[:, None] - by_item[None] + mean
    squares = (
        items * np.square(by_rater - mean).sum() / (raters - 1),
        raters * np.square(by_item - mean).sum() / (items - 1),
        np.square(rest).sum() / ((raters - 1) * (items - 1)),
    )
    found = clustered(votes[None], np.ones((1, raters, items)))
    assert found.components[0] == pytest.approx(
        [(squares[0] - squares[2]) / items, (squares[1] - squares[2]) / raters, squares[2]]
    )
    expected = (squares[0] + squares[1] - squares[2]) / (raters * items)
    assert found.variance[0] == pytest.approx(expected)
    assert found.effective_votes[0] == pytest.approx(mean * (1 - mean) / expected)


def test_a_variance_far_below_that_of_independent_votes_is_not_believed() -> None:
    votes = np.array([[1, 0, 1, 0], [0, 1, 0, 1.0]])  # every rater and item at one half
    found = clustered(votes[None], np.ones((1, 2, 4)))
    assert found.effective_votes[0] == pytest.approx(8 / 0.25)


def test_components_are_right_on_average_in_an_incomplete_study() -> None:
    votes, given, _ = simulated_votes(
        np.random.default_rng(1),
        studies=STUDIES,
        raters=6,
        items=40,
        votes_per_item=2,
        win_rate=0.7,
        rater_correlation=0.1,
        item_correlation=0.2,
    )
    found = clustered(votes, given)
    assert found.components.mean(0) / 0.21 == pytest.approx([0.1, 0.2, 0.7], abs=0.01)
    assert found.variance.mean() == pytest.approx(np.var(found.rate), rel=0.06)


def test_the_interval_holds_what_the_test_does_not_reject() -> None:
    votes, given, _ = simulated_votes(
        np.random.default_rng(2), studies=50, raters=5, items=20, votes_per_item=3, win_rate=0.6
    )
    found = clustered(votes, given)
    low, high = found.interval()
    for study in range(50):
        for bound in (low[study], high[study]):
            if 0 < bound < 1:
                assert found.p_value(bound)[study] == pytest.approx(0.05)


def test_with_the_normal_quantile_it_is_wilsons() -> None:
    low, high = score_interval(np.array(0.7), np.array(10.0), 1.959963984540054)
    assert (float(low), float(high)) == pytest.approx((0.39678, 0.89221), abs=1e-5)


def test_where_all_agree_votes_count_as_independent() -> None:
    found = clustered(np.ones((1, 4, 10)), np.ones((1, 4, 10)))
    assert found.effective_votes[0] == 40
    assert found.degrees_of_freedom[0] == 3
    low, high = found.interval()
    assert (low[0], high[0]) == (pytest.approx(40 / (40 + 3.182446**2), abs=1e-5), 1)
    bounds = two_way_bootstrap(np.ones((4, 10)), np.ones((4, 10)), found, seed=0, resamples=50)
    assert bounds == pytest.approx((low[0], high[0]))


@pytest.mark.parametrize(("of_rater", "of_item"), CLUSTERING)
@pytest.mark.parametrize(("win_rate", "votes_per_item"), [(0.5, 6), (0.65, 3), (0.8, 6)])
def test_95_per_cent_intervals_hold_the_truth_in_93_to_97(
    of_rater: float, of_item: float, win_rate: float, votes_per_item: int
) -> None:
    """Six raters, forty items, a fifth of ties left out; independent votes and clustered ones."""
    votes, given, _ = simulated_votes(
        np.random.default_rng(3),
        studies=STUDIES,
        raters=6,
        items=40,
        votes_per_item=votes_per_item,
        win_rate=win_rate,
        tie_rate=0.2,
        rater_correlation=of_rater,
        item_correlation=of_item,
    )
    low, high = clustered(votes, given).interval()
    covered = ((low <= win_rate) & (win_rate <= high)).mean()
    assert 0.93 <= covered <= 0.97


def test_the_bootstrap_covers_as_well_and_independence_does_not() -> None:
    """Six raters who differ: what makes plain intervals too narrow."""
    studies, rate = 800, 0.65
    votes, given, _ = simulated_votes(
        np.random.default_rng(4),
        studies=studies,
        raters=6,
        items=40,
        votes_per_item=6,
        win_rate=rate,
        rater_correlation=0.05,
        item_correlation=0.1,
    )
    sure = clustered(votes, given)
    held = 0
    for study in range(studies):
        low, high = two_way_bootstrap(
            votes[study], given[study], only(sure, study), seed=study, resamples=150
        )
        held += low <= rate <= high
    assert 0.93 <= held / studies <= 0.97
    low, high = score_interval(sure.rate, np.full(studies, 240.0), 1.96)
    assert ((low <= rate) & (rate <= high)).mean() < 0.8


@pytest.mark.parametrize(("of_rater", "of_item"), CLUSTERING)
def test_p_values_are_uniform_without_a_difference(of_rater: float, of_item: float) -> None:
    votes, given, _ = simulated_votes(
        np.random.default_rng(5),
        studies=STUDIES,
        raters=6,
        items=40,
        votes_per_item=6,
        win_rate=0.5,
        rater_correlation=of_rater,
        item_correlation=of_item,
    )
    p = clustered(votes, given).p_value()
    for share in (0.01, 0.05, 0.1, 0.25, 0.5, 0.75):
        assert (p <= share).mean() == pytest.approx(share, abs=0.022)


def test_simulated_votes_are_as_correlated_as_asked() -> None:
    assert latent_correlation(0.7, 0.0) == 0
    # Signs of normals with correlation r agree with probability 1/2 + arcsin(r)/π.
    assert latent_correlation(0.5, 0.1) == pytest.approx(np.sin(0.1 * np.pi / 2), abs=1e-4)


def test_the_rota_is_even() -> None:
    given = rota(6, 40, 3)
    assert set(given.sum(0)) == {3}
    assert set(given.sum(1)) == {20}
    assert rota(4, 5, 3).sum(1).tolist() == [4, 4, 4, 3]


@pytest.mark.parametrize(("of_rater", "of_item"), [(0.0, 0.0), (0.05, 0.1)])
def test_with_one_vote_an_item_the_test_holds_its_level(of_rater: float, of_item: float) -> None:
    votes, decided, _ = simulated_votes(
        np.random.default_rng(5),
        studies=3000,
        raters=8,
        items=120,
        votes_per_item=1,
        win_rate=0.5,
        tie_rate=0.15,
        rater_correlation=of_rater,
        item_correlation=of_item,
    )
    found = clustered(votes, decided)
    assert (found.components[:, 1] == 0).all()
    assert 0.03 <= (found.p_value() <= 0.05).mean() <= 0.06


def test_what_cannot_be_told_apart_has_no_p_value() -> None:
    votes = np.array([[[1.0, 0, 0], [0, 0, 0], [0, 0, 1]]])
    assert np.isnan(clustered(votes, np.eye(3)[None]).p_value()).all()
