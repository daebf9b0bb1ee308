"""The shipped default sum gives the same numbers however many texts its models read at once."""

import gc

import pytest

from recipes.shared.settings import PARTNER_REWARDS
from rewards.named import Models, build_rewards
from rewards.reward_sum import Scores
from rewriting.data import load_exchanges
from rewriting.edits import Edit, apply_edits
from rewriting.errors import UserError
from rewriting.exchange import Exchange
from rewriting.runtime.cache import ScoreCache
from rewriting.runtime.language_models.backbone import Backbone
from rewriting.sentences import split_sentences

TOLERANCE = 1e-5
NEW = (
    "I'm so sorry that this happened to you.",
    "What would help you most tonight?",
    "That must have felt lonely, after all that you did for them.",
)


@pytest.fixture(scope="module")
def exchanges() -> list[Exchange]:
    return list(load_exchanges("sample:dev", limit=20))


def forget() -> None:
    """Empty all memories of texts in this process."""
    for thing in gc.get_objects():
        if type(thing) is ScoreCache:
            thing.forget()


def scored(batch_size: int, exchanges: list[Exchange]) -> Scores:
    models = Models(batch_size=batch_size, language_model=Backbone.shared())
    sentences = [NEW[number % len(NEW)] for number in range(len(exchanges))]
    replies = [exchange.response_post for exchange in exchanges]
    rewritten = [
        apply_edits(reply, [Edit.insert(len(split_sentences(reply)), sentence)])
        for reply, sentence in zip(replies, sentences, strict=True)
    ]
    return build_rewards(PARTNER_REWARDS, models).score(
        completions=rewritten,
        seeker_post=[exchange.seeker_post for exchange in exchanges],
        response_post=replies,
        sentence=sentences,
    )


@pytest.mark.integration
def test_batches_of_eight_give_what_single_texts_give(exchanges: list[Exchange]) -> None:
    alone, together = scored(1, exchanges), scored(8, exchanges)
    assert alone.terms.keys() == together.terms.keys()
    for name, values in alone.terms.items():
        assert together.terms[name] == pytest.approx(values, abs=TOLERANCE), name
    assert together.totals == pytest.approx(alone.totals, abs=TOLERANCE)
    assert len({round(total, 3) for total in alone.totals if total is not None}) > 10


@pytest.mark.integration
def test_a_later_step_gives_the_bits_of_a_fresh_start(exchanges: list[Exchange]) -> None:
    """A resumed run has an empty memory, and makes the same batches of the same rows."""
    models = Models(batch_size=8)
    terms = "{contrast: 1, coherence: 1, kindness: 1, sense: 1, specificity: 1}"
    rewards = build_rewards(terms, models)

    def score(rows: list[Exchange]) -> Scores:
        return rewards.score(
            completions=[f"{row.response_post} {NEW[0]}" for row in rows],
            seeker_post=[row.seeker_post for row in rows],
            response_post=[row.response_post for row in rows],
            sentence=[NEW[0]] * len(rows),
        )

    fresh = score(exchanges[4:10])
    forget()
    score(exchanges[:7])
    assert score(exchanges[4:10]).terms == fresh.terms


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(UserError, match="1 or more, not 0"):
        Models(batch_size=0)
