"""Which columns of the data rewards are given."""

from rewriting.data.columns import column_names
from rewriting.exchange import Exchange


def test_a_column_cannot_pass_for_what_the_rewards_are_given() -> None:
    exchange = Exchange("a", "b", extra={"completions": "x", "update": 1, "sentence": "y", "z": 2})
    assert column_names([exchange]) == ["id", "seeker_post", "response_post", "z"]
