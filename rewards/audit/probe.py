"""The audit: would kind words in the wrong place be called empathic?

Lee et al. (2023) put "I know how you feel." into chats about gardening, and the classifiers still
called them empathic: they read the surface, not the context. What a reward cannot see, an agent
will exploit. Two probes: seeds inserted into exchanges that call for no empathy, and real empathic
replies moved to somebody else's post.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewards.identifiers.assessment import Assessment, Identifier
from rewards.identifiers.moved_posts import moved
from rewards.identifiers.seed_sentences import SEEDS
from rewards.protocol import Reward, called
from rewriting.edits import Edit, apply_edits
from rewriting.exchange import MECHANISMS, Exchange
from rewriting.runtime.seeds import derive_seed
from rewriting.sentences import split_sentences
from rewriting.statistics.classification import auroc


def with_seed(exchange: Exchange, sentence: str, seed: int = 0) -> str:
    """The response with the sentence inserted at a place drawn for this exchange."""
    places = len(split_sentences(exchange.response_post)) + 1
    key = derive_seed(seed, exchange.id, exchange.response_post, sentence)
    return apply_edits(exchange.response_post, [Edit.insert(key % places, sentence)])


def insertion_probe(
    identifier: Identifier, contexts: Sequence[Exchange], seed: int = 0
) -> dict[str, dict[str, Any]]:
    """Per mechanism, the share called empathic before and after the insertion, in percent.

    `flagged_after` is the mean over the mechanism's seeds, which `seeds` gives one by one.
    """
    posts = [exchange.seeker_post for exchange in contexts]
    before = _assess(identifier, posts, [exchange.response_post for exchange in contexts])
    # Some seeds serve two mechanisms: each is inserted and assessed once.
    sentences = dict.fromkeys(sentence for seeds in SEEDS.values() for sentence in seeds)
    after = {
        sentence: _assess(identifier, posts, [with_seed(e, sentence, seed) for e in contexts])
        for sentence in sentences
    }
    figures = {}
    for mechanism, seeds in SEEDS.items():
        shares = {sentence: flagged(after[sentence], mechanism) for sentence in seeds}
        figures[mechanism] = {
            "flagged_before": flagged(before, mechanism),
            "flagged_after": sum(shares.values()) / len(shares),
            "seeds": shares,
            "n": len(contexts),
        }
    return figures


def _assess(
    identifier: Identifier, seeker_posts: Sequence[str], response_posts: Sequence[str]
) -> list[Assessment]:
    return identifier.assess(seeker_posts, response_posts, rationales=False)


def flagged(assessments: Sequence[Assessment], mechanism: str) -> float:
    """The percentage of responses in which the mechanism is called, weak or strong."""
    hits = sum(assessment.judgements[mechanism].level > 0 for assessment in assessments)
    return 100 * hits / len(assessments)


def mismatch_probe(
    identifier: Identifier, exchanges: Sequence[Exchange]
) -> dict[str, dict[str, Any]]:
    """Empathic replies in place and moved to another post: can the identifier tell?

    Per mechanism, over the replies that are labelled above level 0: the share called empathic in
    place and moved, the mean expected level there, and the AUROC of the expected level for telling
    in place from moved (50 is chance, 100 perfect).
    """
    figures = {}
    for mechanism in MECHANISMS:
        rows = [e for e in exchanges if mechanism in e.labels and e.labels[mechanism].level]
        if len({exchange.seeker_post for exchange in rows}) < 2:
            continue
        responses = [exchange.response_post for exchange in rows]
        in_place = _assess(identifier, [e.seeker_post for e in rows], responses)
        away = _assess(identifier, moved(rows), responses)
        here, there = _expected(in_place, mechanism), _expected(away, mechanism)
        figures[mechanism] = {
            "flagged_in_place": flagged(in_place, mechanism),
            "flagged_moved": flagged(away, mechanism),
            "expected_in_place": sum(here) / len(here),
            "expected_moved": sum(there) / len(there),
            "auroc": 100 * auroc([True] * len(here) + [False] * len(there), here + there),
            "n": len(rows),
        }
    return figures


def context_sensitivity(
    insertions: Mapping[str, Mapping[str, Any]], mismatches: Mapping[str, Mapping[str, Any]]
) -> dict[str, float]:
    """Both probes in one line: each figure's mean over the mechanisms.

    Without replies to move, only what the insertions tell.
    """
    names = {
        "flagged_before": insertions,
        "flagged_after": insertions,
        "expected_in_place": mismatches,
        "expected_moved": mismatches,
        "auroc": mismatches,
    }
    return {
        name: sum(one[name] for one in figures.values()) / len(figures)
        for name, figures in names.items()
        if figures
    }


def _expected(assessments: Sequence[Assessment], mechanism: str) -> list[float]:
    return [assessment.judgements[mechanism].expected_level for assessment in assessments]


@dataclass(frozen=True, slots=True)
class Rise:
    """What a reward term makes of nonsense: its mean change, and how often it rises."""

    mean_change: float
    share_rising: float
    n: int


def rising_terms(
    terms: dict[str, Reward], contexts: Sequence[Exchange], seed: int = 0
) -> dict[str, Rise]:
    """Which terms go up when a seed is inserted where it makes no sense.

    Each context gets one seed, in turn. A term that does not apply to a row is left out there.
    """
    sentences = list(dict.fromkeys(sentence for seeds in SEEDS.values() for sentence in seeds))
    chosen = [sentences[row % len(sentences)] for row in range(len(contexts))]
    originals = [exchange.response_post for exchange in contexts]
    columns = {
        "seeker_post": [exchange.seeker_post for exchange in contexts],
        "response_post": originals,
    }
    nonsense = [with_seed(e, s, seed) for e, s in zip(contexts, chosen, strict=True)]
    found = {}
    for name, term in terms.items():
        before = called(name, term, columns | {"completions": originals})
        after = called(name, term, columns | {"completions": nonsense, "sentence": chosen})
        changes = [
            a - b for a, b in zip(after, before, strict=True) if a is not None and b is not None
        ]
        if changes:
            rising = sum(change > 0 for change in changes)
            found[name] = Rise(
                sum(changes) / len(changes), 100 * rising / len(changes), len(changes)
            )
    return found
