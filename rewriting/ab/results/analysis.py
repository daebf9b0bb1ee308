"""What the votes of a study say: which votes go into which figure, and all figures as one tree.

Only pairs of the kind `item` count for win rates. Raters who fall under the rule that the study
fixed in advance are left out of `main`; `all_raters` has everybody, so that a reader sees what the
rule did. docs/ab-tests.md explains every key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from statistics import median
from typing import Any, Final

from rewriting.ab.results.statistics import alpha, bradley_terry, rate_figures, table_of
from rewriting.ab.study.study import TIE, Study, Vote
from rewriting.runtime.seeds import derive_seed
from rewriting.statistics.multiple import holm
from rewriting.statistics.shares import binomial_p, wilson

TIES: Final = {"ties_left_out": "left_out", "ties_split": "split"}
TESTS: Final = ("binomial_p", "clustered_p")
LEVEL: Final = 0.05


def analyse(study: Study, votes: Sequence[Vote]) -> dict[str, Any]:
    """Every figure of the report. votes: every revision; the last ones count."""
    raters = rater_figures(study, votes)
    votes = last_revisions(votes)
    excluded = {row["rater"] for row in raters if row["excluded_because"]}
    everybody = figures_of(study, votes)
    kept = [vote for vote in votes if vote.rater not in excluded]
    return {
        "title": study.title,
        "systems": list(study.systems),
        "criteria": {one.name: one.question for one in study.criteria},
        "data_hash": study.data_hash,
        "planned": {
            "raters": len(study.raters),
            "items": len(study.of_kind("item")),
            "votes_per_item": study.votes_per_item,
        },
        "exclusion_rule": {
            "minimum_attention": study.exclusion.minimum_attention,
            "minimum_seconds": study.exclusion.minimum_seconds,
        },
        "excluded": sorted(excluded),
        "main": figures_of(study, kept) if excluded else everybody,
        "all_raters": everybody,
        "raters": raters,
        "harmful": harmful(study, votes),
    }


def figures_of(study: Study, votes: Sequence[Vote]) -> dict[str, Any]:
    """The figures of some of the raters."""
    counted = [vote for vote in votes if study.items[vote.item].kind == "item"]
    found: dict[str, Any] = {
        "raters": len({vote.rater for vote in counted}),
        "items": len({vote.item for vote in counted}),
        "votes": len(counted),
        "comparisons": comparisons(study, counted),
        "position": position(study, counted),
        "consistency": consistency(study, votes),
    }
    if len(study.systems) > 2:
        found["bradley_terry"] = {
            one.name: strengths(study, [vote for vote in counted if vote.criterion == one.name])
            for one in study.criteria
        }
    return found


def comparisons(study: Study, votes: Sequence[Vote]) -> list[dict[str, Any]]:
    """A row for every pair of systems and criterion; Holm over all of them."""
    rows = []
    for first, second in combinations(study.systems, 2):
        for criterion in study.criteria:
            own = [
                (vote.rater, vote.item, outcome(vote, first))
                for vote in votes
                if vote.criterion == criterion.name and {vote.left, vote.right} == {first, second}
            ]
            rows.append(comparison(study, first, second, criterion.name, own))
    for ties in TIES:
        for test in TESTS:
            adjusted = holm({place: row[ties][test] for place, row in enumerate(rows)})
            for place, row in enumerate(rows):
                row[ties][f"{test}_holm"] = adjusted[place]
    for row in rows:
        row["better"] = better(row)
    return rows


def outcome(vote: Vote, first: str) -> float:
    """1 where the first system won, 0 where the other one did, 0.5 for a tie."""
    return 0.5 if vote.winner == TIE else float(vote.winner == first)


def comparison(
    study: Study, first: str, second: str, criterion: str, votes: Sequence[tuple[int, str, float]]
) -> dict[str, Any]:
    table = table_of(votes)
    seed = derive_seed(study.seed, "report", first, second, criterion)
    row: dict[str, Any] = {
        "first": first,
        "second": second,
        "criterion": criterion,
        "raters": len(table.raters),
        "items": len(table.items),
        "wins": table.wins,
        "ties": table.ties,
        "losses": table.losses,
    }
    for name, ties in TIES.items():
        row[name] = rate_figures(table, ties=ties, seed=seed)
    return row | {"agreement": alpha(table, seed=seed)}


def better(row: dict[str, Any]) -> str | None:
    """The system that raters prefer, "" where none is shown to be preferred, None if untested.

    By the clustered test with ties left out, Holm over all comparisons.
    """
    figures = row["ties_left_out"]
    if figures["clustered_p_holm"] is None:
        return None
    if figures["clustered_p_holm"] >= LEVEL:
        return ""
    return str(row["first"] if figures["win_rate"] > 0.5 else row["second"])


def position(study: Study, votes: Sequence[Vote]) -> dict[str, Any]:
    """Per criterion: how often reply A (left) won among decided votes. Sides are balanced, so it
    should be one half; a bias widens the figures above and does not favour a system."""
    found = {}
    for criterion in study.criteria:
        decided = [v for v in votes if v.criterion == criterion.name and v.winner != TIE]
        left = sum(vote.winner == vote.left for vote in decided)
        found[criterion.name] = share(left, len(decided))
        found[criterion.name]["binomial_p"] = binomial_p(left, len(decided))
    adjusted = holm({name: one["binomial_p"] for name, one in found.items()})
    for name, one in found.items():
        one["binomial_p_holm"] = adjusted[name]
    return found


def consistency(study: Study, votes: Sequence[Vote]) -> dict[str, Any]:
    """Per criterion: how often a rater who saw a pair again, sides swapped, said the same."""
    said = {(vote.rater, vote.item, vote.criterion): vote.winner for vote in votes}
    found = {}
    for criterion in study.criteria:
        same = list(_repeats(study, said, criterion.name))
        found[criterion.name] = share(sum(same), len(same))
    return found


def _repeats(study: Study, said: dict[tuple[int, str, str], str], criterion: str) -> Iterable[bool]:
    for (rater, item, asked), winner in said.items():
        first = said.get((rater, study.items[item].repeat_of, criterion))
        if study.items[item].kind == "repeat" and asked == criterion and first is not None:
            yield winner == first


def share(part: int, whole: int) -> dict[str, Any]:
    """A share of votes with Wilson's interval."""
    return {
        "share": part / whole if whole else None,
        "interval": wilson(part, whole),
        "votes": whole,
    }


def strengths(study: Study, votes: Sequence[Vote]) -> dict[str, Any] | None:
    """Bradley–Terry over all systems; None where not every one has been judged."""
    if {name for vote in votes for name in (vote.left, vote.right)} != set(study.systems):
        return None
    rows = [
        (
            vote.rater,
            study.items[vote.item].exchange_id or vote.item,
            vote.left,
            vote.right,
            outcome(vote, vote.left),
        )
        for vote in votes
    ]
    return bradley_terry(rows, study.systems, seed=derive_seed(study.seed, "strengths"))


def last_revisions(votes: Sequence[Vote]) -> list[Vote]:
    """What raters say in the end, in the order it came."""
    last: dict[tuple[int, str], int] = defaultdict(int)
    for vote in votes:
        last[vote.rater, vote.item] = max(last[vote.rater, vote.item], vote.revision)
    return [vote for vote in votes if vote.revision == last[vote.rater, vote.item]]


def rater_figures(study: Study, votes: Sequence[Vote]) -> list[dict[str, Any]]:
    """Per rater: work done, attention, pace, and why the rater is excluded, if so.

    votes: every revision. The time of a pair is that of all of them together: whoever corrects an
    answer quickly has not been hasty.
    """
    by_rater: dict[int, list[Vote]] = defaultdict(list)
    for vote in votes:
        by_rater[vote.rater].append(vote)
    return [_rater_row(study, rater, by_rater[rater]) for rater in sorted(by_rater)]


def _rater_row(study: Study, rater: int, revisions: Sequence[Vote]) -> dict[str, Any]:
    votes = last_revisions(revisions)
    counted = [vote for vote in votes if study.items[vote.item].kind == "item"]
    right: dict[str, bool] = {}
    for vote in votes:
        item = study.items[vote.item]
        if item.kind == "attention":
            right[item.id] = right.get(item.id, True) and vote.winner == item.expected
    attention = sum(right.values()) / len(right) if right else None
    spent = {(v.item, v.revision): v.seconds for v in revisions}  # the same for every criterion
    times: dict[str, float] = defaultdict(float)
    for (key, _), duration in spent.items():
        if study.items[key].kind == "item":
            times[key] += duration
    seconds = median(times.values()) if times else None
    decided = [vote for vote in counted if vote.winner != TIE]
    said = {(vote.rater, vote.item, vote.criterion): vote.winner for vote in votes}
    same = [one for c in study.criteria for one in _repeats(study, said, c.name)]
    return {
        "rater": rater,
        "items": len(times),
        "attention": attention,
        "attention_checks": len(right),
        "median_seconds": seconds,
        "ties": 1 - len(decided) / len(counted) if counted else None,
        "left": sum(v.winner == v.left for v in decided) / len(decided) if decided else None,
        "consistency": sum(same) / len(same) if same else None,
        "harmful": len({vote.item for vote in votes if vote.harmful}),
        "excluded_because": exclusion_reasons(study, attention, seconds),
    }


def exclusion_reasons(study: Study, attention: float | None, seconds: float | None) -> list[str]:
    """What of the rule a rater falls under. Nothing where there was nothing to judge by."""
    rule, reasons = study.exclusion, []
    if attention is not None and attention < rule.minimum_attention:
        reasons.append(f"attention {attention:.0%}, below {rule.minimum_attention:.0%}")
    if seconds is not None and seconds < rule.minimum_seconds:
        reasons.append(f"median {seconds:.1f} s a pair, below {rule.minimum_seconds:g} s")
    return reasons


def harmful(study: Study, votes: Sequence[Vote]) -> list[dict[str, Any]]:
    """The pairs that raters flagged, the most flagged first. A flag is on the pair, not on a side.

    Comments stay out: they are in the export and on the page, scrubbed.
    """
    flagged: dict[str, set[int]] = defaultdict(set)
    seen: dict[str, set[int]] = defaultdict(set)
    for vote in votes:
        seen[vote.item].add(vote.rater)
        if vote.harmful:
            flagged[vote.item].add(vote.rater)
    rows = [
        {
            "item": item,
            "kind": study.items[item].kind,
            "systems": sorted(study.items[item].replies),
            "flags": len(raters),
            "raters": len(seen[item]),
        }
        for item, raters in flagged.items()
    ]
    return sorted(rows, key=lambda row: (-row["flags"], row["item"]))
