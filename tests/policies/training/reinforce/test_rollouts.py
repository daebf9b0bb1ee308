"""Episodes hold what was done, in the right order, whoever shares the batch."""

import math

import pytest
import torch

from policies.editing.actions import Action, LogProbs
from policies.training.reinforce.rollouts import joint, padded, reward_columns, sample_episodes
from rewriting.data.columns import column_names
from rewriting.edits import apply_edits
from rewriting.exchange import Exchange, Label
from tests.policies.training.toy_agent import ToyAgent

EXCHANGES = [
    Exchange("I failed.", "Study harder. It helps. Trust me.", id="a", extra={"topic": "school"}),
    Exchange("She left.", "Call her.", id="b", labels={"explorations": Label(1)}),
    Exchange("I failed.", "", id="c"),
]


def sampled(exchanges: list[Exchange], **options: int) -> list:
    settings = {"num_samples": 3, "seed": 5, "step": 2, "span_length": 2, **options}
    return sample_episodes(ToyAgent(), exchanges, **settings)


def test_an_episode_has_a_turn_per_span_and_its_own_rewrite() -> None:
    episodes = sampled(EXCHANGES)
    assert [episode.exchange for episode in episodes] == [e for e in EXCHANGES for _ in range(3)]
    assert [len(episode.turns) for episode in episodes] == [2] * 3 + [1] * 3 + [1] * 3
    for episode in episodes:
        assert [turn.state.turn for turn in episode.turns] == list(range(len(episode.turns)))
        assert all(turn.state.exchange is episode.exchange for turn in episode.turns)
        original = episode.exchange.response_post
        assert apply_edits(original, episode.rewrite.edits) == episode.rewrite.rewritten_response
        assert [e.sentence for e in episode.rewrite.edits] == list(episode.sentences)
    assert len({episode.rewrite.rewritten_response for episode in episodes[:3]}) > 1


def test_the_log_probabilities_are_those_of_the_actions() -> None:
    agent = ToyAgent(position=(0.5, -0.5, 0.2, 0.0), first=(1.0, 0.0))
    for episode in sample_episodes(agent, EXCHANGES, num_samples=4, seed=0):
        for turn in episode.turns:
            (again,) = joint(agent.log_probs([turn.state], [turn.action]))
            assert torch.equal(turn.log_prob_T, again.detach())
            assert len(turn.log_prob_T) == (3 if turn.action.tokens else 1)
            assert turn.entropy > 0


def test_rows_do_not_depend_on_how_many_processes_share_the_batch() -> None:
    whole = sampled(EXCHANGES)
    parts = [sampled(EXCHANGES[:1]), sampled(EXCHANGES[1:], first_row=1)]
    actions = [[turn.action for turn in episode.turns] for episode in whole]
    assert actions == [[turn.action for turn in e.turns] for part in parts for e in part]
    other_step = [[turn.action for turn in e.turns] for e in sampled(EXCHANGES, step=3)]
    assert actions != other_step


def test_an_exchange_drawn_twice_is_sampled_anew() -> None:
    episodes = sampled([EXCHANGES[0]] * 8, num_samples=1)
    assert len({episode.rewrite.rewritten_response for episode in episodes}) > 1


def test_more_edits_of_a_span_are_more_turns() -> None:
    episodes = sampled(EXCHANGES[1:2], num_samples=20, max_edits=3)
    lengths = {len(episode.turns) for episode in episodes}
    assert max(lengths) == 3
    for episode in episodes:
        kept = [not turn.action.tokens for turn in episode.turns]
        assert not any(kept[:-1])


class Scripted(ToyAgent):
    """Does what it is told, in the order of the turns."""

    def __init__(self, *actions: Action) -> None:
        super().__init__()
        self.actions = actions

    def sample(self, states, seeds, position_seeds=None):  # type: ignore[no-untyped-def]
        actions = [self.actions[state.turn] for state in states]
        return actions, self.log_probs(states, [Action(a.position) for a in actions])


def test_a_sentence_that_was_replaced_is_not_paid_for() -> None:
    """With "Call her." of one sentence: insert, replace what was inserted, replace the other."""
    agent = Scripted(
        Action(0, (1,), "A ghost."), Action(3, (1, 1), "Oh dear."), Action(4, (1, 1, 1), "Wait.")
    )
    (episode,) = sample_episodes(agent, EXCHANGES[1:2], num_samples=1, seed=0, max_edits=3)
    columns = reward_columns([episode], [])
    assert columns["completions"] == ["Oh dear. Wait."]
    assert columns["sentence"] == ["Oh dear. Wait."]
    assert [len(turn.action.tokens) for turn in episode.standing_turns] == [2, 3]
    assert len(episode.turns) == 3


def test_the_position_is_the_first_token() -> None:
    log_probs = LogProbs(
        torch.tensor([-1.0, -2.0]), [torch.tensor([-3.0, -4.0]), torch.zeros(0)], torch.zeros(2)
    )
    rows = joint(log_probs)
    assert [row.tolist() for row in rows] == [[-1, -3, -4], [-2]]
    padded_BT, mask_BT = padded(rows)
    assert padded_BT.tolist() == [[-1, -3, -4], [-2, 0, 0]]
    assert mask_BT.tolist() == [[True, True, True], [True, False, False]]


def test_rewards_get_every_column_and_the_new_sentences() -> None:
    class Listed(ToyAgent):
        def sample(self, states, seeds, position_seeds=None):  # type: ignore[no-untyped-def]
            places = {"Study harder.": Action(0, (1, 1), "Oh dear."), "Trust me.": Action(3)}
            actions = [
                places.get(state.span[0] if state.span else "", Action(0)) for state in states
            ]
            return actions, self.log_probs(states, [Action(a.position) for a in actions])

    episodes = sample_episodes(Listed(), EXCHANGES[:2], num_samples=1, seed=0, span_length=2)
    names = column_names(EXCHANGES)
    assert "topic" in names
    assert "explorations" in names
    columns = reward_columns(episodes, names)
    assert columns["completions"] == [
        "Oh dear. Study harder. It helps. Trust me.",
        "Call her.",
    ]
    assert columns["sentence"] == ["Oh dear.", None]
    assert columns["seeker_post"] == ["I failed.", "She left."]
    assert columns["topic"] == ["school", None]
    assert columns["explorations"] == [None, 1]


def test_a_blank_sentence_is_a_keep() -> None:
    class Blank(ToyAgent):
        def sample(self, states, seeds, position_seeds=None):  # type: ignore[no-untyped-def]
            actions = [Action(0, (0, 0), "") for _ in states]
            return actions, self.log_probs(states, actions)

    (episode,) = sample_episodes(Blank(), EXCHANGES[1:2], num_samples=1, seed=0)
    assert episode.sentences == ()
    assert episode.rewrite.rewritten_response == "Call her."
    assert episode.turns[0].log_prob_T.sum().item() == pytest.approx(math.log(1 / 16))


def test_samples_that_share_a_position_differ_in_what_they_say_there() -> None:
    episodes = sample_episodes(
        ToyAgent(), EXCHANGES[1:2], num_samples=40, seed=0, sentences_per_position=4
    )
    firsts = [episode.turns[0].action for episode in episodes]
    groups = [firsts[start : start + 4] for start in range(0, 40, 4)]
    assert all(len({action.position for action in group}) == 1 for group in groups)
    assert len({group[0].position for group in groups}) > 1
    assert any(len({action.sentence for action in group}) > 1 for group in groups)
