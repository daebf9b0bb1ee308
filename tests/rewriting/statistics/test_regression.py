"""Slopes and their errors against numbers worked out by hand and against simulation."""

import numpy as np
import pytest
from scipy.stats import t

from rewriting.statistics.regression import clustered_mean, effective_number, slope


def test_a_slope_by_hand() -> None:
    # Through (0,1) (1,2) (2,4) (3,5): slope 7/5; residuals .1 -.3 .3 -.1 around 0.9 + 1.4 x.
    y, x = np.array([1.0, 2, 4, 5]), np.arange(4.0)
    found = slope(y, x, np.arange(4))
    assert found is not None
    assert found.estimate == pytest.approx(1.4)
    scores = np.array([-1.5, -0.5, 0.5, 1.5]) * np.array([0.1, -0.3, 0.3, -0.1])
    # The outer two carry most: weights 9 1 1 9, which are 20² / 164 in effect.
    effective = 400 / 164
    error = np.sqrt(effective / (effective - 1) * 3 / 2 * (scores @ scores)) / 5
    reach = t.ppf(0.975, effective - 1) * error
    assert (found.low, found.high) == pytest.approx((1.4 - reach, 1.4 + reach), rel=1e-5)


def test_a_difference_of_two_groups_is_a_slope() -> None:
    y = np.array([1.0, 3, 2, 6, 7, 8])
    found = slope(y, np.array([0.0, 0, 0, 1, 1, 1]), np.arange(6))
    assert found is not None
    assert found.estimate == pytest.approx(5.0)


def test_within_compares_a_person_with_himself() -> None:
    # Who stays longer starts higher, and nobody changes: across people a slope, within none.
    y = np.array([1.0, 1, 3, 3, 3, 5, 5, 5, 5, 5, 5, 5, 5])
    x = np.array([0.0, 1, 0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 3])
    person = np.array([0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3])
    across, within = slope(y, x, person), slope(y, x, person, within=True)
    assert across is not None
    assert across.estimate > 0.3
    assert within is not None
    assert within.estimate == pytest.approx(0)


def test_what_is_given_is_held_fixed() -> None:
    generator = np.random.default_rng(0)
    given = generator.normal(size=4000)
    x = given + generator.normal(size=4000)
    y = 2 * given + 0.5 * x + generator.normal(size=4000)
    found = slope(y, x, np.arange(4000), given_N=given)
    assert found is not None
    assert found.estimate == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("x", "people"), [([1.0, 1, 1, 1], [0, 1, 2, 3]), ([0.0, 1, 2, 3], [0, 0, 1, 1])]
)
def test_no_slope_without_variation_or_people(x: list[float], people: list[int]) -> None:
    assert slope(np.arange(4.0), np.array(x), np.array(people)) is None


def test_intervals_cover_and_chance_is_rarely_news_when_people_differ() -> None:
    generator = np.random.default_rng(1)
    covered = news = 0
    for _ in range(400):
        person = np.repeat(np.arange(40), 12)
        habit = generator.normal(size=40)[person]
        trait = generator.normal(size=40)[person]  # the same for all replies of a person
        y = 0.3 * trait + habit + generator.normal(size=480)
        found = slope(y, trait, person)
        assert found is not None
        covered += found.low <= 0.3 <= found.high
        nothing = slope(habit + generator.normal(size=480), trait, person)
        assert nothing is not None
        news += nothing.p < 0.05
    assert 0.90 <= covered / 400 <= 0.98
    assert news / 400 <= 0.10  # 0.05 with more people; taking rows for people gives about 0.6


def test_a_group_of_one_person_is_not_compared() -> None:
    # That person's own mean fits them exactly, so an error summed over clusters would be nearly 0.
    person = np.repeat(np.arange(60), 40)
    y = np.random.default_rng(0).normal(size=60)[person]
    y += np.random.default_rng(1).normal(size=len(y))
    assert slope(y, (person == 7).astype(float), person) is None


def test_a_group_of_few_people_is_rarely_news() -> None:
    generator = np.random.default_rng(2)
    person = np.repeat(np.arange(60), 10)
    member = (person < 3).astype(float)
    news = 0
    for _ in range(400):
        y = generator.normal(size=60)[person] + generator.normal(size=600)
        found = slope(y, member, person)
        assert found is not None
        news += found.p < 0.05
    assert news / 400 <= 0.08  # 0.21 with all people as degrees of freedom


def test_the_effective_number_by_hand() -> None:
    assert effective_number(np.array([2.0, 2, 2])) == pytest.approx(3)
    assert effective_number(np.array([3.0, 1])) == pytest.approx(1.6)
    assert effective_number(np.zeros(2)) == 0


def test_a_mean_of_one_person_has_no_interval() -> None:
    assert clustered_mean(np.array([1.0, 3]), np.array([5, 5])) == (2.0, None, None)
    assert clustered_mean(np.array([1.0] * 9 + [3]), np.array([5] * 9 + [6]))[1:] == (None, None)


def test_a_mean_of_clusters_by_hand() -> None:
    centre, low, high = clustered_mean(np.array([1.0, 1, 4, 4]), np.array([0, 0, 1, 1]))
    error = np.sqrt(2 * (9.0 + 9.0) / 16)  # cluster sums of what is left: -3 and 3
    assert centre == 2.5
    assert (low, high) == pytest.approx((2.5 - 12.7062 * error, 2.5 + 12.7062 * error), rel=1e-4)
