"""What `rewriting rewrite`, `score` and `feedback` give out of one exchange; the server too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rewriting.exchange import MECHANISMS, Exchange

if TYPE_CHECKING:
    from policies.gated import Gated
    from rewards.identifiers.assessment import Assessment
    from rewards.identifiers.ensemble import Disagreement


def output_row(row: Gated, policy_name: str, seed: int, help_text: str) -> dict[str, Any]:
    """One line of the output; docs/rewriting.md explains its fields."""
    exchange, rewritten = row.exchange, row.result()
    return {
        "id": exchange.id,
        "seeker_post": exchange.seeker_post,
        "response_post": exchange.response_post,
        "rewritten_response": rewritten.rewritten_response,
        "edits": [edit.row() for edit in rewritten.edits],
        "rewards": dict(row.rewards),
        "safety": row.row(help_text),
        "policy": policy_name,
        "seed": seed,
        "ai_assisted": True,
    }


def score_row(exchange: Exchange, assessment: Assessment) -> dict[str, Any]:
    """One line of the output, which every command reads again; docs/scoring.md explains it.

    Other columns of the source stay (user, time, outcome, …), for `rewriting insights` and others.
    """
    judgements = assessment.judgements
    return exchange.row() | {
        **{name: judgements[name].level for name in MECHANISMS},
        "probabilities": {
            name: [round(p, 6) for p in judgements[name].probabilities] for name in MECHANISMS
        },
        "empathy": assessment.empathy,
        "rationales": {name: list(judgements[name].rationales) for name in MECHANISMS},
    }


def disagreement_column(apart: Mapping[str, Disagreement]) -> dict[str, Any]:
    """What an ensemble adds to such a line: how far its members are apart."""
    return {
        "disagreement": {
            name: {
                "mean": round(apart[name].mean, 6),
                "standard_deviation": round(apart[name].standard_deviation, 6),
            }
            for name in MECHANISMS
        }
    }


def feedback_row(assessment: Assessment) -> dict[str, Any]:
    """The feedback as JSON; docs/scoring.md explains it."""
    from rewards.feedback import feedback_on

    notes = {note.mechanism: note.row() for note in feedback_on(assessment)}
    return {"empathy": assessment.empathy} | notes
