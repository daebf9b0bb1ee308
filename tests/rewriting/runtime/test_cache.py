"""Equal texts are scored once, in a bounded memory."""

import pytest

from rewriting.runtime.cache import ScoreCache


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
