"""Running moments equal the moments of all values at once, however they were merged."""

import ast
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.scaling import Moments, merged, moments_of, scaled
from rewriting.runtime.processes import across_processes

VALUES = st.lists(st.floats(-1e3, 1e3), max_size=30)


def test_by_hand() -> None:
    moments = moments_of([2.0, None, 4.0, 9.0])
    assert moments.count == 3
    assert moments.mean == 5.0
    assert moments.m2 == 26.0
    assert moments.std == pytest.approx(13**0.5)


@given(st.lists(VALUES, max_size=5))
def test_merging_is_counting_all_at_once(parts: list[list[float]]) -> None:
    values = [value for part in parts for value in part]
    moments = merged(moments_of(part) for part in parts)
    assert moments.count == len(values)
    if len(values) > 1:
        assert moments.mean == pytest.approx(statistics.fmean(values), abs=1e-9)
        assert moments.std == pytest.approx(statistics.stdev(values), abs=1e-6)


def test_nothing_merged_is_nothing() -> None:
    assert merged([]) == merged([Moments(), Moments()]) == Moments()


@pytest.mark.parametrize(("scale", "expected"), [(None, 9.0), ("std", 4.5), ("whiten", 2.0)])
def test_scaling_by_hand(scale: str | None, expected: float) -> None:
    assert scaled(9.0, Moments(count=5, mean=5.0, m2=16.0), scale) == expected


@pytest.mark.parametrize("moments", [Moments(), Moments(1, 3.0, 0.0), Moments(4, 3.0, 0.0)])
def test_values_that_do_not_differ_yet_are_not_divided(moments: Moments) -> None:
    assert scaled(3.0, moments, "std") == 3.0


def test_a_single_process_gathers_its_own_value() -> None:
    assert across_processes({"a": 1}) == [{"a": 1}]


TWO_PROCESSES = """
import sys
import torch.distributed as distributed
from rewards.reward_sum import RewardSum, Term

rank, store = int(sys.argv[1]), sys.argv[2]
distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
length = lambda completions, **_: [len(text) for text in completions]
rewards = RewardSum({"length": Term(length, scale="std")})
for step in ([["a", "bbb"], ["ccccc"]], [["", "dd"], ["eeee"]]):
    rewards.score(completions=step[rank], update=True)
print(rewards.state_dict()["length"])
distributed.destroy_process_group()
"""


def test_two_real_processes_end_with_the_same_moments(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TWO_PROCESSES]
    root = Path(__file__).parent.parent.parent
    environment = os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path / "store")],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    first, second = [process.communicate(timeout=120)[0] for process in processes]
    assert first == second
    expected = moments_of([1.0, 3.0, 5.0, 0.0, 2.0, 4.0])
    found = Moments(**ast.literal_eval(first))
    assert found.count == 6
    assert found.mean == pytest.approx(expected.mean)
    assert found.m2 == pytest.approx(expected.m2)
