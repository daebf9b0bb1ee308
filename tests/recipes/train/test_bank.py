"""`train.py bank`: the real recipe, for a few steps, on a tiny encoder and a tiny bank."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from policies.choosing import bank
from policies.choosing.agent import ChoosingAgent
from policies.named import lends, load_bare_policy
from recipes.train.bank import Config, run, start_agent
from rewards.reading.sense_model import SenseModel
from rewriting import Exchange, UserError
from rewriting.data import Split
from tests.policies.choosing.tiny import tiny_bank
from tests.rewards.reading.tiny import in_half_precision, write_tiny_mpnet


@pytest.fixture
def sense(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A tiny sense model whose encoder is read with; little data; a tiny bank."""
    from recipes.shared import sources
    from recipes.train import bank as recipe

    encoder = write_tiny_mpnet(tmp_path / "encoder")
    model = in_half_precision(SenseModel(str(encoder), rank=2, max_tokens=64, layers=2))
    model.save(tmp_path / "sense", bars=[[0.5] * 3, [0.5] * 3])
    monkeypatch.setattr(bank.Bank, "load", classmethod(lambda cls: tiny_bank()))
    whole = sources.load_splits

    def few(data: str, **options: Any) -> dict[Split, list[Exchange]]:
        return {name: rows[:6] for name, rows in whole(data, **options).items()}

    monkeypatch.setattr(sources, "load_splits", few)
    lessons = recipe.lessons_of
    monkeypatch.setattr(recipe, "lessons_of", lambda *a: lessons(*a)[:8])
    return str(tmp_path / "sense")


def config(output: Path, sense: str, **changes: Any) -> Config:
    settings: dict[str, Any] = {
        "encoder_from": sense,
        "keep_crisis": True,  # the gate takes its time
        "rewards": "{edit_size: 1}",
        "choices": 3,
        "width": 4,
        "warm_steps": 2,
        "warm_batch_size": 4,
        "steps": 2,
        "batch_size": 2,
        "num_samples": 2,
        "dev_rows": 2,
        "eval_every": 1,
        "save_every": 1,
        "show_every": 1,
        **changes,
    }
    return Config(output=str(output), **settings)


def test_two_stages_give_a_policy_that_lends(tmp_path: Path, sense: str) -> None:
    figures = run(config(tmp_path / "run", sense))
    assert figures["step"] in (1, 2)
    assert set(figures["rows"]) == {"train", "dev", "test"}
    log = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in log] == [0, 1, 2]
    assert {"reward", "kl_k1", "share_keep", "rewards/edit_size"} <= set(log[1])
    folder = tmp_path / "run" / "policy"
    assert lends(str(folder))
    assert "train.py bank" in (folder / "README.md").read_text(encoding="utf-8")
    policy = load_bare_policy(str(folder))
    assert isinstance(policy, ChoosingAgent)
    assert policy.settings.temperature == 0.5
    (rewrite,) = policy.rewrite([Exchange("I failed.", "Study.")], seed=0)
    assert {edit.sentence for edit in rewrite.edits} <= set(policy.bank.sentences)


def test_it_goes_on_from_a_policy(tmp_path: Path, sense: str) -> None:
    run(config(tmp_path / "first", sense, steps=0))
    start = str(tmp_path / "first" / "policy")
    run(config(tmp_path / "second", sense, from_policy=start, warm_steps=0, steps=1))
    assert (tmp_path / "second" / "policy" / "policy.json").is_file()
    assert not (tmp_path / "second" / "warm_start").exists()


def test_a_new_policy_reads_as_the_sense_model_does(tmp_path: Path, sense: str) -> None:
    agent = start_agent(config(tmp_path, sense))
    model = SenseModel.load(sense)
    post, texts = "I failed.", ["Oh no.", "Why?"]
    assert torch.allclose(agent.encode([(post, texts)]), model.encode([(post, texts)]), atol=1e-5)


def test_a_new_policy_needs_a_warm_start(tmp_path: Path, sense: str) -> None:
    with pytest.raises(UserError, match="needs a warm start"):
        run(config(tmp_path / "run", sense, warm_steps=0))
