"""Which rows share a batch."""

from rewriting.runtime.batches import batches_by_length, batches_of_groups


def test_a_row_that_would_pad_the_others_too_much_begins_a_batch() -> None:
    lengths = [25, 10, 12, 24, 60]
    assert list(batches_by_length(lengths, 1000)) == [[1, 2, 3, 0, 4]]
    # 10 and 12 pad 2; with 24 it would be 26. 24 and 25 pad 1; with 60 it would be 71.
    assert list(batches_by_length(lengths, 1000, 16)) == [[1, 2], [3, 0], [4]]
    assert list(batches_by_length(lengths, 1000, 26)) == [[1, 2, 3], [0], [4]]
    assert list(batches_by_length(lengths, 23, 16)) == [[1], [2], [3], [0], [4]]
    assert list(batches_by_length([], 10, 16)) == []


def test_neighbours_of_a_group_share_a_batch_where_it_holds_them() -> None:
    rows = ["a1", "a2", "b1", "b2", "c1", "d1", "d2", "d3", "d4"]
    found = list(batches_of_groups(rows, 3, lambda row: row[0]))
    assert found == [["a1", "a2"], ["b1", "b2", "c1"], ["d1", "d2", "d3"], ["d4"]]
    assert list(batches_of_groups(rows, 4, lambda row: row)) == [rows[:4], rows[4:8], rows[8:]]
