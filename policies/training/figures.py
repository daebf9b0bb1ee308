"""Figures that both algorithms log, from plain numbers and texts.

Sums are exact (`math.fsum`), so that the order of rows, and who computed them, does not matter.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rewriting.errors import UserError
from rewriting.statistics.means import mean

OPENING: Final = 3
"""Words that make the opening of a sentence."""
QUESTION: Final = re.compile(r"[?？]\W*$")
WORD: Final = re.compile(r"[\w']+")


def reward_figures(outcomes: Sequence[Any]) -> dict[str, float | None]:
    """Of the rewards, and the mean of every term, and of every part of one, where it applies."""
    rewards = [outcome.reward for outcome in outcomes]
    rows = [{**outcome.terms, **outcome.parts} for outcome in outcomes]
    names = dict.fromkeys(name for row in rows for name in row)
    means = {f"rewards/{name}": mean([row.get(name) for row in rows]) for name in names}
    return {"reward": mean(rewards), "reward_std": deviation(rewards)} | means


def known(figures: Mapping[str, float | None]) -> dict[str, float]:
    """A figure that nothing is known of is left out."""
    return {name: value for name, value in figures.items() if value is not None}


def dev_figures(
    figures: Mapping[str, float], keep_best: bool
) -> tuple[dict[str, float], float | None]:
    """What a Run measures: figures of dev by dev/NAME, and what the best weights are kept by."""
    loss = -figures["reward"] if keep_best and "reward" in figures else None
    return {f"dev/{name}": value for name, value in figures.items()}, loss


def check_kl(penalties: Sequence[float]) -> None:
    """Stop where the reference rules out what the policy said."""
    if not all(map(math.isfinite, penalties)):
        raise UserError(
            "the KL to the reference is infinite: the reference could not have said what the "
            "policy said. Train with top_p 1."
        )


def deviation(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.pstdev(known) if known else None


def distinct(sentences: Sequence[str]) -> float | None:
    """How different sentences are: 1 where all differ, 0 where all are one; None for fewer than 2.

    Case and white space do not count.
    """
    if len(sentences) < 2:
        return None
    different = {" ".join(sentence.casefold().split()) for sentence in sentences}
    return (len(different) - 1) / (len(sentences) - 1)


def is_question(sentence: str) -> bool:
    """Whether it ends with a question mark, whatever quotation marks or emojis come after it."""
    return QUESTION.search(sentence) is not None


def share_of_opening(sentences: Sequence[str]) -> float | None:
    """The share of sentences that begin with the commonest three words; None for fewer than 2.

    "How do you feel?" and "How do you cope with it?" are two sentences, and one trick. Case and
    punctuation do not count.
    """
    if len(sentences) < 2:
        return None
    openings = Counter(tuple(WORD.findall(s.casefold())[:OPENING]) for s in sentences)
    return max(openings.values()) / len(sentences)
