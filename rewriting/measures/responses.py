"""The measures of `evaluate.py responses`: generated responses against human ones.

Which level a response has comes from an identifier of `rewards`, perplexity from a language model;
recipes/evaluate/responses/table.py brings them together. Imports no torch.

Legend: S groups of rows (conversations), L levels (of the human, then of the generated response).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final

from rewriting.exchange import LEVELS, MECHANISMS, Exchange
from rewriting.measures.diversity import distinct_interval, distinct_n
from rewriting.measures.measure import Figure, Measure
from rewriting.statistics.classification import confusion, weighted_f1, weighted_f1_of_counts
from rewriting.statistics.intervals import Interval, drawn_counts, percentile_interval
from rewriting.words import words

if TYPE_CHECKING:
    import numpy as np

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


def rouge_l(generated: str, human: str) -> float:
    """ROUGE-L of a response, the F1 of the longest common subsequence, 0 to 100."""
    return 100 * float(_rouge().score(human, generated)["rougeL"].fmeasure)


@cache
def _rouge() -> Any:
    from rouge_score.rouge_scorer import RougeScorer
    from rouge_score.tokenizers import DefaultTokenizer

    # Its own default, named because it announces on every call that it takes it.
    return RougeScorer(["rougeL"], tokenizer=DefaultTokenizer(use_stemmer=False))


@dataclass(frozen=True, slots=True)
class Response:
    """A response, and the levels of it and of the human response by mechanism."""

    exchange: Exchange
    response: str
    human: Mapping[str, int]
    generated: Mapping[str, int]
    perplexity: float

    @property
    def conversation(self) -> str:
        return self.exchange.seeker_id or self.exchange.seeker_post

    @property
    def words(self) -> list[str]:
        return words(self.response.casefold())


@dataclass(frozen=True)
class Responses:
    """All responses of one system, and what is known of each."""

    rows: Sequence[Response]
    seed: int = 0

    @cached_property
    def groups(self) -> list[Hashable]:
        return [one.conversation for one in self.rows]

    @cached_property
    def words(self) -> list[list[str]]:
        return [one.words for one in self.rows]

    @cached_property
    def human(self) -> dict[str, list[int]]:
        """The levels of the human responses, by mechanism."""
        return {m: [one.human[m] for one in self.rows] for m in MECHANISMS}

    @cached_property
    def generated(self) -> dict[str, list[int]]:
        return {m: [one.generated[m] for one in self.rows] for m in MECHANISMS}

    @cached_property
    def emp_f1(self) -> dict[str, float]:
        return emp_f1(self.human, self.generated)

    @cached_property
    def emp_f1_intervals(self) -> dict[str, Interval | None]:
        return emp_f1_intervals(self.human, self.generated, self.groups, seed=self.seed)


def _emp_f1(name: str) -> Callable[[Responses], Figure]:
    return lambda table: (table.emp_f1[name], table.emp_f1_intervals[name])


def _distinct(table: Responses, n: int) -> Figure:
    return distinct_n(table.words, n), distinct_interval(table.words, n, table.groups)


def _bleu(table: Responses) -> Figure:
    human = [one.exchange.response_post for one in table.rows]
    return bleu([one.response for one in table.rows], human), None


RESPONSE_MEASURES: Final[dict[str, Measure[Response]]] = {
    "emp_f1": Measure(
        "Emp-F1",
        "mean of the three lines below, 0 to 100",
        digits=1,
        of_all=_emp_f1("emp_f1"),
        docs="EmpRL's Emp-F1, 0 to 100: the mean of the next three",
    ),
    "emotional_reactions": Measure(
        "  emotional reactions",
        "weighted F1 between the levels of generated and human responses, 0 to 100",
        digits=1,
        of_all=_emp_f1("emotional_reactions"),
        docs="weighted F1 between the levels of generated and human responses: the F1 of each "
        "level, weighted by how often people show it",
    ),
    "interpretations": Measure(
        "  interpretations", "the same", digits=1, of_all=_emp_f1("interpretations")
    ),
    "explorations": Measure("  explorations", "the same", digits=1, of_all=_emp_f1("explorations")),
    "perplexity": Measure(
        "perplexity",
        "surprise of a fixed language model per token, geometric mean over responses",
        "lower",
        1,
        value=lambda one: one.perplexity,
        ratio=True,
        docs="of the response under `--language_model`, per token, geometric mean over responses. "
        "Bland text is lowest",
    ),
    "distinct_1": Measure(
        "distinct-1",
        "different words among all words, 0 to 1",
        digits=3,
        of_all=lambda table: _distinct(table, 1),
        docs="different words among all words of all responses, 0 to 1. Falls with the amount of "
        "text: compare on the same exchanges",
    ),
    "distinct_2": Measure(
        "distinct-2",
        "different word pairs among all pairs, 0 to 1",
        digits=3,
        of_all=lambda table: _distinct(table, 2),
        docs="the same of neighbouring pairs of words",
    ),
    "bleu": Measure(
        "BLEU",
        "of all responses together against the human ones",
        of_all=_bleu,
        docs="sacrebleu's corpus BLEU against the human responses. Low for everybody: there are "
        "many good responses",
    ),
    "rouge_l": Measure(
        "ROUGE-L",
        "mean F1 of the longest common subsequence",
        digits=1,
        value=lambda one: rouge_l(one.response, one.exchange.response_post),
        docs="mean ROUGE-L against them, 0 to 100",
    ),
    "empathy": Measure(
        "empathy",
        "mean total empathy by the levels called, 0 to 6",
        "",
        value=lambda one: sum(one.generated.values()),
        docs="mean total empathy, 0 to 6. Emp-F1 asks for that of `human`, not for the most",
    ),
    "words": Measure(
        "words",
        "mean length of a response",
        "",
        1,
        value=lambda one: len(one.words),
        docs="mean length",
    ),
    "n": Measure("n", "number of responses", "", 0, of_all=lambda table: (len(table.rows), None)),
}
"""The figures of `evaluate.py responses`, in the order of its tables."""
