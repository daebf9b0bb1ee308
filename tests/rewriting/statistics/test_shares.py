"""Wilson's interval and the binomial test against textbooks."""

import math

import pytest
from scipy.stats import binomtest
from statsmodels.stats.proportion import proportion_confint

from rewriting.statistics.shares import binomial_p, wilson

NAN = math.nan


def test_wilson_is_the_textbooks() -> None:
    assert wilson(7, 10) == pytest.approx(proportion_confint(7, 10, method="wilson"))
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=5e-5)  # 0.5 ± 1.96 / 2√(10 + 1.96²)
    assert wilson(0, 0) is None


@pytest.mark.parametrize("rate", [0.5, 0.65, 0.8, 0.9])
def test_wilson_covers_independent_votes(rate: float) -> None:
    """The exact coverage over every outcome of 240 votes."""
    from scipy.stats import binom

    held = 0.0
    for wins in range(241):
        low, high = wilson(wins, 240) or (NAN, NAN)
        held += binom.pmf(wins, 240, rate) * (low <= rate <= high)
    assert 0.93 <= held <= 0.97


def test_the_binomial_test_rounds_halves_towards_no_difference() -> None:
    assert binomial_p(9, 10) == pytest.approx(22 / 1024)  # 2 · (10 + 1) / 2¹⁰
    assert binomial_p(8.5, 10) == binomtest(8, 10).pvalue
    assert binomial_p(1.5, 10) == binomtest(2, 10).pvalue
    assert binomial_p(0, 0) is None
