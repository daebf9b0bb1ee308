"""A saved edit policy is the same policy, and what is none is refused."""

import json
from pathlib import Path

import pytest
import torch

from policies.editing.agent import EditAgent
from policies.editing.settings import EditSettings
from policies.named import load_bare_policy
from rewriting import Exchange, UserError
from rewriting.runtime.training.weights import Weights
from tests.policies.editing.tiny_agents import KINDS, MANY, SEEDS, flat, tiny_agent, tiny_backbone
from tests.tiny_lm import write_tiny_llama


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_policy_is_the_same_policy(kind: str, tmp_path: Path) -> None:
    agent = tiny_agent(kind, temperature=0.9)
    agent.save(tmp_path / "mine")
    actions, sampled = agent.sample(MANY, SEEDS)
    backbone = tiny_backbone(kind)
    other = EditAgent(backbone, EditSettings(rank=1))  # two policies may share a backbone
    loaded = EditAgent.load(tmp_path / "mine", backbone)
    assert (loaded.settings, loaded.name) == (agent.settings, "mine")
    assert loaded.sample(MANY, SEEDS)[0] == actions
    assert all(".policy." in name for name in Weights(backbone.model).named)
    assert not Weights(loaded.module["position_head"]).named
    assert other.sample(MANY, SEEDS)[0] != actions
    again = EditAgent.load(tmp_path / "mine", tiny_backbone(kind), trainable=True, temperature=1.0)
    assert Weights(again.module).named.keys() == Weights(agent.module).named.keys()
    assert again.settings.temperature == 1.0
    assert (flat(again.log_probs(MANY, actions)) - flat(sampled)).abs().max() > 0.01


def test_half_precision_halves_the_files(tmp_path: Path) -> None:
    agent = tiny_agent(rank=8, head_width=32)
    agent.save(tmp_path / "half", dtype=torch.float16)
    agent.save(tmp_path / "whole")
    for name in ("adapter_model.safetensors", "position_head.safetensors"):
        assert (tmp_path / "half" / name).stat().st_size < (
            tmp_path / "whole" / name
        ).stat().st_size
    loaded = EditAgent.load(tmp_path / "half", tiny_backbone())
    actions, sampled = agent.sample(MANY, SEEDS)
    assert torch.allclose(flat(loaded.log_probs(MANY, actions)), flat(sampled), atol=0.05)


def test_a_whole_model_is_saved_whole(tmp_path: Path) -> None:
    agent = tiny_agent(rank=0)
    agent.save(tmp_path / "full")
    loaded = EditAgent.load(tmp_path / "full")
    actions, sampled = agent.sample(MANY, SEEDS)
    assert torch.allclose(flat(loaded.log_probs(MANY, actions)), flat(sampled), atol=1e-4)
    assert loaded.backbone.name == "tiny"
    assert not Weights(loaded.module).named
    other = tiny_backbone()
    other.add("other", rank=2)
    with pytest.raises(ValueError, match="without other roles"):
        EditAgent(other, EditSettings(rank=0))


def test_a_policy_by_its_folder(tmp_path: Path) -> None:
    model = write_tiny_llama(tmp_path / "tiny")
    agent = tiny_agent(max_new_tokens=8)
    agent.backbone.name = str(model)
    agent.save(tmp_path / "mine")
    policy = load_bare_policy(str(tmp_path / "mine"))
    assert policy.name == "mine"
    exchanges = [Exchange("Help me.", "One. Two.")]
    assert policy.rewrite(exchanges, seed=1) == agent.rewrite(exchanges, seed=1)


def test_folders_that_are_no_policy_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no policy.*policy\.json.*train\.py partner"):
        load_bare_policy(str(tmp_path))
    agent = tiny_agent()
    agent.save(tmp_path / "mine")
    with pytest.raises(UserError, match="does not fit this model"):
        EditAgent.load(tmp_path / "mine", tiny_backbone("gpt2"), lora_layers=("c_attn",))
    (tmp_path / "mine" / "position_head.safetensors").unlink()
    with pytest.raises(UserError, match=r"position_head\.safetensors is missing or damaged"):
        EditAgent.load(tmp_path / "mine", tiny_backbone())
    path = tmp_path / "mine" / "policy.json"
    path.write_text(json.dumps({"kind": "edit_policy", "backbone": "tiny", "wings": 2}))
    with pytest.raises(UserError, match=r"policy\.json does not describe.*wings"):
        EditAgent.load(tmp_path / "mine", tiny_backbone())
    path.write_text("[]")
    with pytest.raises(UserError, match="does not describe"):
        EditAgent.load(tmp_path / "mine", tiny_backbone())


def test_a_model_that_reads_too_little_is_refused() -> None:
    with pytest.raises(UserError, match=r"prompt of 29 tokens is too short.*reads 256"):
        tiny_agent(max_new_tokens=200)


@pytest.mark.parametrize(
    "settings",
    [{"temperature": 0}, {"top_p": 0}, {"top_p": 1.1}, {"max_new_tokens": 0}, {"rank": -1}],
)
def test_wrong_settings_are_refused(settings: dict[str, float]) -> None:
    (name,) = settings
    with pytest.raises(UserError, match=f"{name} must be"):
        EditSettings(**settings)  # type: ignore[arg-type]


def test_a_flipped_bit_in_the_weights_is_never_loaded(tmp_path: Path) -> None:
    tiny_agent().save(tmp_path)
    path = tmp_path / "adapter_model.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1  # a weight: the file stays a valid one
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"adapter_model\.safetensors is missing or damaged"):
        EditAgent.load(tmp_path, tiny_backbone())
