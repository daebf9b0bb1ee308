"""The choosing policy samples what it says it samples, and only what kind people have said."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from policies.choosing.agent import ChoosingAgent
from policies.choosing.heads import END, FRONT, MIDDLE, REPLACE, ChoosingHeads, place_of
from policies.editing.actions import LogProbs
from policies.named import load_bare_policy
from rewriting import Exchange, UserError
from rewriting.data.split import normalised
from rewriting.edits import keep_position, num_positions
from rewriting.loop import EditState
from tests.policies.choosing.tiny import STATES, tiny_agent, tiny_bank

MANY = STATES * 8
SEEDS = list(range(len(MANY)))


def flat(found: LogProbs) -> Tensor:
    return torch.cat([found.position_B, found.entropy_B, *found.tokens])


SHAPES: list[dict[str, float]] = [{}, {"temperature": 0.7}, {"top_p": 0.8}, {"least_welcome": 0.5}]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sampled_log_probs_are_the_teacher_forced_ones(
    tmp_path: Path, shape: dict[str, float]
) -> None:
    agent = tiny_agent(tmp_path, **shape)
    actions, sampled = agent.sample(MANY, SEEDS)
    scored = agent.log_probs(MANY, actions)
    kept = [keep_position(len(s.span)) == a.position for s, a in zip(MANY, actions, strict=True)]
    assert 0 < sum(kept) < len(MANY)
    for keep, action in zip(kept, actions, strict=True):
        assert len(action.tokens) == (0 if keep else 1)
        assert keep or normalised(action.sentence) == normalised(
            agent.bank.sentences[action.tokens[0]]
        )
    assert not flat(sampled).requires_grad
    assert flat(scored).requires_grad
    assert torch.allclose(flat(sampled), flat(scored), atol=1e-5)


def test_samples_follow_the_distribution(tmp_path: Path) -> None:
    agent, state = tiny_agent(tmp_path), STATES[0]
    count = 3000
    actions, _ = agent.sample([state] * count, range(count))
    logits_P, _ = agent.scores(state, agent.choices(state))
    for position, share in enumerate(logits_P.softmax(0).tolist()):
        found = sum(action.position == position for action in actions) / count
        assert found == pytest.approx(share, abs=0.03)


def test_a_row_depends_on_its_state_and_seed_alone(tmp_path: Path) -> None:
    agent = tiny_agent(tmp_path)
    together, _ = agent.sample(MANY, SEEDS)
    for row in (0, 5, 11):
        assert agent.sample([MANY[row]], [SEEDS[row]])[0] == [together[row]]
    again, _ = agent.sample([STATES[0]] * 40, range(40), position_seeds=[7] * 40)
    assert len({action.position for action in again}) == 1


def test_the_probabilities_of_a_state_add_up_to_one(tmp_path: Path) -> None:
    agent = tiny_agent(tmp_path)
    for state in STATES:
        near = agent.choices(state)
        logits_P, scores_KL = agent.scores(state, near)
        assert logits_P.shape == (num_positions(len(state.span)),)
        assert scores_KL.shape == (len(near), 4)


def test_nothing_is_said_twice(tmp_path: Path) -> None:
    agent = tiny_agent(tmp_path, choices=4)
    reply = "Well. That was so close."
    state = EditState(Exchange("My dog dies.", reply), ("Well.", "That was so close."), 0)
    said = [agent.bank.sentences[one.number] for one in agent.choices(state)]
    assert len(said) == 3
    assert "That was so close." not in said


def test_only_sentences_of_similar_posts_are_lent(tmp_path: Path) -> None:
    state = EditState(Exchange("My dog dies.", "Well."), ("Well.",))
    every = tiny_agent(tmp_path, choices=4, least_cosine=-1.0).choices(state)
    bar = every[1].cosine
    assert bar > every[2].cosine
    assert tiny_agent(tmp_path, choices=4, least_cosine=bar).choices(state) == every[:2]
    assert tiny_agent(tmp_path, choices=4, least_cosine=1.0).choices(state) == []


def test_only_welcome_sentences_are_lent_the_most_welcome_first(tmp_path: Path) -> None:
    state = EditState(Exchange("My dog dies.", "Well."), ("Well.",))
    every = tiny_agent(tmp_path, choices=4)
    with torch.no_grad():
        every.module.read.weight.normal_(0, 0.3, generator=torch.Generator().manual_seed(0))
    near = every.choices(state)
    welcome = every.welcome(state, [every.bank.sentences[one.number] for one in near])
    order = sorted(range(4), key=lambda place: -welcome[place])
    bar = welcome[order[1]]
    assert bar - welcome[order[2]] > 0.01
    choosy = tiny_agent(tmp_path, choices=4, least_welcome=bar, pool=4)
    choosy.module.load_state_dict(every.module.state_dict())
    assert choosy.choices(state) == [near[order[0]], near[order[1]]]
    fewer = tiny_agent(tmp_path, choices=1, least_welcome=bar, pool=4)
    fewer.module.load_state_dict(every.module.state_dict())
    assert fewer.choices(state) == [near[order[0]]]


def test_without_a_choice_the_reply_stays(tmp_path: Path) -> None:
    agent = tiny_agent(tmp_path, least_welcome=1.0)
    actions, sampled = agent.sample(MANY, SEEDS)
    assert all(
        action.position == keep_position(len(state.span))
        for state, action in zip(MANY, actions, strict=True)
    )
    assert sampled.position_B.tolist() == [0.0] * len(MANY)
    scored = agent.log_probs(MANY, actions)
    assert torch.equal(flat(scored), flat(sampled))
    flat(scored).sum().backward()
    for parameter in agent.module.parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all()


def test_a_rewrite_is_made_of_the_bank(tmp_path: Path) -> None:
    agent = tiny_agent(tmp_path, max_edits=3)
    exchanges = [Exchange("I failed.", "Study. Sleep."), Exchange("Alone.", "Go out.")]
    rows = agent.rewrites(exchanges, [1, 2, 3])
    assert len(rows) == 3
    assert rows[0] == agent.rewrite(exchanges, seed=1)
    said = [edit.sentence for row in rows for rewrite in row for edit in rewrite.edits]
    assert said
    assert {normalised(text) for text in said} <= set(map(normalised, agent.bank.sentences))


def test_the_reference_stays_what_the_policy_was(tmp_path: Path) -> None:
    agent = tiny_agent(tmp_path)
    agent.freeze_reference()
    actions, before = agent.sample(MANY, SEEDS)
    with torch.no_grad():
        for parameter in agent.module.parameters():
            parameter.add_(0.3)
    after = agent.log_probs(MANY, actions)
    reference = agent.log_probs(MANY, actions, role="reference")
    assert torch.allclose(flat(reference), flat(before), atol=1e-5)
    assert not torch.allclose(flat(after), flat(before), atol=1e-2)
    assert not flat(reference).requires_grad


def test_the_encoder_is_frozen_and_the_heads_learn(tmp_path: Path) -> None:
    agent = tiny_agent(tmp_path)
    assert not any(p.requires_grad for p in agent.encode.parameters())
    actions, _ = agent.sample(MANY, SEEDS)
    flat(agent.log_probs(MANY, actions)).sum().backward()
    named = agent.module.named_parameters()
    without = [name for name, p in named if p.requires_grad and p.grad is None]
    assert not without


def test_saved_and_loaded_it_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from policies.choosing import bank

    monkeypatch.setattr(bank.Bank, "load", classmethod(lambda cls: tiny_bank()))
    agent = tiny_agent(tmp_path, temperature=0.5)
    agent.save(tmp_path / "policy")
    loaded = load_bare_policy(str(tmp_path / "policy"))
    assert isinstance(loaded, ChoosingAgent)
    assert loaded.settings == agent.settings
    assert loaded.sample(MANY, SEEDS)[0] == agent.sample(MANY, SEEDS)[0]
    assert not any(p.requires_grad for p in loaded.module.parameters())
    (tmp_path / "policy" / "heads.safetensors").write_bytes(b"no")
    with pytest.raises(UserError, match=r"heads\.safetensors"):
        load_bare_policy(str(tmp_path / "policy"))


def test_kinds_of_places() -> None:
    assert [place_of(p, 2) for p in range(5)] == [FRONT, MIDDLE, END, REPLACE, REPLACE]
    assert place_of(0, 0) == FRONT


def test_fresh_heads_go_by_the_verdicts_alone() -> None:
    heads = ChoosingHeads(4, 3)
    with torch.no_grad():
        heads.read.weight.zero_()
        heads.read.bias.copy_(torch.tensor([0.0, 1.0, -2.0]))
    logits_P, scores_KL = heads(torch.randn(2, 4), torch.randn(5, 4), torch.rand(5), 0)
    sigmoid = torch.tensor([0.0, 1.0, 2.0]).sigmoid()  # makes sense, is true, hurts nobody
    expected = 3.0 * float(sigmoid.log().sum())
    assert scores_KL.flatten().tolist() == pytest.approx([expected] * 20, abs=1e-5)
    assert logits_P.tolist() == pytest.approx([expected] * 5 + [0.0], abs=1e-5)


def test_the_reading_of_the_encoder_is_not_trained() -> None:
    assert not any(p.requires_grad for p in ChoosingHeads(4, 3).read.parameters())
