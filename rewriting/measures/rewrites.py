"""The measures of `evaluate.py rewrites`, and what they are measured on.

What an identifier or a language model says of a rewrite comes with its row:
recipes/shared/outcomes.py asks them. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

from rewriting.exchange import Rewrite
from rewriting.measures.diversity import (
    Encode,
    added_sentences,
    distinct_interval,
    distinct_n,
    edit_rate,
    nearly_the_same,
    posts_served,
)
from rewriting.measures.measure import Figure, Measure, Value
from rewriting.statistics.intervals import bootstrap_interval
from rewriting.statistics.means import mean
from rewriting.words import words

INITIAL: Final = {"none": "no empathy (0)", "some": "some (1–3)", "high": "high (4–6)"}
"""Groups of originals by their total empathy: PARTNER's adaptability (arXiv 2101.07714)."""
OWN_TERM: Final = "rewards/"
"""What the names of reward terms begin with that were asked for, as in a training's log."""


class Assessed(Protocol):
    """What an identifier says of a response: total empathy, and a judgement per mechanism."""

    @property
    def empathy(self) -> int: ...
    @property
    def judgements(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """A rewrite, its empathy before and after, and the value of each term for it."""

    rewrite: Rewrite
    before: Assessed
    after: Assessed
    values: Mapping[str, Value]

    @property
    def change(self) -> int:
        return self.after.empathy - self.before.empathy

    @property
    def seeker(self) -> str:
        return self.rewrite.exchange.seeker_id or self.rewrite.exchange.seeker_post

    @property
    def added(self) -> list[str]:
        rewrite = self.rewrite
        return added_sentences(rewrite.exchange.response_post, rewrite.rewritten_response)


@dataclass(frozen=True)
class Outcomes:
    """All rows of a system. encode: sentences as vectors, to see which are nearly the same."""

    rows: Sequence[Outcome]
    seed: int = 0
    encode: Encode | None = None

    @cached_property
    def groups(self) -> list[Hashable]:
        return [one.seeker for one in self.rows]

    @cached_property
    def new(self) -> list[list[str]]:
        """The new sentences of each row."""
        return [one.added for one in self.rows]

    @cached_property
    def words(self) -> list[list[str]]:
        """The words of each rewritten response."""
        return [words(one.rewrite.rewritten_response.casefold()) for one in self.rows]


def _edit_rate(one: Outcome) -> float:
    before, after = one.rewrite.exchange.response_post, one.rewrite.rewritten_response
    return edit_rate(words(before), words(after))


def _distinct(table: Outcomes, n: int) -> Figure:
    return distinct_n(table.words, n), distinct_interval(table.words, n, table.groups)


def _repeated(table: Outcomes) -> Figure:
    served = posts_served(table.new, table.groups)
    return _of_sentences(table, [100.0 * (posts > 1) for row in served for _, posts in row])


def _same(table: Outcomes) -> Figure:
    if table.encode is None:
        return None, None
    alike = nearly_the_same(table.new, table.groups, table.encode)
    return _of_sentences(table, [100.0 * one for row in alike for one in row])


def _of_sentences(table: Outcomes, values: Sequence[float]) -> Figure:
    """The mean over new sentences, drawing the seekers who got them."""
    seekers = [seeker for row, seeker in zip(table.new, table.groups, strict=True) for _ in row]
    return mean(values), bootstrap_interval(values, seekers, seed=table.seed)


def _scored(
    name: str, title: str, meaning: str, better: str = "higher", digits: int = 2, **options: Any
) -> Measure[Outcome]:
    """A measure whose value stands in the row under its name."""
    return Measure(
        title, meaning, better, digits, value=lambda one: one.values.get(name), **options
    )


MEASURES: Final[dict[str, Measure[Outcome]]] = {
    "empathy_change": Measure(
        "change in empathy",
        "empathy after minus before, −6 to 6",
        value=lambda one: one.change,
        signed=True,
        tested=True,
        docs="`empathy_after` − `empathy_before`",
    ),
    "empathy_before": Measure(
        "empathy before",
        "total empathy of the original, by the levels called, 0 to 6",
        "",
        value=lambda one: one.before.empathy,
        docs="mean total empathy of the originals, 0 to 6: the `empathy` of "
        "[`rewriting score`](scoring.md), which adds the levels called",
    ),
    "empathy_after": Measure(
        "empathy after",
        "the same of the rewritten response",
        value=lambda one: one.after.empathy,
        docs="the same of the rewritten responses; blank text has 0",
    ),
    "improved": Measure(
        "% improved",
        "share of rewrites with more empathy than before",
        digits=0,
        value=lambda one: 100.0 * (one.change > 0),
        docs="per cent of rewrites with more empathy than their original",
    ),
    "worsened": Measure(
        "% worsened",
        "share with less",
        "lower",
        0,
        value=lambda one: 100.0 * (one.change < 0),
        docs="per cent with less",
    ),
    "perplexity": _scored(
        "perplexity",
        "perplexity",
        "surprise of a language model per token, geometric mean over responses",
        "lower",
        1,
        ratio=True,
        tested=True,
        plotted=True,
        term={"weight": 0},
        docs="per token, by the language model; geometric mean over responses, so that one odd "
        "response does not outweigh the rest. Lower is more fluent, and bland text is lowest",
    ),
    "coherence": _scored(
        "coherence",
        "coherence",
        "mean probability that new and old sentences are of one response, 0 to 1",
        tested=True,
        plotted=True,
        # Of replies with several sentences; a neutral value for the others is for training.
        term={"weight": 0, "neutral": None},
        docs="mean probability that new and old sentences are of one response; of one written "
        "anew, that its neighbouring sentences are. Responses of one sentence do not count",
    ),
    "specificity": _scored(
        "specificity",
        "specificity",
        "similarity of the rewritten response and the seeker post, −1 to 1",
        tested=True,
        plotted=True,
        term={"weight": 0},
        docs="cosine similarity of the whole rewritten response and the seeker post",
    ),
    "specificity_new": _scored(
        "specificity_new",
        "specificity, new",
        "the same of the new sentences alone, where there are any",
        tested=True,
        plotted=True,
        docs="the same of the new sentences alone; only rewrites that have some count",
    ),
    "own_post": _scored(
        "own_post",
        "% own post",
        "share with more empathy in context at their own post than at another seeker's; "
        "50 where they would suit anybody",
        digits=0,
        plotted=True,
        docs="context-sensitivity: per cent of rewrites with more empathy [in context](audit.md) "
        "at their own post than at another seeker's; 50 is chance, where the same would suit "
        "anybody",
    ),
    "distinct_1": Measure(
        "distinct-1",
        "different words among all words, 0 to 1",
        of_all=lambda table: _distinct(table, 1),
        docs="different words among all words of all rewritten responses, 0 to 1. Falls with the "
        "amount of text: compare on the same exchanges",
    ),
    "distinct_2": Measure(
        "distinct-2",
        "different word pairs among all pairs, 0 to 1",
        of_all=lambda table: _distinct(table, 2),
        plotted=True,
        docs="the same of neighbouring pairs of words",
    ),
    "repeated_sentences": Measure(
        "% repeated",
        "share of new sentences that another seeker's reply got too",
        "lower",
        0,
        of_all=_repeated,
        docs="per cent of the new sentences that another seeker's reply got as well: is the "
        "kindness meant for this person?",
    ),
    "same_sentence": Measure(
        "% nearly the same",
        "share of new sentences of which another seeker's reply got nearly the same one",
        "lower",
        0,
        of_all=_same,
        plotted=True,
        docs="per cent of the new sentences of which another seeker's reply got *nearly* the "
        "same: a cosine of 0.8 or more by the sentence encoder. Rewordings of one kind "
        'sentence ("so hard", "really hard") count, the same sentence about another thing '
        '("your cat", "your job") does not. The bar is set for minilm-l6',
    ),
    "edit_rate": Measure(
        "edit rate",
        "words changed, by edit distance, as a part of the longer text, 0 to 1",
        "",
        value=_edit_rate,
        plotted=True,
        docs="edit distance of the words, divided by the length of the longer text, 0 to 1",
    ),
    "n": Measure("n", "number of exchanges", "", 0, of_all=lambda table: (len(table.rows), None)),
}
"""The figures of `evaluate.py rewrites`, in the order of its tables. The change in empathy and the
shares that improved and worsened have plots of their own shape, before those of `plotted`."""

ON_REQUEST: Final[dict[str, Measure[Outcome]]] = {
    "judge": _scored(
        "judge",
        "judge",
        "by how much the judge prefers the rewritten response to the original",
        tested=True,
        plotted=True,
        docs="only with `--judge`: by how much a language model prefers the rewritten response to "
        "the original, −1 to 1, asked in both orders ([judge.md](judge.md))",
    ),
    "judge_position_bias": _scored(
        "judge_position_bias",
        "judge, position bias",
        "probability that the judge says A, minus a half; 0 is best",
        "",
        plotted=True,
        docs="only with `--judge`: the probability that the judge says A, minus a half; near 0 it "
        "reads the replies, near 0.5 it always takes the first",
    ),
}
"""Further figures, measured only where a judge is named."""


def measure_of(name: str) -> Measure[Outcome]:
    """A known measure, or a reward term as one."""
    known = MEASURES.get(name) or ON_REQUEST.get(name)
    if known is not None:
        return known
    # Whether more of it is better only who wrote it knows.
    own = name.startswith(OWN_TERM)
    title = name.removeprefix(OWN_TERM)
    return _scored(name, title, "a reward term", "", 3, tested=own, plotted=True)


def measures_of(rows: Sequence[Outcome]) -> dict[str, Measure[Outcome]]:
    """The measures of these rows: the known ones, then a judge's and reward terms asked for."""
    further = [name for name in rows[0].values if name not in MEASURES]
    return MEASURES | {name: measure_of(name) for name in further}


def compared_measures(rows: Sequence[Outcome]) -> dict[str, Measure[Outcome]]:
    """Those by which systems are compared row by row; reward terms stand last."""
    tested = {name: one for name, one in measures_of(rows).items() if one.tested}
    return {name: tested[name] for name in sorted(tested, key=lambda n: n.startswith(OWN_TERM))}


def scored_terms() -> dict[str, Mapping[str, Any]]:
    """The reward terms that measures are made of, as `build_rewards` takes them."""
    return {name: one.term for name, one in MEASURES.items() if one.term is not None}


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
