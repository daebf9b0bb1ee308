"""Splits keep a seeker together, and have the shares they promise."""

from collections import Counter

from rewriting.data import split_of, without_duplicates
from rewriting.exchange import Exchange


def test_responses_to_one_post_share_a_split() -> None:
    posts = [
        Exchange(f"post {i}", f"reply {j}", seeker_id=f"s{i}") for i in range(99) for j in "ab"
    ]
    for first, second in zip(posts[::2], posts[1::2], strict=True):
        assert split_of(first) == split_of(second)


def test_without_an_id_the_text_decides_whatever_its_spacing() -> None:
    assert split_of(Exchange("I failed  again", "a")) == split_of(Exchange("i failed again", "b"))


def test_shares_and_seed() -> None:
    exchanges = [Exchange(f"post {i}", "reply") for i in range(5000)]
    counts = Counter(split_of(exchange, dev=0.1, test=0.2) for exchange in exchanges)
    # Binomial: three standard deviations of 5000 draws at 0.2 are 85.
    assert abs(counts["test"] - 1000) < 85
    assert abs(counts["dev"] - 500) < 64
    assert any(split_of(e, seed=1) != split_of(e, seed=2) for e in exchanges)


def test_the_split_of_a_post_never_changes() -> None:
    """Results in docs/ stand on these: a change would leak test rows into training."""
    names = (f"post-{number}" for number in range(1, 13))
    splits = [split_of(Exchange("a", "b", seeker_id=name)) for name in names]
    assert " ".join(splits) == "test test train dev train train train train train train train train"


def test_duplicates_are_dropped() -> None:
    exchanges = [Exchange("a", "b"), Exchange("A ", "b"), Exchange("a", "c")]
    assert [exchange.response_post for exchange in without_duplicates(exchanges)] == ["b", "c"]
