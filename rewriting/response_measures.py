"""Measuring generated responses against human ones: levels of empathy that agree, and words.

Pure functions. Which level a response has comes from an identifier of `rewards`, perplexity from a
language model; recipes/evaluate_responses.py brings them together. Imports no torch.

Legend: S groups of rows (conversations), L levels (of the human, then of the generated response).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from rewriting.exchange import LEVELS, MECHANISMS
from rewriting.measures import Measure
from rewriting.statistics.classification import confusion, weighted_f1, weighted_f1_of_counts
from rewriting.statistics.intervals import Interval, drawn_counts, percentile_interval

if TYPE_CHECKING:
    import numpy as np

RESPONSE_MEASURES: Final[dict[str, Measure]] = {
    "emp_f1": Measure("Emp-F1", "mean of the three lines below, 0 to 100", digits=1),
    "emotional_reactions": Measure(
        "  emotional reactions",
        "weighted F1 between the levels of generated and human responses, 0 to 100",
        digits=1,
    ),
    "interpretations": Measure("  interpretations", "the same", digits=1),
    "explorations": Measure("  explorations", "the same", digits=1),
    "perplexity": Measure(
        "perplexity",
        "surprise of a fixed language model per token, geometric mean over responses",
        "lower",
        1,
    ),
    "distinct_1": Measure("distinct-1", "different words among all words, 0 to 1", digits=3),
    "distinct_2": Measure("distinct-2", "different word pairs among all pairs, 0 to 1", digits=3),
    "bleu": Measure("BLEU", "of all responses together against the human ones", digits=2),
    "rouge_l": Measure("ROUGE-L", "mean F1 of the longest common subsequence", digits=1),
    "empathy": Measure("empathy", "mean total empathy by the levels called, 0 to 6", ""),
    "words": Measure("words", "mean length of a response", "", 1),
    "n": Measure("n", "number of responses", "", 0),
}
"""The figures of `evaluate.py responses`, in the order of its tables."""

Levels = Mapping[str, Sequence[int]]
"""Mechanism → the level of every row."""


def emp_f1(human: Levels, generated: Levels) -> dict[str, float]:
    """Emp-F1 and its three parts, 0 to 100."""
    parts = {m: 100 * weighted_f1(human[m], generated[m]) for m in MECHANISMS}
    return {"emp_f1": sum(parts.values()) / len(parts)} | parts


def emp_f1_intervals(
    human: Levels,
    generated: Levels,
    groups: Sequence[Hashable],
    *,
    against: Levels | None = None,
    seed: int = 0,
    resamples: int = 2000,
) -> dict[str, Interval | None]:
    """95 % bootstrap intervals of what `emp_f1` gives, drawing whole conversations.

    against: the levels of another system's responses to the same rows; the intervals are then of
    the difference to it, which is much surer than the two figures by themselves.
    """
    import numpy as np

    names = ("emp_f1", *MECHANISMS)
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    if len(numbers) < 2:
        return dict.fromkeys(names)
    rows = [numbers[group] for group in groups]
    size = len(numbers)
    counts = drawn_counts(size, resamples, np.random.default_rng(seed))

    def resampled(levels: Levels) -> np.ndarray:
        parts = []
        for mechanism in MECHANISMS:
            pairs = human[mechanism], levels[mechanism]
            confusion_SLL = confusion(*pairs, len(LEVELS), groups=rows, group_count=size)
            parts.append(weighted_f1_of_counts(np.tensordot(counts, confusion_SLL, axes=1)))
        return 100 * np.stack([np.mean(parts, axis=0), *parts])

    values = resampled(generated)
    if against is not None:
        values = values - resampled(against)
    return {name: percentile_interval(own) for name, own in zip(names, values, strict=True)}


def bleu(generated: Sequence[str], human: Sequence[str]) -> float:
    """Corpus BLEU by sacrebleu, 0 to 100, against the one human response to each context."""
    from sacrebleu.metrics import BLEU

    return float(BLEU().corpus_score(list(generated), [list(human)]).score)


def rouge_l(generated: Sequence[str], human: Sequence[str]) -> list[float]:
    """ROUGE-L of every response, the F1 of the longest common subsequence, 0 to 100."""
    from rouge_score.rouge_scorer import RougeScorer
    from rouge_score.tokenizers import DefaultTokenizer

    # Its own default, named because it announces on every call that it takes it.
    scorer = RougeScorer(["rougeL"], tokenizer=DefaultTokenizer(use_stemmer=False))
    pairs = zip(human, generated, strict=True)
    return [100 * float(scorer.score(target, text)["rougeL"].fmeasure) for target, text in pairs]
