"""Early warnings: signs in the log that a policy is learning the wrong thing, or nothing.

Rewards can rise while the text degrades, and a policy that says one sentence to everybody, or asks
everybody something, looks fine in the mean. Pure functions over the rows of a log.jsonl, so that a
resumed run warns where an uninterrupted one would, and a log can be looked at afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rewriting.exchange import MECHANISMS

Row = Mapping[str, float]

WINDOW: Final = 20
"""Steps that a sign must last for: single steps are noise."""
LEAST_RISE: Final = 0.2
"""Of what the mechanisms pay, in levels or probabilities: less may be noise."""


@dataclass(frozen=True, slots=True)
class Words:
    """What the log of an algorithm calls the texts it wrote, and what helps against each sign."""

    texts: str
    samples: str
    ask: str
    distinct: str
    tokens: str
    remedies: Mapping[str, str]


EDITS: Final = Words(
    "new sentences", "samples", "are questions", "distinct_sentences", "sentence_tokens",
    {
        "alike": "Raise kl_weight, lower the learning rate, or reward what is specific "
        "(specificity, mutual_information, repetition with across_batch).",
        "long": "Some reward pays for length: add edit_size, raise kl_weight, or lower "
        "max_new_tokens.",
        "keeps": "Raise entropy_weight, or lower the weights of rewards that every edit loses by.",
        "flat": "Check the rewards on samples.jsonl, raise num_samples or entropy_weight.",
        "questions": "Some reward pays for asking whatever is asked: look at "
        "rewards/*/explorations, run `evaluate.py audit` on the rewards, add contrast, or raise "
        "kl_weight.",
        "opening": "Raise kl_weight, lower the learning rate, or reward what is specific "
        "(contrast, mutual_information, repetition with across_batch).",
        "mechanism": "Read samples.jsonl, run `evaluate.py audit` on the rewards, add contrast, or "
        "raise kl_weight.",
    },
)  # fmt: skip
RESPONSES: Final = Words(
    "responses", "responses", "ask something", "distinct_responses", "response_tokens",
    {
        "alike": EDITS.remedies["alike"],
        "long": "Some reward pays for it: raise kl_weight or end_penalty, or lower max_new_tokens.",
        "flat": "Check the rewards on samples.jsonl.",
        "questions": "Some reward pays for asking whatever is asked: look at "
        "rewards/*/explorations and samples.jsonl, or raise kl_weight.",
        "opening": "Raise kl_weight, lower learning_rate, or reward what is specific (repetition "
        "with across_batch).",
        "mechanism": "See rewards/*/*, read samples.jsonl, raise kl_weight, or give the mechanisms "
        "other weights.",
    },
)  # fmt: skip
"""A generator never keeps a response."""


def new_warnings(rows: Sequence[Row]) -> list[str]:
    """What is to be said after the last row: signs that were not there the row before.

    A sign that stays is said once. When it has cleared and comes back, it is said again.
    """
    before = signs(rows[:-1])
    return [text for name, text in signs(rows).items() if name not in before]


def signs(rows: Sequence[Row]) -> dict[str, str]:
    """The signs that the last WINDOW steps show: name → a line with the remedy."""
    if len(rows) < WINDOW:
        return {}
    words = RESPONSES if any(RESPONSES.tokens in row for row in rows[-WINDOW:]) else EDITS
    found = _findings(rows, words) | _one_mechanism(rows)
    return {name: f"{text}. {words.remedies[name]}" for name, text in found.items()}


def _findings(rows: Sequence[Row], words: Words) -> dict[str, str]:
    """What the means of the last steps say. An unknown one, NaN, is on no side of a bound."""
    last, texts, found = rows[-WINDOW:], words.texts, {}
    distinct, tokens = _mean(last, words.distinct), _mean(last, words.tokens)
    if distinct < 0.2:
        found["alike"] = f"nearly all {texts} are the same (distinct {distinct:.2f})"
    start = _mean(rows[:WINDOW], words.tokens)
    if tokens >= 2 * start and tokens >= start + 5:
        found["long"] = f"{texts} grow: {tokens:.0f} tokens, {start:.0f} at the start"
    keeps = _mean(last, "share_keep")
    if keeps > 0.95:
        found["keeps"] = f"the policy keeps nearly everything ({100 * keeps:.0f} % of the actions)"
    if all(row.get("reward_spread", row.get("reward_std", math.nan)) <= 1e-8 for row in last):
        found["flat"] = f"all {words.samples} get the same reward: there is nothing to learn from"
    questions, opening = _mean(last, "share_questions"), _mean(last, "share_opening")
    if questions > 0.9:
        found["questions"] = f"nearly all {texts} {words.ask} ({100 * questions:.0f} %)"
    if opening > 0.8 and "alike" not in found:  # which says it already
        found["opening"] = f"nearly all {texts} begin with the same words ({100 * opening:.0f} %)"
    return found


def _one_mechanism(rows: Sequence[Row]) -> dict[str, str]:
    if len(rows) < 2 * WINDOW:
        return {}
    parts = [name.split("/") for name in rows[-1] if name.startswith("rewards/")]
    for term in dict.fromkeys("/".join(p[1:-1]) for p in parts if p[2:] and p[-1] in MECHANISMS):
        names = {mechanism: f"rewards/{term}/{mechanism}" for mechanism in MECHANISMS}
        rises = {m: _mean(rows[-WINDOW:], n) - _mean(rows[:WINDOW], n) for m, n in names.items()}
        known = [mechanism for mechanism, rise in rises.items() if not math.isnan(rise)]
        best = max(known, key=rises.__getitem__, default=MECHANISMS[0])
        total = math.fsum(rises[mechanism] for mechanism in known if rises[mechanism] > 0)
        if len(known) > 1 and total >= LEAST_RISE and rises[best] > 0.9 * total:
            text = f"one mechanism pays for nearly all of the rise of {term}: {best} "
            text += f"{rises[best]:+.2f} since the start, of {total:+.2f} in all"
            return {"mechanism": text}
    return {}


def _mean(rows: Sequence[Row], name: str) -> float:
    """The mean of a figure over the rows that have it; NaN where fewer than half do."""
    values = [row[name] for row in rows if name in row]
    return math.fsum(values) / len(values) if len(values) * 2 >= len(rows) > 0 else math.nan
