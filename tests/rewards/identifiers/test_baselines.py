"""Two identifiers to beat, on responses whose words tell everything."""

from typing import Any

import pytest

from rewards.identifiers.baselines import BASELINES, Majority, WordWeights
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange, Label
from tests.rewards.fakes import ODD_TEXTS


def exchange(response_post: str, *levels: int) -> Exchange:
    labels = {m: Label(level) for m, level in zip(MECHANISMS, levels, strict=True)}
    return Exchange("I failed again.", response_post, labels=labels)


ROWS = [
    *[exchange("Go to the gym.", 0, 0, 0)] * 6,
    *[exchange("I am sorry. Go to bed.", 1, 0, 0)] * 3,
    *[exchange("I am so very sad for you. I felt that too.", 2, 2, 0)] * 2,
    *[exchange("Go on. What happened?", 0, 0, 2)] * 2,
]


def test_majority_calls_the_most_frequent_level_with_its_share() -> None:
    first, second = Majority.fit(ROWS).assess(["a", "b"], ["I am sorry.", ""])
    assert first == second
    judgement = first.judgements["emotional_reactions"]
    assert (judgement.level, judgement.rationales) == (0, ())
    assert judgement.probabilities == pytest.approx((8 / 13, 3 / 13, 2 / 13))


def test_words_tell_levels_and_the_sentence_that_carries_them() -> None:
    (found,) = WordWeights.fit(ROWS).assess(["x"], ["Go to bed. I am sorry."])
    emotional = found.judgements["emotional_reactions"]
    assert (emotional.level, emotional.rationales) == (1, ("I am sorry.",))
    assert found.judgements["explorations"].level == 0
    assert found.judgements["explorations"].rationales == ()
    (found,) = WordWeights.fit(ROWS).assess(["x"], ["Go to bed. What happened?"])
    assert found.judgements["explorations"].level == 2
    assert found.judgements["explorations"].rationales == ("What happened?",)


def test_probabilities_know_how_rare_a_level_is() -> None:
    (found,) = WordWeights.fit(ROWS).assess(["x"], ["zzz"])
    none, _, strong = found.judgements["explorations"].probabilities
    assert none > strong


@pytest.mark.parametrize("fit", BASELINES.values(), ids=list(BASELINES))
def test_any_text_in_any_company(fit: Any) -> None:
    model = fit(ROWS)
    posts = [*ODD_TEXTS, "I am sorry. What happened?"]
    whole = model.assess(posts, posts)
    assert [model.assess([post], [post])[0] for post in posts] == whole
    assert model.assess([], []) == []
    for post, assessment in zip(posts, whole, strict=True):
        for judgement in assessment.judgements.values():
            assert sum(judgement.probabilities) == pytest.approx(1)
            assert all(piece in post for piece in judgement.rationales)
    quick = model.assess(posts, posts, rationales=False)
    assert not any(j.rationales for a in quick for j in a.judgements.values())


def test_a_single_level_is_called_for_certain() -> None:
    (found,) = WordWeights.fit(ROWS[:6]).assess(["x"], ["Go to the gym."])
    assert found.judgements["explorations"].probabilities == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("fit", BASELINES.values(), ids=list(BASELINES))
def test_without_labels_there_is_nothing_to_learn(fit: Any) -> None:
    rows = [Exchange("a b c", "d e f"), Exchange("a b c", "d e f")]
    with pytest.raises(UserError, match="no exchange is labelled for emotional_reactions"):
        fit(rows)
