"""Edit rates, distinct n-grams and repeated sentences worked out by hand."""

from collections.abc import Sequence

import numpy as np
import pytest

from rewriting.measures.diversity import (
    added_sentences,
    distinct_interval,
    distinct_n,
    edit_rate,
    most_repeated,
    nearly_the_same,
    posts_served,
    removed_sentences,
)


def test_distinct_counts_different_grams_among_all() -> None:
    texts = [["so", "sorry", "so", "sorry"], ["so", "sad"]]
    assert distinct_n(texts, 1) == 3 / 6
    # so sorry, sorry so, so sorry | so sad
    assert distinct_n(texts, 2) == 3 / 4
    assert distinct_n([["one"]], 2) is None
    assert distinct_n([], 1) is None


def test_the_jackknife_of_distinct_by_hand() -> None:
    texts = [["a", "b"], ["a", "c"], ["a", "d"]]
    # Four of six; without any one text, three of four: no spread at all.
    assert distinct_interval(texts, 1, [0, 1, 2]) == (4 / 6, 4 / 6)
    # Two groups: without the first 2/2, without the second 3/4. Mean 7/8, spread 2/64.
    low, high = distinct_interval(texts, 1, [0, 0, 1]) or (0, 0)
    half = 1.96 * (0.5 * 2 / 64) ** 0.5
    assert (low, high) == pytest.approx((4 / 6 - half, 4 / 6 + half))
    assert distinct_interval(texts, 1, [0, 0, 0]) is None


def test_edit_rate_is_the_distance_over_the_longer() -> None:
    assert edit_rate(["try", "again", "later"], ["please", "try", "again"]) == 2 / 3
    assert edit_rate(["same"], ["same"]) == 0
    assert edit_rate([], ["new"]) == 1
    assert edit_rate([], []) == 0


def test_sentences_that_came_and_went() -> None:
    before, after = "Try again. Rest first.", "I am sorry. Try again! I mean it. rest first"
    assert added_sentences(before, after) == ["I am sorry.", "Try again!", "I mean it."]
    assert removed_sentences(before, after) == ["Try again."]
    assert added_sentences(before, before) == []


def test_a_sentence_counts_once_per_seeker() -> None:
    new = [["That's hard."], ["that's  HARD!", "Oh."], ["Oh.", "Oh."], []]
    seekers = ["ann", "ann", "ben", "cem"]
    assert posts_served(new, seekers) == [
        [("That's hard.", 1)],
        [("that's  HARD!", 1), ("Oh.", 2)],
        [("Oh.", 2), ("Oh.", 2)],
        [],
    ]
    assert most_repeated(new, seekers) == [("Oh.", 2)]


def test_nearly_the_same_sentence_for_another_seeker() -> None:
    """By angle: "so hard" and "really hard" are alike, "your cat" and "your job" are not."""
    vectors = {
        "So hard.": (1.0, 0.0),
        "Really hard.": (0.8, 0.6),
        "Your cat!": (0.0, 1.0),
        "Your job!": (-0.8, 0.6),
    }

    def encode(texts: Sequence[str]) -> np.ndarray:
        assert len(set(texts)) == len(texts)
        return np.array([vectors[text] for text in texts])

    new = [["So hard."], ["Really hard.", "Your cat!"], [], ["Your job!", "Your job!"]]
    assert nearly_the_same(new, "abcd", encode) == [[True], [True, False], [], [False, False]]
    new = [["So hard."], ["Really hard."]]
    assert nearly_the_same(new, "aa", encode) == [[False], [False]]
    assert nearly_the_same([[], []], "ab", encode) == [[], []]
