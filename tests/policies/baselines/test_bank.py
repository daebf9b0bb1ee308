"""The bank: sentences of the most similar posts, in front of a reply or behind it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from policies.baselines.bank import BankPolicy, fitting_sentences, with_sentence
from rewriting import Exchange

EXCHANGES = [Exchange("My cat is missing.", "Look around."), Exchange("I failed.", "Study. Sleep.")]


class Letters:
    """Unit vectors that count letters."""

    def encode(self, texts: Sequence[str], **_: Any) -> Any:
        counts = np.array([[text.lower().count(c) for c in "abcdefghijklmnop"] for text in texts])
        return (counts + 0.01) / np.linalg.norm(counts + 0.01, axis=1, keepdims=True)


def test_the_bank_holds_general_sentences_under_the_posts_they_fit() -> None:
    bank = list(fitting_sentences())
    assert len({one.sentence for one in bank}) > 2000
    assert all(one.sentence.strip() and one.post.strip() for one in bank)


def test_candidates_are_different_sentences_of_near_posts_and_the_seed_orders_them() -> None:
    policy = BankPolicy(Letters())
    rows = policy.rewrites(EXCHANGES, [1, 2, 3, 4])
    assert len(rows) == 4
    for number, exchange in enumerate(EXCHANGES):
        said = [row[number].edits[0].sentence for row in rows]
        assert len(set(said)) == 4
        near = policy.nearest([exchange])[0]
        assert set(said) <= set(near)
        assert all(row[number].exchange is exchange for row in rows)
    assert policy.rewrites(EXCHANGES, [1, 2, 3, 4]) == rows
    assert policy.rewrite(EXCHANGES, seed=1) == rows[0]
    assert policy.rewrites(EXCHANGES, [5, 2, 3, 4]) != rows
    alone = policy.rewrites(EXCHANGES[1:], [1, 2])
    assert [row[0] for row in alone] == [row[1] for row in rows[:2]]


def test_a_question_comes_last_and_all_else_first() -> None:
    kind = with_sentence(EXCHANGES[1], "That hurts.")
    assert kind.rewritten_response == "That hurts. Study. Sleep."
    asked = with_sentence(EXCHANGES[1], "What now?")
    assert asked.rewritten_response == "Study. Sleep. What now?"
