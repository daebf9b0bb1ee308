"""What an audit amounts to: how often a reward pays the real sentence most, and which term does it.

Pure functions of scores (audit.py). Percentages are 0 to 100. The real sentence wins where it is
paid strictly more: a tie is no win, and what no term applies to neither wins nor loses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewards.audit.audit import KINDS, Audit
from rewards.reward_sum import Scores
from rewriting.exchange import MECHANISMS
from rewriting.statistics.means import mean
from rewriting.statistics.shares import wilson

Values = Sequence[float | None]
HEADLINES = {
    "matched_beats_every_stock": "stock",
    "matched_beats_wrong_post": "wrong_post",
    "matched_beats_similar_post": "similar_post",
    "matched_beats_every_nonsense": "nonsense",
}
"""Figure → the kind of sentence, all of whose sentences the real one has to beat."""


def figures(audit: Audit, is_stock: Sequence[bool]) -> dict[str, Any]:
    """All figures of an audit, as `evaluate.py audit` writes them.

    is_stock: for each item, whether the real sentence is a stock sentence itself.
    """
    wins = {name: beats_all(audit, kind) for name, kind in HEADLINES.items()}
    intervals: dict[str, Any] = {name: interval(won) for name, won in wins.items()}
    for kind in ("stock", "nonsense"):
        intervals[kind] = {
            one.sentences[0]: interval(beats(audit.one("matched").totals, scores.totals))
            for one, scores in audit.of(kind)
        }
    own = [row for row, stock in enumerate(is_stock) if stock]
    rest = [row for row, stock in enumerate(is_stock) if not stock]
    named = {"sentences": [audit.items[row].carrier.text for row in own]}
    return {
        "n": len(audit.items),
        "empty_replies": sum(not item.reply.strip() for item in audit.items),
        **{name: percent(won) for name, won in wins.items()},
        "intervals": intervals,
        "stock": by_sentence(audit, "stock"),
        "nonsense": by_sentence(audit, "nonsense"),
        "terms": {name: term_figures(audit, name) for name in audit.scores[0].terms},
        "total": {
            kind: mean([v for s in scores for v in s.totals]) for kind, scores in each(audit)
        },
        "mechanisms": by_mechanism(audit, wins),
        "carriers_that_are_stock": among(wins, own) | named,
        "carriers_that_are_not_stock": among(wins, rest),
    }


def each(audit: Audit) -> list[tuple[str, list[Scores]]]:
    """Each kind of sentence with its scores, one `Scores` for each round."""
    return [(kind, [scores for _, scores in audit.of(kind)]) for kind in KINDS]


def beats(ours: Values, theirs: Values) -> list[bool]:
    """Row by row, whether ours is strictly greater; never where either has no value."""
    pairs = zip(ours, theirs, strict=True)
    return [a is not None and b is not None and a > b for a, b in pairs]


def beats_all(audit: Audit, kind: str) -> list[bool]:
    """For each item, whether the real sentence is paid more than every sentence of a kind."""
    ours = audit.one("matched").totals
    won = [beats(ours, scores.totals) for _, scores in audit.of(kind)]
    return [all(row) for row in zip(*won, strict=True)]


def percent(won: Sequence[bool]) -> float | None:
    return 100 * sum(won) / len(won) if won else None


def interval(won: Sequence[bool]) -> list[float] | None:
    """Wilson's 95 % interval of the percentage; the items are of different posts."""
    bounds = wilson(sum(won), len(won))
    return bounds and [100 * bound for bound in bounds]


def by_sentence(audit: Audit, kind: str) -> dict[str, dict[str, Any]]:
    """For each sentence of a kind: how often the real one wins, and what was paid for it."""
    ours = audit.one("matched").totals
    return {
        one.sentences[0]: {
            "matched_wins": percent(beats(ours, scores.totals)),
            "total": scores.mean_total(),
            "terms": {name: mean(values) for name, values in scores.terms.items()},
        }
        for one, scores in audit.of(kind)
    }


def term_figures(audit: Audit, name: str) -> dict[str, float | None]:
    """A term's mean for each kind, and how often the term alone lets the real sentence win."""
    means = {
        kind: mean([value for one in scores for value in one.terms[name]])
        for kind, scores in each(audit)
    }
    wins = {f"wins_over_{kind}": wins_alone(audit, name, kind) for kind in ("stock", "wrong_post")}
    return means | wins


def wins_alone(audit: Audit, name: str, kind: str) -> float | None:
    """The percentage of (item, sentence) pairs that the real sentence wins by this term alone.

    What a rewarded term adds to the total counts, so a negative weight turns the order round. Pairs
    that the term does not apply to are left out.
    """
    ours = paid(audit.one("matched"), name)
    pairs = [
        (a, b)
        for _, scores in audit.of(kind)
        for a, b in zip(ours, paid(scores, name), strict=True)
        if a is not None and b is not None
    ]
    return percent([a > b for a, b in pairs])


def paid(scores: Scores, name: str) -> Values:
    """What a term adds to the totals; of a term that is logged only, its values."""
    return scores.contributions.get(name) or scores.terms[name]


def by_mechanism(audit: Audit, wins: Mapping[str, Sequence[bool]]) -> dict[str, dict[str, Any]]:
    """The main figures by the mechanism that the real sentence carries."""
    rows = {
        mechanism: [
            row for row, item in enumerate(audit.items) if item.carrier.mechanism == mechanism
        ]
        for mechanism in MECHANISMS
    }
    return {mechanism: among(wins, chosen) for mechanism, chosen in rows.items()}


def among(wins: Mapping[str, Sequence[bool]], rows: Sequence[int]) -> dict[str, Any]:
    """The two main figures of the audit, over some of its items."""
    names = ("matched_beats_every_stock", "matched_beats_wrong_post")
    return {"n": len(rows)} | {name: percent([wins[name][row] for row in rows]) for name in names}
