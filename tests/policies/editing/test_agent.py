"""The edit policy samples what it says it samples, whatever the batch, and can be trained."""

import itertools
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from policies.editing.actions import Action
from policies.editing.agent import EditAgent
from policies.editing.prompt import instruction
from rewriting import Exchange
from rewriting.edits import num_positions
from rewriting.loop import EditState
from rewriting.runtime.training.weights import Weights
from tests.policies.editing.tiny_agents import (
    KINDS,
    MANY,
    SEEDS,
    STATES,
    change,
    flat,
    tiny_agent,
)

SHAPES = [{}, {"temperature": 0.7}, {"top_p": 0.8}, {"temperature": 1.3, "top_p": 0.9}]


def one_by_one(agent: EditAgent, state: EditState, action: Action) -> list[float]:
    """Each token's log-probability from a pass of its own, without cache, batch or padding."""
    prompt = agent.prompt(state)
    before = [*prompt.tokens, *agent.backbone.tokens(instruction(action.position, len(state.span)))]
    found = []
    with agent.backbone.role("policy") as model:
        for step, token in enumerate(action.tokens):
            with torch.no_grad():
                logits = model(torch.tensor([before])).logits[0, -1].double()
            if step == 0:
                logits[agent.writer.endings_V] = -torch.inf
            found.append(float(logits.log_softmax(-1)[token]))
            before.append(token)
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sampled_log_probs_are_the_teacher_forced_ones(kind: str, shape: dict[str, float]) -> None:
    agent = tiny_agent(kind, **shape)
    actions, sampled = agent.sample(MANY, SEEDS)
    scored = agent.log_probs(MANY, actions)
    kept = [
        num_positions(len(s.span)) - 1 == a.position for s, a in zip(MANY, actions, strict=True)
    ]
    assert 0 < sum(kept) < len(MANY)
    for keep, action, a, b in zip(kept, actions, sampled.tokens, scored.tokens, strict=True):
        assert len(a) == len(b) == len(action.tokens)
        assert (len(action.tokens) == 0) is keep
    assert not flat(sampled).requires_grad
    assert flat(scored).requires_grad
    assert flat(sampled).isfinite().all()
    assert torch.allclose(flat(sampled), flat(scored), atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_every_token_counts_the_first_and_the_ending_one(kind: str) -> None:
    agent = tiny_agent(kind)
    actions, _ = agent.sample(MANY, SEEDS)
    scored = agent.log_probs(MANY, actions)
    ended = 0
    for state, action, tokens in zip(MANY, actions, scored.tokens, strict=True):
        if not action.tokens:
            continue
        assert tokens.tolist() == pytest.approx(one_by_one(agent, state, action), abs=1e-4)
        ends = agent.writer.endings_V[list(action.tokens)].tolist()
        assert not any(ends[:-1])  # the first token never ends a sentence
        assert ends[-1] or len(ends) == agent.settings.max_new_tokens
        ended += any(ends)
    assert ended > 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_does_not_depend_on_its_batch(kind: str) -> None:
    agent = tiny_agent(kind)
    actions, together = agent.sample(MANY, SEEDS)
    agent.batch_size = 3
    assert agent.sample(MANY[::-1], SEEDS[::-1])[0] == actions[::-1]
    alone = [agent.sample([state], [seed]) for state, seed in zip(MANY, SEEDS, strict=True)]
    assert [action for (action,), _ in alone] == actions
    tokens = torch.cat([found.tokens[0] for _, found in alone])
    assert torch.allclose(tokens, torch.cat(together.tokens), atol=1e-4)
    assert agent.sample(MANY, [seed + 100 for seed in SEEDS])[0] != actions


def unlikely_shares(shares: Tensor, probabilities: Tensor, drawn: int) -> int:
    """How many shares are over four standard deviations, and one draw, off their probability."""
    spread = (probabilities * (1 - probabilities) / drawn).sqrt()
    return int(((shares - probabilities).abs() > 4 * spread + 1 / drawn).sum())


def test_frequencies_are_the_probabilities() -> None:
    agent = tiny_agent(max_new_tokens=1)
    state = STATES[1]
    drawn = 3000
    agent.batch_size = drawn
    actions, _ = agent.sample([state] * drawn, list(range(drawn)))
    letters = [token for token, end in enumerate(agent.writer.endings_V.tolist()) if not end]
    possible = [Action(p, (t,)) for p, t in itertools.product(range(3), letters)] + [Action(3)]
    with torch.no_grad():
        found = agent.log_probs([state] * len(possible), possible)
    writing = torch.cat([*found.tokens[:-1], torch.zeros(1)])
    joint = (found.position_B + writing).exp()
    assert float(joint.sum()) == pytest.approx(1, abs=1e-4)
    places = {(action.position, action.tokens): n for n, action in enumerate(possible)}
    counts = torch.zeros(len(possible))
    for action in actions:
        counts[places[action.position, action.tokens]] += 1
    shares = counts / drawn
    assert unlikely_shares(shares, joint, drawn) == 0
    # Sums of many rare outcomes: by position (the last is to keep), then by token.
    by_place, by_token = (
        [share[:-1].view(3, -1).sum(d) for share in (shares, joint)] for d in (1, 0)
    )
    kept = [share[-1:] for share in (shares, joint)]
    assert unlikely_shares(*map(torch.cat, zip(by_place, kept, strict=True)), drawn) == 0
    assert unlikely_shares(*by_token, drawn) == 0
    # Another distribution would not have passed: that of the next token, or of the next position.
    for other in (joint.roll(1), joint.roll(len(letters))):
        assert unlikely_shares(shares, other, drawn) > 10
    position = found.position_B[[0, len(letters), 2 * len(letters), 3 * len(letters)]]
    expected = -(position.exp() * position).sum()
    assert float(found.entropy_B[0]) == pytest.approx(float(expected), abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rank", [2, 0])
def test_gradients_reach_what_is_trained_and_nothing_else(kind: str, rank: int) -> None:
    agent = tiny_agent(kind, rank=rank)
    agent.freeze_reference()
    actions, _ = agent.sample(MANY, SEEDS)
    # Equal prompts are read once: the gradient is that of the rows on their own all the same.
    flat(agent.log_probs(MANY, actions)).sum().backward()
    trained = Weights(agent.module)
    assert any(name.startswith("position_head.") for name in trained.named)
    together = {name: p.grad.clone() for name, p in trained.named.items() if p.grad is not None}
    assert set(together) == set(trained.named)
    if rank:
        adapters = [name for name in trained.named if ".policy." in name]
        assert len(adapters) + len(list(agent.module["position_head"].parameters())) == len(
            trained.named
        )
    for parameter in agent.module.parameters():
        parameter.grad = None
    for state, action in zip(MANY, actions, strict=True):
        flat(agent.log_probs([state], [action])).sum().backward()
    for name, parameter in trained.named.items():
        assert parameter.grad is not None
        scale = together[name].abs().max() + 1
        assert torch.allclose(parameter.grad / scale, together[name] / scale, atol=1e-4), name


@pytest.mark.parametrize("rank", [2, 0])
def test_the_reference_stays_what_the_policy_was(rank: int) -> None:
    agent = tiny_agent(rank=rank)
    actions, _ = agent.sample(MANY, SEEDS)
    with pytest.raises(ValueError, match="freeze_reference"):
        agent.log_probs(MANY, actions, role="reference")
    agent.freeze_reference()
    before = agent.log_probs(MANY, actions)
    reference = agent.log_probs(MANY, actions, role="reference")
    assert torch.equal(flat(reference), flat(before))
    assert not flat(reference).requires_grad
    change(agent, seed=2)
    assert (flat(agent.log_probs(MANY, actions)) - flat(before)).abs().max() > 0.01
    assert torch.equal(flat(agent.log_probs(MANY, actions, role="reference")), flat(before))
    agent.freeze_reference()
    assert torch.equal(
        flat(agent.log_probs(MANY, actions, role="reference")), flat(agent.log_probs(MANY, actions))
    )


def test_there_is_dropout_only_where_it_is_asked_for() -> None:
    agent = tiny_agent(dropout=0.5)
    agent.module.train()
    actions, sampled = agent.sample(MANY, SEEDS)
    assert torch.allclose(flat(agent.log_probs(MANY, actions)), flat(sampled), atol=1e-4)
    assert agent.module.training
    noisy = flat(agent.log_probs(MANY, actions, dropout=True))
    assert (noisy - flat(sampled)).abs().max() > 0.01
    agent.module.eval()
    quiet = flat(agent.log_probs(MANY, actions, dropout=True))
    assert torch.allclose(quiet, flat(sampled), atol=1e-4)


def test_a_capped_head_gives_the_same_numbers_the_longer_way() -> None:
    agent = tiny_agent()
    actions, sampled = agent.sample(MANY, SEEDS)
    agent.backbone.plain_head = False
    assert torch.allclose(flat(agent.log_probs(MANY, actions)), flat(sampled), atol=1e-4)
    assert agent.sample(MANY, SEEDS)[0] == actions


def test_an_action_says_its_sentence_up_to_the_first_end() -> None:
    agent = tiny_agent(max_new_tokens=20)
    tokens = agent.backbone.tokens

    def said(sentence: str) -> tuple[Sequence[int], str]:
        action = agent.action(0, sentence)
        return list(action.tokens), action.sentence

    assert said("So sad.") == (tokens(" So sad."), "So sad.")
    assert said("Oh! So sad.") == (tokens(" Oh!"), "Oh!")
    assert said("So sad") == ([*tokens(" So sad"), 0], "So sad")
    assert said("x" * 30)[0] == tokens(" " + "x" * 19)
    assert said("  ") == ([], "")
    assert agent.action(5) == Action(5)
    found = agent.log_probs(STATES[:1], [agent.action(0, "So sad.")])
    assert len(found.tokens[0]) == 8


def test_it_rewrites_responses_of_any_length() -> None:
    agent = tiny_agent(span_length=2, max_edits=2)
    exchanges = [
        Exchange("Help me.", "One. Two. Three. Four. Five."),
        Exchange("Sad", "- a\n- b"),
        Exchange("Sad", "  "),
    ]
    rewrites = agent.rewrite(exchanges, seed=3)
    assert [rewrite.exchange for rewrite in rewrites] == exchanges
    assert rewrites == agent.rewrite(exchanges, seed=3)
    assert rewrites[1:] == agent.rewrite(exchanges[1:], seed=3)
    assert rewrites != agent.rewrite(exchanges, seed=4)
    assert any(rewrite.changed for rewrite in rewrites)


def test_several_seeds_at_once_give_what_each_gives_alone() -> None:
    agent = tiny_agent(max_edits=2)
    exchanges = [Exchange("I failed.", "Study. Rest."), Exchange("She left.", "Go on.")]
    together = agent.rewrites(exchanges, [3, 4, 3])
    assert together == [agent.rewrite(exchanges, seed=seed) for seed in (3, 4, 3)]
    assert together[0] != together[1]


def test_nothing_in_nothing_out() -> None:
    agent = tiny_agent()
    actions, found = agent.sample([], [])
    assert (actions, len(found.position_B), found.tokens) == ([], 0, [])
    with pytest.raises(ValueError, match="1 states for 2 seeds"):
        agent.sample(STATES[:1], [1, 2])
