"""Work that processes share."""

from typing import Any

import pytest

from rewriting.runtime import processes
from rewriting.runtime.processes import share_work


def test_one_process_does_it_all() -> None:
    assert share_work([1, 2, 3], lambda rows: [10 * row for row in rows]) == [10, 20, 30]
    assert share_work([], lambda rows: 1 / 0) == []  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("count", "shares"), [(2, [[1, 2, 3], [4, 5]]), (6, [[1], [2], [3], [4], [5], []])]
)
def test_each_process_does_its_part_and_gets_all(
    count: int, shares: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "num_processes", lambda: count)
    results = [[10 * row for row in share] for share in shares]
    for index in range(count):
        done: list[Any] = []

        def work(rows: Any, done: list[Any] = done) -> list[int]:
            done.extend(rows)
            return [10 * row for row in rows]

        def across(own: Any, index: int = index) -> list[Any]:
            assert own == results[index]
            return results

        monkeypatch.setattr(processes, "process_index", lambda index=index: index)
        monkeypatch.setattr(processes, "across_processes", across)
        assert share_work([1, 2, 3, 4, 5], work) == [10, 20, 30, 40, 50]
        assert done == shares[index]
