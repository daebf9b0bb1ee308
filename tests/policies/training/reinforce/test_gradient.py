"""The gradient of one real step of `train` equals the exact gradient of the expected reward.

The toy's probabilities are multiples of 1/64, so a batch can hold every outcome as often as its
probability says. A step on that batch is then the mean of the estimator, with no sampling error;
and the exact gradient is autograd's of Σ π(a) · reward(a) over all actions.
"""

import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from torch import Tensor

from policies.editing.actions import Action, LogProbs
from policies.training.reinforce.rollouts import joint
from rewards.terms.kl import FixedController, KLPenalty
from rewriting.edits import apply_edit
from rewriting.exchange import Exchange
from rewriting.loop import EditState
from rewriting.sentences import split_sentences
from tests.policies.training.flat import train_reinforce as train
from tests.policies.training.toy_agent import ToyAgent, ToyReward, every_action

POSITION = [math.log(p) for p in (1 / 2, 1 / 4, 1 / 8, 1 / 8)]
FIRST, SECOND = [math.log(1 / 4), math.log(3 / 4)], [math.log(1 / 2)] * 2
EXCHANGE = Exchange("I failed.", "Study.")
STATE = EditState(EXCHANGE, ("Study.",))
BETA = 0.7
FACTORS = {"position", "first", "second"}


def value(before: str, after: str) -> float:
    """Some number that every outcome has another of."""
    return float(sum(ord(c) * (i % 7 + 1) for i, c in enumerate(after)) % 97) / 10


class Listed(ToyAgent):
    """Samples what it is told to, in order."""

    def __init__(self, actions: Sequence[Action], **tables: Sequence[float]) -> None:
        super().__init__(**tables)
        self.left = list(actions)

    def sample(
        self,
        states: Sequence[EditState],
        seeds: Sequence[int],
        position_seeds: Sequence[int] | None = None,
    ) -> tuple[list[Action], LogProbs]:
        actions, self.left = self.left[: len(states)], self.left[len(states) :]
        with torch.no_grad():
            return actions, self.log_probs(states, actions)


def outcomes(agent: ToyAgent, state: EditState = STATE) -> list[Action]:
    """Every action, as many times as its probability has sixty-fourths."""
    found = []
    for action in every_action(len(state.span)):
        (row,) = joint(agent.log_probs([state], [action]))
        share = row.sum().exp().item() * 64
        assert share == pytest.approx(round(share), abs=1e-4)
        found += [action] * round(share)
    assert len(found) == 64
    return found


def expected_reward(agent: ToyAgent, beta: float) -> Tensor:
    """J = Σ π(a) · (R(a) − β · (log π(a) − log π_ref(a))), differentiable."""
    total = torch.zeros(())
    for action in every_action(1):
        (row,) = joint(agent.log_probs([STATE], [action]))
        (reference,) = joint(agent.log_probs([STATE], [action], role="reference"))
        after = apply_edit(split_sentences("Study."), action.edit(1))
        kl = row.sum() - reference.sum()
        total = total + row.sum().exp() * (value("", str(after)) - beta * kl)
    return total


def step_of(agent: ToyAgent, folder: Path, monkeypatch: Any, **options: Any) -> dict[str, Tensor]:
    """What one step of gradient descent at rate 1 adds to each table: plus the gradient of J."""
    monkeypatch.setattr(torch.optim, "AdamW", PlainDescent)
    before = {name: p.detach().clone() for name, p in agent.module.named_parameters()}
    settings = {"max_grad_norm": 1e9, "learning_rate": 1.0, "micro_batch_size": 1000, **options}
    train(
        agent,
        ToyReward(value),
        settings.pop("exchanges", [EXCHANGE]),
        output=folder,
        accelerator=Accelerator(),
        steps=1,
        on_samples=None,
        **settings,
    )
    return {name: p.detach() - before[name] for name, p in agent.module.named_parameters()}


class PlainDescent(torch.optim.SGD):
    """No momentum, no scaling: a step is the gradient itself."""

    def __init__(self, groups: Any, lr: float, weight_decay: float) -> None:
        super().__init__(groups, lr=lr)


def assert_close(found: dict[str, Tensor], exact: dict[str, Tensor], factor: float = 1.0) -> None:
    assert found.keys() == exact.keys() == FACTORS
    for name, gradient in exact.items():
        assert gradient.abs().max() > 0.01, "a test that cannot fail"
        assert torch.allclose(found[name], factor * gradient, atol=2e-5), name


def exact_gradient(agent: ToyAgent, beta: float) -> dict[str, Tensor]:
    named = dict(agent.module.named_parameters())
    gradients = torch.autograd.grad(expected_reward(agent, beta), list(named.values()))
    return dict(zip(named, gradients, strict=True))


@pytest.mark.parametrize("beta", [0.0, BETA])
@pytest.mark.parametrize("estimator", ["leave_one_out", "ppo"])
def test_pairs_of_samples(
    estimator: str, beta: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = {"position": POSITION, "first": FIRST, "second": SECOND}
    pairs = [a for pair in product(outcomes(ToyAgent(**tables)), repeat=2) for a in pair]
    agent = Listed(pairs, **tables)
    exact = exact_gradient(agent, beta)
    kl = KLPenalty(FixedController(beta)) if beta else None
    found = step_of(
        agent,
        tmp_path,
        monkeypatch,
        estimator=estimator,
        kl=kl,
        batch_size=64 * 64,
        num_samples=2,
    )
    assert_close(found, exact)


@pytest.mark.parametrize("beta", [0.0, BETA])
@pytest.mark.parametrize("estimator", ["leave_one_out", "ppo"])
def test_samples_that_share_their_position(
    estimator: str, beta: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two positions of an exchange, two sentences at each: a credit for the place of its own."""
    by_place = [[a for a in every_action(1) if a.position == place] for place in range(4)]
    # Each position has 1/4, each of its four sentences 1/4; keep has one way to be said.
    groups = [
        pair for actions in by_place for pair in product(actions * (4 // len(actions)), repeat=2)
    ]
    assert len(groups) == 64
    listed = [a for one, other in product(groups, repeat=2) for a in (*one, *other)]
    agent = Listed(listed)
    exact = exact_gradient(agent, beta)
    found = step_of(
        agent,
        tmp_path,
        monkeypatch,
        estimator=estimator,
        kl=KLPenalty(FixedController(beta)) if beta else None,
        batch_size=64 * 64,
        num_samples=4,
        sentences_per_position=2,
    )
    assert_close(found, exact)


@pytest.mark.parametrize("estimator", ["moving_average", "ppo"])
def test_single_samples(estimator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = {"position": POSITION, "first": FIRST, "second": SECOND}
    agent = Listed(outcomes(ToyAgent(**tables)), **tables)
    exact = exact_gradient(agent, BETA)
    found = step_of(
        agent,
        tmp_path,
        monkeypatch,
        estimator=estimator,
        kl=KLPenalty(FixedController(BETA)),
        batch_size=64,
        num_samples=1,
        micro_batch_size=7,
    )
    # In its first step the baseline is the mean of the 63 others; in this batch, in which each
    # outcome is just as often as it should be, r − (64·mean − r)/63 = 64/63 · (r − mean).
    assert_close(found, exact, factor=64 / 63)


def test_both_spans_of_an_episode_earn_its_reward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two sentences in spans of one: the reward is of both actions together."""
    exchange = Exchange("I failed.", "Study. Sleep.")
    first = EditState(exchange, ("Study.",))
    plain = ToyAgent()  # each of the 12 written actions has 1/16, keep has 4/16
    chances = [a for a in every_action(1) for _ in range(4 if not a.tokens else 1)]
    both = list(product(chances, repeat=2))
    assert len(both) == 256
    # All first spans are edited in one round, all second spans in the next.
    agent = Listed([a for a, _ in both] + [b for _, b in both])
    total = torch.zeros(())
    for a, b in product(every_action(1), repeat=2):
        rows = joint(plain.log_probs([first, first], [a, b]))
        half = apply_edit(split_sentences("Study. Sleep."), a.edit(1))
        shift = 1 + (len(half) - 2)
        after = apply_edit(half, b.edit(1).shifted(shift))
        total = total + (rows[0].sum() + rows[1].sum()).exp() * value("", str(after))
    named = dict(plain.module.named_parameters())
    gradients = torch.autograd.grad(total, list(named.values()))
    found = step_of(
        agent,
        tmp_path,
        monkeypatch,
        exchanges=[exchange],
        estimator="moving_average",
        batch_size=256,
        num_samples=1,
        span_length=1,
    )
    assert_close(found, dict(zip(named, gradients, strict=True)), factor=256 / 255)


def test_the_entropy_bonus_evens_the_positions_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = {"position": POSITION, "first": FIRST, "second": SECOND}
    agent = Listed(outcomes(ToyAgent(**tables)), **tables)
    entropy = agent.log_probs([STATE], [Action(3)]).entropy_B.sum()
    (exact,) = torch.autograd.grad(entropy, [agent.module.position])
    found = step_of(
        agent,
        tmp_path,
        monkeypatch,
        exchanges=[Exchange("I failed.", "Study.")],
        estimator="moving_average",
        entropy_weight=0.5,
        batch_size=64,
        num_samples=1,
    )
    reward_part = step_of(
        Listed(outcomes(ToyAgent(**tables)), **tables),
        tmp_path / "without",
        monkeypatch,
        estimator="moving_average",
        batch_size=64,
        num_samples=1,
    )
    assert torch.allclose(found["position"] - reward_part["position"], 0.5 * exact, atol=2e-5)
    assert exact.argmax() in (2, 3)  # the rare positions gain most
