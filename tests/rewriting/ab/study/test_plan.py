"""Plans: large enough in simulation, larger where a study asks more, honest where none suffices."""

from dataclasses import replace

import pytest

from rewriting.ab.study.plan import (
    Assumptions,
    Plan,
    confirmed,
    fewest_items,
    plan_json,
    plans,
    power_of,
    simulated_power,
)
from rewriting.errors import UserError

DEFAULT = Assumptions()


@pytest.mark.parametrize(
    ("assumptions", "raters", "votes_per_item"),
    [
        (DEFAULT, 12, 12),
        (DEFAULT, 16, 3),
        (DEFAULT, 16, 1),
        (Assumptions(win_rate=0.7, criteria=1, tie_rate=0.0), 6, 6),
        (Assumptions(rater_correlation=0, item_correlation=0), 8, 2),
        (Assumptions(win_rate=0.75, power=0.9, rater_correlation=0.05, item_correlation=0.2), 8, 4),
    ],
)
def test_the_power_is_reached_in_simulation(
    assumptions: Assumptions, raters: int, votes_per_item: int
) -> None:
    """Other studies than those the plan was confirmed with; two standard errors are 1.5 points."""
    plan = confirmed(assumptions, fewest_items(assumptions, raters, votes_per_item), seed=1)
    reached = simulated_power(assumptions, plan, studies=3000, seed=2)
    assert assumptions.power - 0.015 <= reached <= assumptions.power + 0.07


def test_the_formula_is_near_the_simulation() -> None:
    plan = Plan(12, 3, 100, 0.0)
    assert power_of(DEFAULT, 12, 3, 100) == pytest.approx(
        simulated_power(DEFAULT, plan, studies=4000, seed=3), abs=0.03
    )


@pytest.mark.parametrize(
    "harder",
    [
        {"win_rate": 0.62},
        {"power": 0.9},
        {"criteria": 6},
        {"tie_rate": 0.4},
        {"rater_correlation": 0.04},
        {"item_correlation": 0.2},
    ],
)
def test_asking_more_takes_more_items(harder: dict[str, float]) -> None:
    usual = fewest_items(DEFAULT, 16, 3).items
    more = fewest_items(replace(DEFAULT, **harder), 16, 3).items
    assert usual is not None
    assert more is not None
    assert more > usual


def test_a_win_rate_below_one_half_is_as_hard_as_above() -> None:
    assert fewest_items(replace(DEFAULT, win_rate=0.35), 12, 3) == fewest_items(DEFAULT, 12, 3)


def test_three_raters_cannot_speak_for_all() -> None:
    plan = fewest_items(DEFAULT, 3, 3)
    assert plan.items is None
    assert plan.power < 0.5
    assert confirmed(DEFAULT, plan) is plan
    with pytest.raises(ValueError, match="without items"):
        simulated_power(DEFAULT, plan)


def test_votes_per_item_are_everybodys_unless_told() -> None:
    found = plans(DEFAULT, raters=(8, 16))
    assert [plan.votes_per_item for plan in found] == [8, 16]
    assert [plan.votes_per_item for plan in plans(DEFAULT, raters=(2, 16), votes_per_item=3)] == [
        2,
        3,
    ]
    row = plan_json(DEFAULT, found)["plans"][0]
    assert row["votes_per_rater"] == row["items"]


def test_correlations_that_no_votes_have_are_refused() -> None:
    with pytest.raises(UserError, match="within pairs at once: lower one"):
        plans(Assumptions(win_rate=0.9, rater_correlation=0.4, item_correlation=0.5), raters=(6,))


def test_tiny_studies_can_be_simulated() -> None:
    """Some of them have a single decided vote, or none."""
    assumptions = Assumptions(win_rate=0.9, tie_rate=0.6)
    for raters, votes_per_item, items in ((2, 1, 2), (2, 2, 2), (24, 1, 5)):
        plan = Plan(raters, votes_per_item, items, 0.0)
        assert 0 <= simulated_power(assumptions, plan, studies=300) < 0.5
