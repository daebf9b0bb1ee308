"""Balance, whatever the numbers are: of votes, of loads, of sides, in blocks."""

from collections import Counter
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewriting.ab.study.assignment import BLOCK, assign_items, balanced_colours
from rewriting.ab.study.schedule import lead_of
from rewriting.ab.study.study import Assignment, Item
from rewriting.errors import UserError


def items(count: int, systems: str = "xy") -> list[Item]:
    return [
        Item(f"{number}{a}{b}", "post", {a: "one", b: "two"})
        for number in range(count)
        for a, b in combinations(systems, 2)
    ]


def lefts(assignments: dict[int, list[Assignment]]) -> Counter[tuple[str, str]]:
    return Counter((one.item, one.left) for share in assignments.values() for one in share)


@given(
    st.integers(1, 60),
    st.integers(1, 9).flatmap(lambda r: st.tuples(st.just(r), st.integers(1, r))),
    st.integers(0, 99),
)
def test_two_systems_are_balanced_for_every_rater_item_and_block(
    count: int, sizes: tuple[int, int], seed: int
) -> None:
    raters, votes = sizes
    pairs = items(count)
    by_id = {item.id: item for item in pairs}
    assignments = assign_items(pairs, raters=raters, votes_per_item=votes, seed=seed)
    per_item = Counter(one.item for share in assignments.values() for one in share)
    loads = [len(share) for share in assignments.values()]
    assert set(per_item.values()) == {votes}
    assert set(per_item) == set(by_id)
    assert max(loads) - min(loads) <= 1
    for share in assignments.values():
        assert len({one.item for one in share}) == len(share)
        assert abs(lead_of(share, by_id)["x"]) <= 1
        for start in range(0, len(share) - BLOCK + 1, BLOCK):
            assert lead_of(share[start : start + BLOCK], by_id)["x"] == 0
    sides = lefts(assignments)
    assert all(abs(sides[item, "x"] - sides[item, "y"]) <= 1 for item in by_id)


@given(st.integers(1, 20), st.integers(2, 6), st.integers(0, 99))
def test_three_systems_are_balanced_for_every_rater(count: int, raters: int, seed: int) -> None:
    pairs = items(count, "xyz")
    by_id = {item.id: item for item in pairs}
    assignments = assign_items(pairs, raters=raters, votes_per_item=2, seed=seed)
    for share in assignments.values():
        assert all(abs(lead) <= 1 for lead in lead_of(share, by_id).values())
    assert set(Counter(o.item for s in assignments.values() for o in s).values()) == {2}


def test_items_of_three_systems_are_nearly_balanced_too() -> None:
    pairs = items(30, "xyz")
    sides = lefts(assign_items(pairs, raters=6, votes_per_item=4, seed=1))
    uneven = [
        i.id for i in pairs if abs(sides[i.id, min(i.replies)] - sides[i.id, max(i.replies)]) > 2
    ]
    assert not uneven


def test_every_rater_meets_every_other_one() -> None:
    """Raters are drawn anew for each block: no two groups that never share an item."""
    assignments = assign_items(items(40), raters=6, votes_per_item=3, seed=0)
    sets = {rater: {one.item for one in share} for rater, share in assignments.items()}
    assert all(sets[a] & sets[b] for a, b in combinations(sets, 2))


def test_sides_follow_no_pattern() -> None:
    """Next to each other, sides are the same about as often as not: neither ABAB nor AABB."""
    same = [
        one.left == other.left
        for seed in range(20)
        for share in assign_items(items(40), raters=6, votes_per_item=3, seed=seed).values()
        for one, other in pairwise(share)
    ]
    # Five of ten are A: by chance 4/9 inside a block, 1/2 between two. 2,280 neighbours.
    assert 0.41 < sum(same) / len(same) < 0.49


def test_orders_differ_between_raters_and_seeds() -> None:
    one = assign_items(items(20), raters=2, votes_per_item=2, seed=0)
    again = assign_items(items(20), raters=2, votes_per_item=2, seed=0)
    other = assign_items(items(20), raters=2, votes_per_item=2, seed=1)
    assert one == again
    assert one != other
    assert [a.item for a in one[1]] != [a.item for a in one[2]]


def test_more_votes_than_raters_are_refused() -> None:
    with pytest.raises(UserError, match="--votes-per-item"):
        assign_items(items(2), raters=2, votes_per_item=3, seed=0)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=60))
def test_colours_are_even_at_every_node(edges: list[tuple[int, int]]) -> None:
    colours = balanced_colours(edges)
    for side in (0, 1):
        for node in {edge[side] for edge in edges}:
            mine = [c for edge, c in zip(edges, colours, strict=True) if edge[side] == node]
            assert abs(len(mine) - 2 * sum(mine)) <= 1
