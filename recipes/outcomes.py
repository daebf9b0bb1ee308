"""What came of a system's rewrites: row by row by identifier and terms, then as figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recipes.context_line import own_post
from rewriting import Rewrite
from rewriting.measures import (
    MEASURES,
    Encode,
    added_sentences,
    distinct_interval,
    distinct_n,
    edit_rate,
    most_repeated,
    nearly_the_same,
    posts_served,
    rows_by_initial,
)
from rewriting.statistics.intervals import Interval, bootstrap_interval
from rewriting.statistics.means import mean

if TYPE_CHECKING:
    from rewards.identifiers.assessment import Assessment, Identifier
    from rewards.judge.term import JudgeTerm
    from rewards.named import Models
    from rewards.protocol import Reward

CHUNK = 64  # rows between two signs of progress
# The table's coherence is of replies with several sentences; a neutral value is for training.
SCORED = "{perplexity: 0, coherence: {weight: 0, neutral: null}, specificity: 0}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A rewrite, its empathy before and after, and the value of each term for it."""

    rewrite: Rewrite
    before: Assessment
    after: Assessment
    values: Mapping[str, float | None]

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

    def row(self) -> dict[str, float | None]:
        """Everything that is measured of this rewrite alone."""
        from rewards.words import words

        before, after = self.rewrite.exchange.response_post, self.rewrite.rewritten_response
        return {
            "empathy_before": self.before.empathy,
            "empathy_after": self.after.empathy,
            "empathy_change": self.change,
            "improved": 100.0 * (self.change > 0),
            "worsened": 100.0 * (self.change < 0),
            "edit_rate": edit_rate(words(before), words(after)),
            **self.values,
        }


class Assessor:
    """The identifier, asked once for each pair of posts; blank text communicates nothing."""

    def __init__(self, identifier: Identifier, rationales: bool) -> None:
        from rewriting.runtime.cache import ScoreCache

        self.identifier = identifier
        self.rationales = rationales
        self._known = ScoreCache(self._assess, size=1_000_000)

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[Assessment]:
        return self._known(pairs)

    def _assess(self, pairs: list[tuple[str, str]]) -> list[Assessment]:
        from rewards.identifiers.assessment import Assessment, Judgement
        from rewriting.exchange import MECHANISMS
        from rewriting.runtime.progress import progress_bar

        written = [pair for pair in pairs if pair[1].strip()]
        found: list[Assessment] = []
        with progress_bar("empathy", len(written)) as advance:
            for start in range(0, len(written), CHUNK):
                chunk = written[start : start + CHUNK]
                seekers, responses = zip(*chunk, strict=True)
                found += self.identifier.assess(seekers, responses, rationales=self.rationales)
                advance(len(chunk))
        nothing = Assessment(dict.fromkeys(MECHANISMS, Judgement(0, (1.0, 0.0, 0.0))))
        known = dict(zip(written, found, strict=True))
        return [known.get(pair, nothing) for pair in pairs]


class Scorer:
    """The terms that are measured row by row; weight 0 makes a term a metric.

    Specificity and coherence look at the whole response, so that systems which write anew compare
    with those which edit; `specificity_new` looks at the new sentences alone. rewards: further
    terms, as YAML, called as in training, with the column `sentence`; their names begin with
    `rewards/`, as in a training's log. judge: a language model that compares rewrite and original.
    """

    def __init__(self, models: Models, rewards: str = "", judge: JudgeTerm | None = None) -> None:
        from rewards.named import build_rewards
        from rewards.reward_sum import RewardSum, Term

        asked = {} if rewards in ("", "{}") else build_rewards(rewards, models).terms
        own = {f"rewards/{name}": Term(term.reward, 0.0) for name, term in asked.items()}
        self.own = RewardSum(own) if own else None
        self.judge = judge
        self.in_context = models.in_context
        new = Term(specificity_new(models.sentence_encoder), 0.0)
        self.metrics = RewardSum(build_rewards(SCORED, models).terms | {"specificity_new": new})

    def __call__(self, rewrites: Sequence[Rewrite]) -> list[dict[str, float | None]]:
        columns: dict[str, Any] = {
            "completions": [one.rewritten_response for one in rewrites],
            "seeker_post": [one.exchange.seeker_post for one in rewrites],
            "response_post": [one.exchange.response_post for one in rewrites],
        }
        found = [self.metrics.score(**columns)]
        if self.own is not None:
            new = [one.new_text for one in rewrites]
            found.append(self.own.score(**columns, sentence=new))
        rows: list[dict[str, float | None]] = [
            {name: value for scores in found for name, value in scores.row(place).items()}
            for place in range(len(rewrites))
        ]
        if self.judge is not None:
            for row, change in zip(rows, self.judge.changes(**columns), strict=True):
                row["judge"] = change.value
                if self.judge.compares:
                    row["judge_position_bias"] = change.position_bias
        return rows


def open_judge_term(text: str) -> JudgeTerm:
    """The judge of a model's name, or of options as YAML."""
    from rewards.judge.named import judge_options
    from rewards.judge.term import JudgeTerm

    return JudgeTerm(**judge_options(text, JudgeTerm))


def specificity_new(encoder: Any) -> Reward:
    """Specificity of the new sentences alone; does not apply where nothing is new."""
    from rewards.specificity import Specificity

    specificity = Specificity(encoder)

    def score(
        completions: Sequence[str],
        response_post: Sequence[str],
        seeker_post: Sequence[str],
        **_: Any,
    ) -> list[float | None]:
        pairs = zip(response_post, completions, strict=True)
        new = [" ".join(added_sentences(before, after)) for before, after in pairs]
        values = specificity(completions=new, seeker_post=seeker_post)
        return [value if text else None for value, text in zip(values, new, strict=True)]

    return score


def measured(
    name: str, rewrites: Sequence[Rewrite], assess: Assessor, scorer: Scorer
) -> list[Outcome]:
    """Every rewrite of a system with what the identifier and the terms say of it."""
    from rewriting.runtime.progress import progress_bar

    seekers = [one.exchange.seeker_post for one in rewrites]
    before = assess(list(zip(seekers, (o.exchange.response_post for o in rewrites), strict=True)))
    after = assess(list(zip(seekers, (o.rewritten_response for o in rewrites), strict=True)))
    values: list[dict[str, float | None]] = []
    with progress_bar(f"measuring {name}", len(rewrites)) as advance:
        for start in range(0, len(rewrites), CHUNK):
            chunk = rewrites[start : start + CHUNK]
            values += scorer(chunk)
            advance(len(chunk))
    for row, value in zip(values, own_post(scorer.in_context, rewrites), strict=True):
        row["own_post"] = value
    return [Outcome(*row) for row in zip(rewrites, before, after, values, strict=True)]


def summary(
    outcomes: Sequence[Outcome], *, seed: int = 0, encode: Encode | None = None
) -> dict[str, Any]:
    """The figures of one system: means, and under `intervals` where they lie with 95 %.

    encode: sentences as vectors, to see which are nearly the same; without it nobody knows.
    """
    from rewards.words import words

    seekers = [one.seeker for one in outcomes]
    rows = [one.row() for one in outcomes]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    figures: dict[str, Any] = {name: mean(values) for name, values in columns.items()}
    intervals: dict[str, Any] = {
        name: bootstrap_interval(values, seekers, seed=seed) for name, values in columns.items()
    }
    # Over the logarithm: one odd response with a perplexity of thousands would outweigh the rest.
    logs = [None if p is None else math.log(p) for p in columns["perplexity"]]
    figures["perplexity"] = _exp(mean(logs))
    intervals["perplexity"] = _exp_bounds(bootstrap_interval(logs, seekers, seed=seed))
    texts = [words(one.rewrite.rewritten_response.casefold()) for one in outcomes]
    for n in (1, 2):
        figures[f"distinct_{n}"] = distinct_n(texts, n)
        intervals[f"distinct_{n}"] = distinct_interval(texts, n, seekers)
    new = [one.added for one in outcomes]
    served = posts_served(new, seekers)
    alike = nearly_the_same(new, seekers, encode) if encode else [[None] * len(row) for row in new]
    of = [seeker for row, seeker in zip(new, seekers, strict=True) for _ in row]
    shares: dict[str, list[float | None]] = {
        "repeated_sentences": [100.0 * (posts > 1) for row in served for _, posts in row],
        "same_sentence": [None if one is None else 100.0 * one for row in alike for one in row],
    }
    for name, found in shares.items():
        figures[name] = mean(found)
        intervals[name] = bootstrap_interval(found, of, seed=seed)
    figures["n"] = len(outcomes)
    own = [name for name in figures if name not in MEASURES]
    ordered = {name: figures[name] for name in (*MEASURES, *own)}
    by_initial = change_by_initial(outcomes, seed=seed)
    intervals["empathy_change_by_initial"] = by_initial.pop("intervals")
    often = [{"sentence": text, "seekers": posts} for text, posts in most_repeated(new, seekers)]
    return {**ordered, **by_initial, "most_repeated": often, "intervals": intervals}


def change_by_initial(outcomes: Sequence[Outcome], *, seed: int = 0) -> dict[str, Any]:
    """The change in empathy by how empathic the originals were, and how many those are."""
    groups = {
        name: [outcomes[place] for place in places]
        for name, places in rows_by_initial([one.before.empathy for one in outcomes]).items()
    }
    return {
        "empathy_change_by_initial": {
            name: mean(one.change for one in rows) for name, rows in groups.items()
        },
        "n_by_initial": {name: len(rows) for name, rows in groups.items()},
        "intervals": {
            name: bootstrap_interval(
                [one.change for one in rows], [one.seeker for one in rows], seed=seed
            )
            for name, rows in groups.items()
        },
    }


def _exp(value: float | None) -> float | None:
    return None if value is None else math.exp(value)


def _exp_bounds(bounds: Interval | None) -> Interval | None:
    return None if bounds is None else (math.exp(bounds[0]), math.exp(bounds[1]))
