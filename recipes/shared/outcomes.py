"""What came of a system's rewrites: row by row by identifier and terms, then as figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recipes.shared.context_line import own_post
from rewriting import Rewrite
from rewriting.measures.diversity import Encode, added_sentences, most_repeated
from rewriting.measures.measure import figures_of
from rewriting.measures.rewrites import (
    MEASURES,
    OWN_TERM,
    Outcome,
    Outcomes,
    measures_of,
    rows_by_initial,
    scored_terms,
)

if TYPE_CHECKING:
    from rewards.identifiers.assessment import Assessment, Identifier
    from rewards.named import Models
    from rewards.protocol import Reward
    from rewards.terms.judge import JudgeTerm

CHUNK = 64  # rows between two signs of progress


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
        own = {f"{OWN_TERM}{name}": Term(term.reward, 0.0) for name, term in asked.items()}
        self.own = RewardSum(own) if own else None
        self.judge = judge
        self.in_context = models.in_context
        new = Term(specificity_new(models.sentence_encoder), 0.0)
        scored = build_rewards(scored_terms(), models).terms
        self.metrics = RewardSum(scored | {"specificity_new": new})

    def __call__(self, rewrites: Sequence[Rewrite]) -> list[dict[str, float | None]]:
        columns: dict[str, Any] = {
            "completions": [one.rewritten_response for one in rewrites],
            "seeker_post": [one.exchange.seeker_post for one in rewrites],
            "response_post": [one.exchange.response_post for one in rewrites],
        }
        found = [self.metrics.score(**columns)]
        if self.own is not None:
            from rewriting.data.columns import column_names, data_columns

            exchanges = [one.exchange for one in rewrites]
            data = data_columns(exchanges, column_names(exchanges))  # as in training
            new = [one.new_text for one in rewrites]
            found.append(self.own.score(**(data | columns), sentence=new))
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
    from rewards.terms.judge import JudgeTerm

    return JudgeTerm(**judge_options(text, JudgeTerm))


def specificity_new(encoder: Any) -> Reward:
    """Specificity of the new sentences alone; does not apply where nothing is new."""
    from rewards.terms.specificity import Specificity

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
    table = Outcomes(outcomes, seed, encode)
    figures, intervals = figures_of(measures_of(outcomes), table)
    by_initial, initial_intervals = change_by_initial(outcomes, seed=seed)
    often = most_repeated(table.new, table.groups)
    return {
        **figures,
        **by_initial,
        "most_repeated": [{"sentence": text, "seekers": posts} for text, posts in often],
        "intervals": {**intervals, "empathy_change_by_initial": initial_intervals},
    }


def change_by_initial(
    outcomes: Sequence[Outcome], *, seed: int = 0
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The change in empathy by how empathic the originals were, how many those are; intervals."""
    change = MEASURES["empathy_change"]
    groups = {
        name: Outcomes([outcomes[place] for place in places], seed)
        for name, places in rows_by_initial([one.before.empathy for one in outcomes]).items()
    }
    found = {name: change.figure(table) for name, table in groups.items()}
    figures = {
        "empathy_change_by_initial": {name: value for name, (value, _) in found.items()},
        "n_by_initial": {name: len(table.rows) for name, table in groups.items()},
    }
    return figures, {name: interval for name, (_, interval) in found.items()}
