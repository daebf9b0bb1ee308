"""Measuring rewrites: how much changed, and how varied they are.

Pure functions of words and numbers; how sure their means are is asked of `statistics`. What a
language model or an identifier says of a rewrite comes from `rewards`;
recipes/evaluate_rewrites.py brings both together. Imports no torch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rewriting.show import new_sentences
from rewriting.statistics.intervals import Interval

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class Measure:
    """What a figure is called, what it means, which way is better ("" for neither), its digits."""

    title: str
    meaning: str
    better: str = "higher"
    digits: int = 2


MEASURES: Final[dict[str, Measure]] = {
    "empathy_change": Measure("change in empathy", "empathy after minus before, −6 to 6"),
    "empathy_before": Measure(
        "empathy before", "total empathy of the original, by the levels called, 0 to 6", ""
    ),
    "empathy_after": Measure("empathy after", "the same of the rewritten response"),
    "improved": Measure("% improved", "share of rewrites with more empathy than before", digits=0),
    "worsened": Measure("% worsened", "share with less", "lower", 0),
    "perplexity": Measure(
        "perplexity",
        "surprise of a language model per token, geometric mean over responses",
        "lower",
        1,
    ),
    "coherence": Measure(
        "coherence", "mean probability that new and old sentences are of one response, 0 to 1"
    ),
    "specificity": Measure(
        "specificity", "similarity of the rewritten response and the seeker post, −1 to 1"
    ),
    "specificity_new": Measure(
        "specificity, new", "the same of the new sentences alone, where there are any"
    ),
    "own_post": Measure(
        "% own post",
        "share with more empathy in context at their own post than at another seeker's; "
        "50 where they would suit anybody",
        digits=0,
    ),
    "distinct_1": Measure("distinct-1", "different words among all words, 0 to 1"),
    "distinct_2": Measure("distinct-2", "different word pairs among all pairs, 0 to 1"),
    "repeated_sentences": Measure(
        "% repeated", "share of new sentences that another seeker's reply got too", "lower", 0
    ),
    "same_sentence": Measure(
        "% nearly the same",
        "share of new sentences of which another seeker's reply got nearly the same one",
        "lower",
        0,
    ),
    "edit_rate": Measure(
        "edit rate", "words changed, by edit distance, as a part of the longer text, 0 to 1", ""
    ),
    "n": Measure("n", "number of exchanges", "", 0),
}
"""The figures of `evaluate.py rewrites`, in the order of its tables."""

ON_REQUEST: Final[dict[str, Measure]] = {
    "judge": Measure(
        "judge", "by how much the judge prefers the rewritten response to the original"
    ),
    "judge_position_bias": Measure(
        "judge, position bias", "probability that the judge says A, minus a half; 0 is best", ""
    ),
}
"""Further figures, measured only where a judge is named."""

INITIAL: Final = {"none": "no empathy (0)", "some": "some (1–3)", "high": "high (4–6)"}
"""Groups of originals by their total empathy: PARTNER's adaptability (arXiv 2101.07714)."""

Encode = Callable[[Sequence[str]], "np.ndarray"]
ALIKE: Final = 0.8
"""The cosine from which on two sentences say nearly the same, for minilm-l6: rewordings of one kind
sentence reach 0.8 and more, the same sentence about another thing stays below 0.75."""
COMPARED_AT_ONCE: Final = 512


def initial_group(empathy: float) -> str:
    """The group of an original with this total empathy."""
    if empathy < 1:
        return "none"
    return "some" if empathy < 4 else "high"


def rows_by_initial(empathy_before: Sequence[float]) -> dict[str, list[int]]:
    """The rows of each group of originals, by their place."""
    rows: dict[str, list[int]] = {name: [] for name in INITIAL}
    for place, empathy in enumerate(empathy_before):
        rows[initial_group(empathy)].append(place)
    return rows


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
    return " ".join(sentence.lower().split()).rstrip(".!?… ")


def shown(name: str, value: float | None) -> str:
    """A figure as tables have it; a change has its sign."""
    if value is None:
        return "–"
    sign = "+" if name == "empathy_change" and value > 0 else ""
    return sign + _rounded(name, value)


def shown_interval(name: str, interval: Sequence[float] | None) -> str:
    """Its bounds; nothing where they are one, as for what a system leaves alone."""
    if interval is None or interval[0] == interval[1]:
        return ""
    return " … ".join(_rounded(name, bound) for bound in interval)


def _rounded(name: str, value: float) -> str:
    measure = MEASURES.get(name) or ON_REQUEST.get(name)
    digits = measure.digits if measure else 3
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")
