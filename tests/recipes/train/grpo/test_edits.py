"""`train.py grpo --actions edits`, really run by TRL, from the supervised start to its folder."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from policies.chat.editor import ChatEditor
from policies.named import load_bare_policy
from recipes.cli import main
from recipes.shared import systems
from recipes.train.grpo.recipe import Config, run
from rewriting import Exchange, UserError
from rewriting.data import load_exchanges
from tests.recipes.train.grpo.toys import ROWS, unexplained, write_chat_model


@pytest.fixture
def config(tmp_path: Path, jsonl: Callable[..., Path]) -> Config:
    """A random model that is taught to answer KEEP, which is the shortest edit there is."""
    return Config(
        output=str(tmp_path / "run"),
        data=str(jsonl(ROWS)),
        model=write_chat_model(tmp_path / "model"),
        actions="edits",
        rewards="{edit_size: 1.0, repetition: 0}",
        unparsable_penalty=0.25,
        rank=8,
        alpha=16,
        steps=2,
        batch_size=2,
        num_samples=2,
        max_prompt_tokens=600,
        max_new_tokens=12,
        warm_steps=2,
        warm_data=str(jsonl([row | {"edits": []} for row in ROWS], "edited.jsonl")),
        warm_batch_size=2,
        save_every=1,
    )


def test_an_editor_is_trained_and_used_by_its_folder(
    config: Config, jsonl: Callable[..., Path], tmp_path: Path
) -> None:
    figures = run(config)
    assert [row["step"] for row in figures["log"]] == [1, 2]
    for row in figures["log"]:
        cost = 0.25 * row["rewards/unparsable/mean"]
        expected = row["rewards/edit_size/mean"] - cost
        assert row["reward"] == pytest.approx(expected, abs=1e-6)
        assert not unexplained(row)
    folder = Path(config.output) / "policy"
    assert json.loads((folder / "policy.json").read_text())["kind"] == "editor"
    assert "could not be read" in (folder / "README.md").read_text()
    assert isinstance(load_bare_policy(str(folder)), ChatEditor)
    exchanges = [Exchange(row["seeker_post"], row["response_post"]) for row in ROWS[:3]]
    systems.check_system(str(folder))
    rewrites = systems.rewrites_of(str(folder), exchanges, seed=1)
    assert [rewrite.exchange for rewrite in rewrites] == exchanges
    jsonl(ROWS[:3], "posts.jsonl")
    files = ["--input", f"{tmp_path}/posts.jsonl", "--output", f"{tmp_path}/out.jsonl"]
    with pytest.raises(SystemExit) as stop:
        main(["rewrite", *files, "--policy", str(folder)])
    assert stop.value.code == 0
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["seeker_post"] for line in lines] == [row["seeker_post"] for row in ROWS[:3]]


def test_a_stopped_run_goes_on_and_keeps_its_supervised_start(config: Config) -> None:
    run(config)
    results = Path(config.output, "warm_start", "results.json")
    before = results.stat().st_mtime_ns
    figures = run(replace(config, steps=3))
    assert [row["step"] for row in figures["log"]] == [1, 2, 3]
    assert results.stat().st_mtime_ns == before
    with pytest.raises(UserError, match="warm_steps was 2 and is now 5"):
        run(replace(config, warm_steps=5))


def test_the_supervised_start_teaches_the_grammar(config: Config) -> None:
    taught = replace(config, warm_steps=80, warm_learning_rate=0.03, num_samples=8, steps=1)
    figures = run(taught)
    (first,) = figures["log"]
    assert first["rewards/unparsable/mean"] < 0.9
    assert first["edits/kept"] == pytest.approx(1 - first["rewards/unparsable/mean"])
    assert figures["warm_start"]["last_loss"] < 0.5 * figures["warm_start"]["first_loss"]
    untaught = replace(taught, warm_steps=0, output=f"{config.output}2")
    assert run(untaught)["log"][0]["rewards/unparsable/mean"] == 1.0


def test_data_without_edits_cannot_teach_them(config: Config, jsonl: Callable[..., Path]) -> None:
    with pytest.raises(UserError, match="no row has `edits`"):
        run(replace(config, warm_data=config.data))
    edit = {"operation": "insert", "position": 9, "sentence": "Oh."}
    wrong = [row | {"edits": [edit]} for row in ROWS]
    with pytest.raises(UserError, match=r"cannot be applied to its reply \(insert at 9"):
        run(replace(config, warm_data=str(jsonl(wrong, "wrong.jsonl"))))
    long = [row | {"edits": [edit | {"position": 0}]} for row in ROWS]
    with pytest.raises(UserError, match="raise it"):
        run(replace(config, warm_data=str(jsonl(long, "long.jsonl"))))


@pytest.mark.integration
def test_a_real_chat_model_writes_edits_that_can_be_read(
    config: Config, jsonl: Callable[..., Path], tmp_path: Path
) -> None:
    """smollm2-135m: a few supervised steps on short replies, two of GRPO, then a file."""
    short = [
        row.row()
        for row in load_exchanges("sample:rewrites_train")
        if len(row.extra["edits"]) == 1 and len(row.seeker_post) + len(row.response_post) < 220
    ]
    figures = run(
        replace(
            config,
            model="smollm2-135m",
            data=str(jsonl(short[:60], "short.jsonl")),
            warm_data=str(jsonl(short, "edited.jsonl")),
            warm_steps=12,
            warm_learning_rate=2e-3,
            rank=16,
            alpha=32,
            max_prompt_tokens=300,
            max_new_tokens=40,
            save_every=2,
        )
    )
    assert [row["step"] for row in figures["log"]] == [1, 2]
    assert min(row["rewards/unparsable/mean"] for row in figures["log"]) < 0.8
    folder = Path(config.output) / "policy"
    files = ["--input", f"{tmp_path}/short.jsonl", "--output", f"{tmp_path}/out.jsonl"]
    with pytest.raises(SystemExit) as stop:
        main(["rewrite", *files, "--policy", str(folder), "--limit", "8"])
    assert stop.value.code == 0
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert len(lines) == 8
    assert any(line["edits"] for line in lines)
