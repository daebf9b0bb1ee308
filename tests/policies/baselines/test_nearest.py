"""A sentence of the most similar posts, in front of a reply or behind it."""

from policies.baselines.nearest import NearestPolicy, with_sentence
from policies.choosing.bank import Bank, fitting_sentences
from rewriting import Exchange
from tests.policies.choosing.tiny import Letters

EXCHANGES = [Exchange("My cat is missing.", "Look around."), Exchange("I failed.", "Study. Sleep.")]


def test_candidates_are_different_sentences_of_near_posts_and_the_seed_orders_them() -> None:
    bank = Bank(Letters(), list(fitting_sentences()))
    policy = NearestPolicy(bank)
    rows = policy.rewrites(EXCHANGES, [1, 2, 3, 4])
    assert len(rows) == 4
    for number, exchange in enumerate(EXCHANGES):
        said = [row[number].edits[0].sentence for row in rows]
        assert len(set(said)) == 4
        (near,) = bank.nearest([exchange.seeker_post], 16)
        assert set(said) <= {bank.sentences[one.number] for one in near}
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
