"""Early warnings: signs in the log that a policy is learning the wrong thing, or nothing.

Rewards can rise while the text degrades, and a policy that says one sentence to everybody looks
fine in the mean. Pure functions over the rows of the log (METRICS of reinforce/log.py), so that a
resumed run warns where an uninterrupted one would.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

Row = Mapping[str, float]

WINDOW: Final = 20
"""Steps that a sign must last for: single steps are noise."""


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
    found = {name: sign(rows) for name, sign in SIGNS.items()}
    return {name: text for name, text in found.items() if text is not None}


def _alike(rows: Sequence[Row]) -> str | None:
    share = _mean(rows[-WINDOW:], "distinct_sentences")
    if share is None or share >= 0.2:
        return None
    return (
        f"nearly all new sentences are the same (distinct {share:.2f}). Raise kl_weight, "
        "lower the learning rate, or reward what is specific (specificity, mutual_information, "
        "repetition with across_batch)."
    )


def _long(rows: Sequence[Row]) -> str | None:
    now, start = (_mean(part, "sentence_tokens") for part in (rows[-WINDOW:], rows[:WINDOW]))
    if now is None or start is None or now < max(2 * start, start + 5):
        return None
    return (
        f"new sentences grow: {now:.0f} tokens, {start:.0f} at the start. Some reward pays for "
        "length: add edit_size, raise kl_weight, or lower max_new_tokens."
    )


def _keeps(rows: Sequence[Row]) -> str | None:
    share = _mean(rows[-WINDOW:], "share_keep")
    if share is None or share <= 0.95:
        return None
    return (
        f"the policy keeps nearly everything ({100 * share:.0f} % of the actions). Raise "
        "entropy_weight, or lower the weights of rewards that every edit loses by."
    )


def _flat(rows: Sequence[Row]) -> str | None:
    spreads = [row.get("reward_spread", row.get("reward_std")) for row in rows[-WINDOW:]]
    if any(spread is None or spread > 1e-8 for spread in spreads):
        return None
    return (
        "all samples get the same reward, so there is nothing to learn from. Check the rewards on "
        "samples.jsonl, raise num_samples or entropy_weight."
    )


SIGNS: Final[Mapping[str, Callable[[Sequence[Row]], str | None]]] = {
    "alike": _alike,
    "long": _long,
    "keeps": _keeps,
    "flat": _flat,
}


def _mean(rows: Sequence[Row], name: str) -> float | None:
    """The mean of a figure over the rows that have it; None where fewer than half do."""
    values = [row[name] for row in rows if name in row]
    return math.fsum(values) / len(values) if len(values) * 2 >= len(rows) > 0 else None
