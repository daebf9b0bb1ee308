"""`train.py grpo`, really run by TRL on a tiny chat model, and its rewriter used by name."""

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from policies.named import load_bare_policy
from recipes.entry import parse, run_training
from recipes.train.grpo import recipe as grpo
from recipes.train.grpo import trainer, warm_start
from recipes.train.grpo.recipe import Config, check, run
from recipes.train.grpo.trainer import ADAPTER_FILES, exchanges_at_once
from recipes.train.grpo.warm_start import examples_at_once
from rewriting import Exchange, UserError
from tests.recipes.train.grpo.toys import ROWS, unexplained, write_chat_model


@pytest.fixture
def config(tmp_path: Path, jsonl: Callable[..., Path]) -> Config:
    return Config(
        output=str(tmp_path / "run"),
        data=str(jsonl(ROWS)),
        model=write_chat_model(tmp_path / "model"),
        rewards="{edit_size: 0.5, repetition: 0}",
        rank=2,
        alpha=4,
        steps=2,
        batch_size=2,
        num_samples=2,
        max_new_tokens=6,
        save_every=1,
    )


@pytest.mark.parametrize("algorithm", ["grpo", "rloo"])
def test_a_rewriter_is_trained_and_used_by_its_folder(algorithm: str, config: Config) -> None:
    config.algorithm = algorithm
    figures = run(config)
    assert [row["step"] for row in figures["log"]] == [1, 2]
    for row in figures["log"]:
        assert row["reward"] == pytest.approx(0.5 * row["rewards/edit_size/mean"], abs=1e-6)
        assert "rewards/repetition/mean" in row
        assert not unexplained(row)
    folder = Path(config.output) / "policy"
    assert json.loads((folder / "policy.json").read_text())["kind"] == "rewriter"
    assert config.model in json.loads((folder / "adapter_config.json").read_text()).values()
    assert "Mean reward" in (folder / "README.md").read_text()
    made = {file.name for file in folder.iterdir()}
    assert made == {*ADAPTER_FILES, "policy.json", "results.json", "README.md"}
    assert not list(folder.parent.glob(".policy*"))
    policy = load_bare_policy(str(folder))
    exchanges = [Exchange(row["seeker_post"], row["response_post"]) for row in ROWS[:3]]
    rewrites = policy.rewrite(exchanges, seed=1)
    assert [rewrite.exchange for rewrite in rewrites] == exchanges
    assert policy.rewrite(exchanges[2:], seed=1) == rewrites[2:]


def test_a_stopped_run_goes_on_from_its_checkpoint(config: Config) -> None:
    run(config)
    config.steps = 3
    figures = run(config)
    assert [row["step"] for row in figures["log"]] == [1, 2, 3]


def test_a_finished_run_started_again_takes_no_step_more(config: Config) -> None:
    first = run(config)
    files = {file: file.read_bytes() for file in Path(config.output, "policy").iterdir()}
    assert run(config) == first
    assert {file: file.read_bytes() for file in Path(config.output, "policy").iterdir()} == files
    config.steps = 3  # beside a checkpoint of so many, a policy of fewer is not finished
    shutil.copytree(Path(config.output, "checkpoint-2"), Path(config.output, "checkpoint-3"))
    state = Path(config.output, "checkpoint-3", "trainer_state.json")
    state.write_text(state.read_text().replace('"global_step": 2', '"global_step": 3'))
    run(config)
    results = json.loads(Path(config.output, "policy", "results.json").read_text())
    assert results["settings"]["steps"] == 3


def test_a_run_goes_on_with_its_own_settings_alone(config: Config) -> None:
    run(config)
    config.steps, config.learning_rate, config.algorithm = 3, 0.5, "rloo"
    changed = "algorithm was 'grpo' and is now 'rloo'; learning_rate was 0.0001 and is now 0.5"
    with pytest.raises(UserError, match=changed):
        run(config)
    settings = Path(config.output, "settings.json")
    settings.unlink()  # as versions before it did
    with pytest.raises(UserError, match=changed):
        run(config)
    Path(config.output, "policy", "results.json").unlink()
    with pytest.raises(UserError, match="nothing says what they were trained for"):
        run(config)
    settings.write_text('{"half')
    with pytest.raises(UserError, match=r"settings\.json is not valid JSON"):
        run(config)


def test_rewards_are_given_the_columns_of_the_data(
    config: Config, jsonl: Callable[..., Path], tmp_path: Path
) -> None:
    levels = {"emotional_reactions": 2, "interpretations": 0, "explorations": 1}
    topics = ["loss", 3]  # TRL's tables would refuse a text beside a number
    rows = [row | levels | {"topic": topics[n % 2], "image": "x"} for n, row in enumerate(ROWS)]
    config.data = str(jsonl(rows))
    lines = ["def topical(completions, topic, image, rationales, explorations, **columns):"]
    lines.append("    assert set(topic) <= {'loss', 3} and set(explorations) == {1}, topic")
    lines.append("    assert set(image) == {'x'}")
    lines.append("    return [float(len(text)) for text in completions]")
    (tmp_path / "mine.py").write_text("\n".join(lines))
    config.rewards = f"{{{tmp_path / 'mine.py'}:topical: 1.0}}"
    assert [row["step"] for row in run(config)["log"]] == [1, 2]


@pytest.mark.integration
def test_an_encoder_decoder_gets_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_training(["grpo", "--model", "flan-t5-small"])
    error = capsys.readouterr().err
    assert "flan-t5-small is an encoder-decoder" in error
    assert "train.py emprl" in error


def test_any_field_of_trl_passes_through(config: Config, tmp_path: Path) -> None:
    config.trl = "{gradient_accumulation_steps: 2, scale_rewards: none, loss_type: dr_grpo}"
    config.rewards = "{edit_size: 1.0, repetition: {weight: 1, scale: std}}"
    figures = run(config)
    assert [row["step"] for row in figures["log"]] == [1, 2]
    saved = torch.load(tmp_path / "run/checkpoint-2/training_args.bin", weights_only=False)
    assert (saved.gradient_accumulation_steps, saved.scale_rewards) == (2, "none")
    assert (saved.loss_type, saved.reward_weights) == ("dr_grpo", [1.0, 1.0])
    assert all("rewards/repetition/unscaled" in row for row in figures["log"])
    assert not any(unexplained(row) for row in figures["log"])


@pytest.mark.parametrize("file", ["grpo.yaml", "grpo_edits.yaml"])
def test_a_config_file_says_only_what_the_recipe_and_trl_know(file: str) -> None:
    path = Path(__file__).parents[4] / "configs" / file
    config = check(parse(grpo, "train.py grpo", ["--config", str(path)]))
    assert config.output.startswith("runs/")
    assert f"--config configs/{file}" in path.read_text(encoding="utf-8")
    if file == "grpo_edits.yaml":
        assert config.trl["gradient_accumulation_steps"] == 4


def test_trl_says_what_it_does_not_take(config: Config) -> None:
    config.trl = "{generation_batch_size: 3}"
    with pytest.raises(UserError, match="generation_batch_size"):
        run(config)


def test_settings_that_cannot_work_are_named(config: Config) -> None:
    config.num_samples = 1
    with pytest.raises(UserError, match="num_samples must be 2 or more, not 1"):
        run(config)
    config.num_samples, config.algorithm = 2, "ppo"
    with pytest.raises(UserError, match=r"algorithm cannot be 'ppo'\. There is: grpo, rloo"):
        run(config)
    config.algorithm, config.steps = "grpo", 0
    with pytest.raises(UserError, match="steps must be 1 or more, not 0"):
        run(config)
    config.steps, config.warm_steps = 1, 3
    with pytest.raises(UserError, match="they need --actions edits"):
        run(config)
    config.warm_steps, config.actions = None, "words"
    with pytest.raises(UserError, match="There is: rewrites, edits"):
        run(config)
    config.actions, config.trl = "rewrites", "{loss_typ: dapo}"
    with pytest.raises(UserError, match="Did you mean loss_type"):
        run(config)
    config.trl, config.lora_layers = "{}", "nowhere"
    with pytest.raises(UserError, match="nowhere"):
        run(config)
    config.lora_layers, config.report_to = "all-linear", "paper"
    with pytest.raises(UserError, match="paper"):
        run(config)


def test_batch_size_counts_all_processes(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(config, batch_size=8, warm_batch_size=6, num_samples=4)
    accumulated = replace(config, trl="{gradient_accumulation_steps: 2}")
    assert (exchanges_at_once(config), exchanges_at_once(accumulated)) == (8, 4)
    for module in (trainer, warm_start):
        monkeypatch.setattr(module, "num_processes", lambda: 2)
    assert (exchanges_at_once(config), exchanges_at_once(accumulated)) == (4, 2)
    assert examples_at_once(config) == 3
    with pytest.raises(UserError, match="batch_size 7 cannot be shared by 2 processes"):
        exchanges_at_once(replace(config, batch_size=7))
    with pytest.raises(UserError, match="warm_batch_size 5 cannot be shared by 2 processes"):
        examples_at_once(replace(config, warm_batch_size=5))
    with pytest.raises(UserError, match="Make batch_size a multiple of 6"):
        exchanges_at_once(replace(config, trl="{gradient_accumulation_steps: 3}"))


@pytest.mark.parametrize("field", ["rank", "batch_size", "warm_batch_size", "save_every"])
def test_bounds_stand_beside_the_fields(field: str) -> None:
    with pytest.raises(UserError, match=f"^{field} must be 1 or more, not 0"):
        check(replace(Config(), **{field: 0}))
    with pytest.raises(UserError, match="learning_rate must be 0 or more, not inf"):
        check(Config(learning_rate=math.inf))
