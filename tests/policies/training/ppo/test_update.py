"""How a batch is cut into minibatches."""

from policies.training.ppo.loop import minibatches


def test_minibatches_take_one_row_of_every_block() -> None:
    found = minibatches(32, 8, seed=3)
    assert sorted(row for rows in found for row in rows) == list(range(32))
    assert [len(rows) for rows in found] == [8] * 4
    for rows in found:
        assert sorted(row // 4 for row in rows) == list(range(8))
    assert found != minibatches(32, 8, seed=4)
    odd = minibatches(7, 3, seed=0)
    assert sorted(row for rows in odd for row in rows) == list(range(7))
    assert max(len(rows) for rows in odd) <= 3
