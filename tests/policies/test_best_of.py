"""The best of several samples, by a sum of rewards."""

from collections.abc import Sequence
from typing import Any

import pytest

from policies.baselines.generic import GenericPolicy
from policies.best_of import BestOf, candidate_seed
from rewards.reward_sum import RewardSum, Term
from rewriting import Edit, Exchange, Rewrite

EXCHANGES = [Exchange("I failed.", "Try."), Exchange("I moved.", "Rest.")]


class Numbered:
    """Writes a text for each seed, in the order in which the seeds come."""

    name = "numbered"

    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self.seeds: list[int] = []

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
        text = self.texts[len(self.seeds)]
        self.seeds.append(seed)
        return [
            Rewrite(one, f"{text} {one.response_post}", (Edit.insert(0, text),))
            for one in exchanges
        ]


class Watched:
    """Longer is better; keeps what it was called with. Does not apply to the word None."""

    def __init__(self) -> None:
        self.columns: list[dict[str, Any]] = []

    def __call__(self, *, completions: Sequence[str], **columns: Any) -> list[float | None]:
        self.columns.append({"completions": completions, **columns})
        return [None if "None" in text else float(len(text)) for text in completions]


def best_of(policy: Any, number: int, reward: Any = None) -> BestOf:
    return BestOf(policy, RewardSum({"longer": Term(reward or Watched(), 2.0)}), number)


def test_the_longest_is_the_best_and_has_its_rewards() -> None:
    policy = best_of(Numbered("Oh.", "Oh dear.", "O."), 3)
    first, second = policy.best(EXCHANGES, seed=5)
    assert first.rewrite == Rewrite(EXCHANGES[0], "Oh dear. Try.", (Edit.insert(0, "Oh dear."),))
    assert (first.rewards, first.total) == ({"longer": 13.0}, 26.0)
    assert second.rewrite.rewritten_response == "Oh dear. Rest."
    assert policy.name == "numbered"


def test_the_first_candidate_is_what_the_policy_gives_alone() -> None:
    policy = Numbered("a", "b", "c")
    best_of(policy, 3).rewrite(EXCHANGES, seed=5)
    assert policy.seeds == [5, candidate_seed(5, 1), candidate_seed(5, 2)]
    assert len(set(policy.seeds)) == 3


def test_all_candidates_in_order() -> None:
    policy = best_of(Numbered("bb", "None", "ccc", "aa"), 4)
    texts = [[c.rewrite.edits[0].sentence for c in row] for row in policy.ranked(EXCHANGES, seed=0)]
    assert texts == [["ccc", "bb", "aa", "None"]] * 2


@pytest.mark.parametrize(
    ("margin", "best"), [(None, "O. Try."), (0.0, "O. Try."), (5.9, "O. Try."), (6.1, "Try.")]
)
def test_a_rewrite_that_is_hardly_better_gives_way_to_the_reply(
    margin: float | None, best: str
) -> None:
    """'O. Try.' is paid 2 × 7 and 'Try.' 2 × 4: six more."""
    rewards = RewardSum({"longer": Term(Watched(), 2.0)})
    policy = BestOf(Numbered("O."), rewards, 1, margin=margin)
    found = policy.rewrite(EXCHANGES[:1], seed=0)[0]
    assert found.rewritten_response == best
    assert found.changed == (best != "Try.")


def test_equal_candidates_are_scored_once() -> None:
    reward = Watched()
    policy = best_of(GenericPolicy(), 4, reward)
    assert policy.rewrite(EXCHANGES, seed=0) == GenericPolicy().rewrite(EXCHANGES, seed=0)
    (columns,) = reward.columns
    assert len(columns["completions"]) == 2
    assert columns["seeker_post"] == ["I failed.", "I moved."]
    assert columns["response_post"] == ["Try.", "Rest."]
    assert columns["sentence"] == ["This must have been really hard for you."] * 2


def test_a_sentence_that_a_later_edit_replaced_is_not_scored() -> None:
    edits = (Edit.insert(0, "A ghost."), Edit.replace(0, "Oh dear."), Edit.insert(2, "Rest."))

    class Twice:
        name = "twice"

        def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
            return [Rewrite(one, "Oh dear. Try. Rest.", edits) for one in exchanges]

    reward = Watched()
    best_of(Twice(), 1, reward).rewrite(EXCHANGES[:1], seed=0)
    assert reward.columns[0]["sentence"] == ["Oh dear. Rest."]


def test_the_reward_is_given_the_columns_of_the_data() -> None:
    watched = Watched()
    rows = [Exchange("I failed.", "Try.", extra={"topic": "exams"}), EXCHANGES[1]]
    best_of(Numbered("Oh."), 1, watched).best(rows, seed=0)
    (columns,) = watched.columns
    assert columns["topic"] == ["exams", None]
    assert columns["seeker_post"] == ["I failed.", "I moved."]


def test_none_at_all_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="at least, not 0"):
        best_of(GenericPolicy(), 0)
