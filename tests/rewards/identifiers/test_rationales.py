"""Rationales as strings, spans, words and tokens."""

import pytest

from rewards.identifiers.rationales import (
    align,
    align_all,
    choose_words,
    close_gaps,
    label_tokens,
    mask_to_runs,
    normalise,
    token_to_word_values,
    word_spans,
    words_to_text_spans,
)

RESPONSE = "I'm so sorry (really). What happened? Are you ok?"


def test_white_space_is_collapsed() -> None:
    assert normalise("  a\t b\n\nc ") == "a b c"


@pytest.mark.parametrize("piece", ["What happened?", "(really).", "Are you ok?", RESPONSE])
def test_a_piece_is_found_literally_whatever_its_signs(piece: str) -> None:
    span = align(piece, RESPONSE)
    assert span is not None
    assert RESPONSE[slice(*span)] == piece


def test_case_does_not_matter() -> None:
    assert align("WHAT HAPPENED", RESPONSE) == (23, 36)


def test_a_few_wrong_characters_are_forgiven() -> None:
    span = align("What hapened?", RESPONSE)
    assert span is not None
    start, end = span
    assert RESPONSE[start:end].strip() in ("What happened", "What happened?", "hat happened?")


def test_what_is_not_there_is_not_found() -> None:
    assert align("Have you tried yoga?", RESPONSE) is None
    assert align("Why?", "") is None


def test_a_piece_longer_than_the_response_needs_the_whole_of_it() -> None:
    assert align("Stay strong my friend", "Stay strong my frend") == (0, 20)
    assert align("Stay strong my friend, it will pass one day", "Stay strong") is None


def test_found_pieces_come_in_the_order_of_the_text() -> None:
    assert align_all(["Are you ok?", "nowhere at all to be found", "I'm so"], RESPONSE) == [
        (0, 6),
        (38, 49),
    ]


def test_words_are_what_stands_between_white_space() -> None:
    assert word_spans(" a  bc\nd.") == [(1, 2), (4, 6), (7, 9)]
    assert word_spans(" \n") == []


def test_a_token_is_marked_when_it_overlaps_a_span() -> None:
    offsets = [(0, 0), (0, 3), (3, 5), (6, 9), (0, 0)]
    assert label_tokens(offsets, [(4, 7)]) == [0, 0, 1, 1, 0]
    assert label_tokens(offsets, [(5, 6)]) == [0, 0, 0, 0, 0]
    assert label_tokens(offsets, []) == [0, 0, 0, 0, 0]


def test_a_word_has_the_mean_of_its_tokens() -> None:
    offsets = [(0, 0), (0, 2), (2, 4), (5, 7), (0, 0)]  # special, "ab", "cd", "ef", special
    words = [(0, 4), (5, 7), (8, 10)]  # the last one was cut off
    values = token_to_word_values(offsets, [9.0, 0.2, 0.6, 0.5, 9.0], words)
    assert values == pytest.approx([0.4, 0.5, 0.0])


@pytest.mark.parametrize(
    ("longest", "closed"), [(0, "x.x..x."), (1, "xxx..x."), (2, "xxxxxx."), (9, "xxxxxx.")]
)
def test_gaps_are_closed_between_marks_only(longest: int, closed: str) -> None:
    mask = [mark == "x" for mark in "x.x..x."]
    assert close_gaps(mask, longest) == [mark == "x" for mark in closed]


def test_level_0_has_no_rationale() -> None:
    assert choose_words([0.9, 0.9], 0.5, level=0) == [False, False]


def test_words_that_reach_the_threshold() -> None:
    values = [0.6, 0.1, 0.7, 0.1, 0.1, 0.9]
    assert choose_words(values, 0.5, level=1, longest_gap=0) == [
        True,
        False,
        True,
        False,
        False,
        True,
    ]
    assert choose_words(values, 0.5, level=1) == [True, True, True, False, False, True]


def test_a_level_above_0_has_a_rationale_even_below_the_threshold() -> None:
    # The bar falls to half of the best word: 0.15.
    assert choose_words([0.3, 0.2, 0.1], 0.5, level=2, longest_gap=0) == [True, True, False]
    assert choose_words([0.0, 0.0], 0.5, level=2) == [False, False]
    assert choose_words([], 0.5, level=2) == []


def test_runs_of_marks() -> None:
    assert mask_to_runs([True, True, False, True]) == [(0, 2), (3, 4)]
    assert mask_to_runs([False]) == mask_to_runs([]) == []


def test_from_words_back_to_the_text() -> None:
    words = word_spans("so very sorry friend")
    assert words_to_text_spans([False, True, True, False], words) == [(3, 13)]
    assert words_to_text_spans([True, False, False, True], words) == [(0, 2), (14, 20)]
