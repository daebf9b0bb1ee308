"""How much a rewrite changed, how varied texts are, and what is said to everybody.

Pure functions of words and sentences. Imports no torch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from rewriting.sentences import STOPS
from rewriting.show import new_sentences
from rewriting.statistics.intervals import Interval

if TYPE_CHECKING:
    import numpy as np


Encode = Callable[[Sequence[str]], "np.ndarray"]
ALIKE: Final = 0.8
"""The cosine from which on two sentences say nearly the same, for minilm-l6: rewordings of one kind
sentence reach 0.8 and more, the same sentence about another thing stays below 0.75."""
COMPARED_AT_ONCE: Final = 512


def edit_rate(before: Sequence[str], after: Sequence[str]) -> float:
    """Edit distance of two lists of words, divided by the length of the longer: 0 to 1.

    PARTNER's edit rate; its released code compares sets of characters instead.
    """
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.normalized_distance(before, after)


def distinct_n(texts: Iterable[Sequence[str]], n: int) -> float | None:
    """Different n-grams of all texts over all their n-grams (arXiv 1510.03055); None without any.

    It falls with the amount of text, so it compares systems on the same exchanges only.
    """
    counts = Counter(gram for words in texts for gram in _grams(words, n))
    return len(counts) / counts.total() if counts else None


def distinct_interval(
    texts: Sequence[Sequence[str]], n: int, groups: Sequence[Hashable]
) -> Interval | None:
    """95 % of distinct_n by a jackknife that leaves out one group at a time.

    Not by a bootstrap: texts drawn twice repeat all their n-grams, so every resample would be less
    varied than the data. The jackknife's variance errs on the large side (Efron and Stein 1981).
    """
    of_group: dict[Hashable, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for words, group in zip(texts, groups, strict=True):
        of_group[group].update(_grams(words, n))
    counts = sum(of_group.values(), Counter())
    left_out = []
    for own in of_group.values():
        rest = counts.total() - own.total()
        lost = sum(counts[gram] == count for gram, count in own.items())
        if rest:
            left_out.append((len(counts) - lost) / rest)
    if len(left_out) < 2:
        return None
    mean = sum(left_out) / len(left_out)
    spread = sum((value - mean) ** 2 for value in left_out)
    half = 1.96 * ((len(left_out) - 1) / len(left_out) * spread) ** 0.5
    whole = len(counts) / counts.total()
    return max(0.0, whole - half), min(1.0, whole + half)


def _grams(words: Sequence[str], n: int) -> Iterable[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(n)), strict=False)


def added_sentences(before: str, after: str) -> list[str]:
    """The sentences of a rewritten response that the original does not have."""
    return [piece.strip() for piece, is_new in new_sentences(before, after) if is_new]


def removed_sentences(before: str, after: str) -> list[str]:
    """The sentences of the original that are gone."""
    return added_sentences(after, before)


def posts_served(
    new: Sequence[Sequence[str]], seekers: Sequence[Hashable]
) -> list[list[tuple[str, int]]]:
    """Each row's new sentences, and how many seekers got that sentence: 1 where it is theirs alone.

    PARTNER asks why not say "This must have been really hard for you" to everybody: here it shows.
    Case, white space and marks at the end make no difference.
    """
    served: dict[str, set[Hashable]] = defaultdict(set)
    for sentences, seeker in zip(new, seekers, strict=True):
        for sentence in sentences:
            served[_plain(sentence)].add(seeker)
    return [[(sentence, len(served[_plain(sentence)])) for sentence in row] for row in new]


def nearly_the_same(
    new: Sequence[Sequence[str]], seekers: Sequence[Hashable], encode: Encode
) -> list[list[bool]]:
    """For each row's new sentences, whether another seeker got nearly the same one.

    Specific or generic? A system that varies a word ("so hard", "really hard") still says the same
    to everybody; "I'm sorry about your cat" and "… your job" are not the same. Compared by meaning,
    not by letters, which cannot tell the two cases apart. encode: texts → vectors of length 1.
    """
    import numpy as np

    texts = list(dict.fromkeys(sentence for row in new for sentence in row))
    if not texts:
        return [[] for _ in new]
    number = {text: place for place, text in enumerate(texts)}
    served: list[set[Hashable]] = [set() for _ in texts]
    for row, seeker in zip(new, seekers, strict=True):
        for sentence in row:
            served[number[sentence]].add(seeker)
    vectors = encode(texts)
    receivers: list[set[Hashable]] = []  # of each sentence and of all that are like it
    for start in range(0, len(texts), COMPARED_AT_ONCE):
        alike = vectors[start : start + COMPARED_AT_ONCE] @ vectors.T >= ALIKE
        receivers += [set().union(*(served[i] for i in np.flatnonzero(row))) for row in alike]
    return [
        [bool(receivers[number[sentence]] - {seeker}) for sentence in row]
        for row, seeker in zip(new, seekers, strict=True)
    ]


def most_repeated(
    new: Sequence[Sequence[str]], seekers: Sequence[Hashable], count: int = 5
) -> list[tuple[str, int]]:
    """The new sentences that serve the most seekers, from two on, and how many those are."""
    found: dict[str, tuple[str, int]] = {}
    for row in posts_served(new, seekers):
        for sentence, posts in row:
            found.setdefault(_plain(sentence), (sentence, posts))
    often = sorted(found.values(), key=lambda one: -one[1])
    return [(sentence, posts) for sentence, posts in often[:count] if posts > 1]


def _plain(sentence: str) -> str:
    return " ".join(sentence.lower().split()).rstrip(STOPS + " ")
