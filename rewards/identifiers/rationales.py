"""Rationales between three shapes: annotated strings, character spans, and token labels.

The annotators of EPITOME (arXiv 2009.08441) copied pieces of the response by hand. Most pieces are
verbatim, some differ in white space or a few characters. The released code looks for them with
unescaped regular expressions and so loses every piece with a "?" or "(" in it; here a piece is
found literally first and fuzzily second.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from rapidfuzz import fuzz

Span = tuple[int, int]  # character offsets, end exclusive

_WORD = re.compile(r"\S+")


def normalise(text: str) -> str:
    """Collapse white space: the three files of the corpus disagree about nothing else in a post."""
    return " ".join(text.split())


def align(rationale: str, response: str, min_score: float = 80.0) -> Span | None:
    """Where a rationale stands in a response (both normalised), if anything is close enough."""
    for needle, haystack in ((rationale, response), (rationale.lower(), response.lower())):
        if (start := haystack.find(needle)) >= 0:
            return start, start + len(needle)
    if len(rationale) > len(response):  # rapidfuzz would slide the response along the rationale
        return (0, len(response)) if fuzz.ratio(rationale, response) >= min_score else None
    found = fuzz.partial_ratio_alignment(rationale, response, score_cutoff=min_score)
    return None if found is None else (found.dest_start, found.dest_end)


def align_all(rationales: Sequence[str], response: str) -> list[Span]:
    """Character spans of all pieces that can be found, in the order of the text.

    White space may differ: pieces are looked for in the normalised response, and `origin` tells
    where each of its characters stands in the response.
    """
    found = (align(normalise(piece), normalise(response)) for piece in rationales if piece.strip())
    origin = [at for start, end in word_spans(response) for at in (*range(start, end), end)]
    return sorted((origin[start], origin[end - 1] + 1) for start, end in filter(None, found))


def word_spans(text: str) -> list[Span]:
    """White-space words: the unit in which rationales are scored, whatever the tokenizer."""
    return [match.span() for match in _WORD.finditer(text)]


def label_tokens(offsets: Sequence[Span], spans: Sequence[Span]) -> list[int]:
    """1 for each token that overlaps a span; special tokens, with offset (0, 0), stay 0."""
    return [
        int(any(start < span_end and span_start < end for span_start, span_end in spans))
        for start, end in offsets
    ]


def token_to_word_values(
    offsets: Sequence[Span], values: Sequence[float], words: Sequence[Span]
) -> list[float]:
    """Mean value of the tokens in each word; 0 for words the encoder never saw (truncated text)."""
    result: list[float] = []
    token = 0
    for word_start, word_end in words:
        inside: list[float] = []
        while token < len(offsets) and offsets[token][0] < word_end:
            if offsets[token][1] > max(word_start, offsets[token][0]):
                inside.append(values[token])
            token += 1
        result.append(sum(inside) / len(inside) if inside else 0.0)
    return result


def close_gaps(mask: Sequence[bool], longest: int) -> list[bool]:
    """Fill runs of at most `longest` False between two True: phrases are marked, not islands."""
    closed = list(mask)
    marked = [index for index, value in enumerate(closed) if value]
    for left, right in pairwise(marked):
        if right - left - 1 <= longest:
            closed[left:right] = [True] * (right - left)
    return closed


def choose_words(
    values: Sequence[float], threshold: float, *, level: int, longest_gap: int = 1
) -> list[bool]:
    """The words of a rationale. Level 0 has none by definition; a higher level has at least one,
    so there the bar drops to half of the best word when no word reaches the threshold."""
    if level == 0 or not values or max(values) <= 0:
        return [False] * len(values)
    bar = min(threshold, 0.5 * max(values))
    return close_gaps([value >= bar for value in values], longest_gap)


def mask_to_runs(mask: Sequence[bool]) -> list[Span]:
    """Contiguous True runs as (first, one past last) indices."""
    runs: list[Span] = []
    start: int | None = None
    for index, value in enumerate([*mask, False]):
        if value and start is None:
            start = index
        elif not value and start is not None:
            runs.append((start, index))
            start = None
    return runs


def words_to_text_spans(mask: Sequence[bool], words: Sequence[Span]) -> list[Span]:
    """Character spans of the chosen words."""
    return [(words[first][0], words[last - 1][1]) for first, last in mask_to_runs(mask)]
