"""Early warnings: signs in the log that a policy is learning the wrong thing, or nothing.

Rewards can rise while the text degrades, and a policy that says one sentence to everybody, or asks
everybody something, looks fine in the mean. Pure functions over the rows of the log (METRICS of
reinforce/log.py), so that a resumed run warns where an uninterrupted one would.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from rewriting.exchange import MECHANISMS

Row = Mapping[str, float]

WINDOW: Final = 20
"""Steps that a sign must last for: single steps are noise."""
LEAST_RISE: Final = 0.2
"""Of what the mechanisms pay, in levels or probabilities: less may be noise."""


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


def _questions(rows: Sequence[Row]) -> str | None:
    share = _mean(rows[-WINDOW:], "share_questions")
    if share is None or share <= 0.9:
        return None
    return (
        f"nearly all new sentences are questions ({100 * share:.0f} %). Some reward pays for "
        "asking whatever is asked: look at rewards/*/explorations, run `evaluate.py audit` on the "
        "rewards, add contrast, or raise kl_weight."
    )


def _opening(rows: Sequence[Row]) -> str | None:
    share = _mean(rows[-WINDOW:], "share_opening")
    if share is None or share <= 0.8 or _alike(rows) is not None:  # which says it already
        return None
    return (
        f"nearly all new sentences begin with the same words ({100 * share:.0f} %). Raise "
        "kl_weight, lower the learning rate, or reward what is specific (contrast, "
        "mutual_information, repetition with across_batch)."
    )


def _one_mechanism(rows: Sequence[Row]) -> str | None:
    if len(rows) < 2 * WINDOW:
        return None
    for term in _terms_by_mechanism(rows[-1]):
        rises = {m: _rise(rows, f"rewards/{term}/{m}") for m in MECHANISMS}
        gains = {m: rise for m, rise in rises.items() if rise is not None and rise > 0}
        known, total = [r for r in rises.values() if r is not None], math.fsum(gains.values())
        if len(known) > 1 and total >= LEAST_RISE and max(gains.values()) > 0.9 * total:
            best = max(gains, key=lambda mechanism: gains[mechanism])
            return (
                f"one mechanism pays for nearly all of the rise of {term}: {best} "
                f"{gains[best]:+.2f} since the start, of {total:+.2f} in all. Read samples.jsonl, "
                "run `evaluate.py audit` on the rewards, add contrast, or raise kl_weight."
            )
    return None


def _terms_by_mechanism(row: Row) -> list[str]:
    """The terms that report a part for a mechanism."""
    parts = [name.removeprefix("rewards/") for name in row if name.startswith("rewards/")]
    split = [name.rpartition("/") for name in parts]
    return list(dict.fromkeys(term for term, _, part in split if term and part in MECHANISMS))


def _rise(rows: Sequence[Row], name: str) -> float | None:
    """How much higher a figure is in the last steps than in the first ones."""
    start, now = _mean(rows[:WINDOW], name), _mean(rows[-WINDOW:], name)
    return None if start is None or now is None else now - start


SIGNS: Final[Mapping[str, Callable[[Sequence[Row]], str | None]]] = {
    "alike": _alike,
    "long": _long,
    "keeps": _keeps,
    "flat": _flat,
    "questions": _questions,
    "opening": _opening,
    "mechanism": _one_mechanism,
}


def _mean(rows: Sequence[Row], name: str) -> float | None:
    """The mean of a figure over the rows that have it; None where fewer than half do."""
    values = [row[name] for row in rows if name in row]
    return math.fsum(values) / len(values) if len(values) * 2 >= len(rows) > 0 else None
