"""Equal texts are scored once, in a bounded memory, and batches follow from a call alone."""

import pytest

from rewriting.runtime.cache import BatchedScores, ScoreCache


class Lengths:
    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, keys: list[str]) -> list[int]:
        self.asked.append(keys)
        return [len(key) for key in keys]


def test_each_key_is_computed_once() -> None:
    lengths = Lengths()
    cache = ScoreCache(lengths)
    assert cache(["aa", "b", "aa"]) == [2, 1, 2]
    assert cache(["ccc", "b"]) == [3, 1]
    assert cache(["aa"]) == [2]
    assert cache([]) == []
    assert lengths.asked == [["aa", "b"], ["ccc"]]


def test_the_least_recently_used_key_goes_first() -> None:
    lengths = Lengths()
    cache = ScoreCache(lengths, size=2)
    cache(["a", "bb"])
    cache(["a"])
    cache(["ccc"])
    cache(["a", "ccc", "bb"])
    assert lengths.asked == [["a", "bb"], ["ccc"], ["bb"]]


def test_a_batch_larger_than_the_cache_is_answered_whole() -> None:
    cache = ScoreCache(Lengths(), size=1)
    assert cache(["a", "bb", "ccc", "a"]) == [1, 2, 3, 1]


def test_a_model_that_answers_too_little_is_caught() -> None:
    cache = ScoreCache(lambda keys: [1], size=5)
    with pytest.raises(ValueError, match="1 scores for 2 texts"):
        cache(["a", "b"])
    with pytest.raises(ValueError, match="at least one entry"):
        ScoreCache(lambda keys: [1], size=0)


def test_alone_each_text_is_read_once_over_all_calls() -> None:
    lengths = Lengths()
    scores = BatchedScores(lengths)
    assert scores(["bb", "a", "bb"]) == [2, 1, 2]
    assert scores(["bb", "ccc"]) == [2, 3]
    assert lengths.asked == [["bb"], ["a"], ["ccc"]]
    scores.forget()
    assert scores(["a"]) == [1]
    assert lengths.asked[3:] == [["a"]]


def test_batches_hold_texts_of_similar_length() -> None:
    lengths = Lengths()
    scores = BatchedScores(lengths, batch_size=2)
    assert scores(["dddd", "a", "ccc", "bb", "a"]) == [4, 1, 3, 2, 1]
    assert lengths.asked == [["a", "bb"], ["ccc", "dddd"]]
    assert scores([]) == []


def test_in_batches_a_call_is_answered_alike_whatever_was_asked_before() -> None:
    """Exact resuming needs it: the memory of a resumed run is empty."""
    fresh, used = Lengths(), Lengths()
    BatchedScores(fresh, batch_size=2)(["ccc", "bb", "a"])
    scores = BatchedScores(used, batch_size=2)
    scores(["bb", "zzzzz"])
    scores(["ccc", "bb", "a"])
    assert used.asked[1:] == fresh.asked == [["a", "bb"], ["ccc"]]
    scores(["a", "ccc", "bb"])  # the same texts in another order: remembered, as a whole
    assert len(used.asked) == 3


def test_training_may_remember_every_text_of_a_batch() -> None:
    lengths = Lengths()
    scores = BatchedScores(lengths, batch_size=2, remember_all=True)
    assert scores(["ccc", "bb", "a"]) == [3, 2, 1]
    assert scores(["bb", "dddd"]) == [2, 4]
    assert lengths.asked == [["a", "bb"], ["ccc"], ["dddd"]]


def test_pairs_are_sorted_by_what_they_are_told() -> None:
    asked: list[list[tuple[str, str]]] = []
    scores = BatchedScores(
        lambda pairs: asked.append(pairs) or [1] * len(pairs),
        batch_size=2,
        length=lambda pair: len(pair[0]),
    )
    scores([("post", "a"), ("p", "bbbbbbbb"), ("post", "c"), ("p", "d")])
    assert asked == [[("p", "bbbbbbbb"), ("p", "d")], [("post", "a"), ("post", "c")]]


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one text, not 0"):
        BatchedScores(Lengths(), batch_size=0)


def test_neighbours_of_a_group_are_read_together() -> None:
    asked: list[list[tuple[str, str]]] = []
    scores = BatchedScores(
        lambda pairs: asked.append(pairs) or [1] * len(pairs),
        batch_size=3,
        length=lambda pair: len(pair[0]),
        group=lambda pair: pair[0],
    )
    scores([("p", "a"), ("p", "b"), ("post", "c"), ("post", "d")])
    assert asked == [[("p", "a"), ("p", "b")], [("post", "c"), ("post", "d")]]
