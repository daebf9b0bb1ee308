"""The rows and the randomness of a step follow from its number alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewriting.runtime.seeds import derive_seed, rows_of_step


@given(st.integers(1, 40), st.integers(0, 30), st.sampled_from([1, 2, 4]))
def test_processes_share_the_batch_of_one(num_rows: int, step: int, num_processes: int) -> None:
    whole = rows_of_step(num_rows, 8, seed=3, step=step)
    parts = [
        rows_of_step(num_rows, 8, seed=3, step=step, process=p, num_processes=num_processes)
        for p in range(num_processes)
    ]
    assert [row for part in parts for row in part] == whole


def test_every_epoch_sees_every_row_once_in_a_new_order() -> None:
    rows = [row for step in range(10) for row in rows_of_step(20, 4, seed=0, step=step)]
    assert sorted(rows[:20]) == sorted(rows[20:]) == list(range(20))
    assert rows[:20] != rows[20:]


def test_seeds_differ_by_every_part_and_stay_the_same() -> None:
    seeds = {derive_seed(seed, step, name) for seed in (0, 1) for step in (0, 1) for name in "ab"}
    assert len(seeds) == 8
    assert derive_seed(0, 1, "a") == 7_662_448_641_011_171_168
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_impossible_batches_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be shared by 3"):
        rows_of_step(10, 8, seed=0, step=0, num_processes=3)
    with pytest.raises(ValueError, match="no rows"):
        rows_of_step(0, 8, seed=0, step=0)
