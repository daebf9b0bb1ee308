"""`train.py identifier` and `evaluate.py identifier|probe`, for real, on a tiny encoder."""

import json
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from recipes.entry import run_evaluation, run_training
from recipes.evaluate import identifier as evaluate_identifier
from recipes.evaluate import probe as evaluate_probe
from recipes.train.identifier import recipe as identifier
from rewards.identifiers.named import load_identifier
from rewriting.exchange import MECHANISMS
from tests.tiny_lm import write_tiny_encoder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few steps over labelled lines, with a pre-training of two."""
    folder = tmp_path_factory.mktemp("identifier")
    encoder = write_tiny_encoder(folder)
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    tokenizer.mask_token = tokenizer.unk_token
    tokenizer.save_pretrained(encoder)
    data = folder / "labelled.jsonl"
    with data.open("w") as file:
        for i in range(60):
            level = i % 3
            reply = ("study harder", "take care", "i am so sorry")[level]
            row = {"seeker_post": f"i failed exam {i}", "response_post": f"{reply} {i}"}
            row |= dict.fromkeys(MECHANISMS, level)  # type: ignore[arg-type]
            row["rationales"] = {m: [reply] if level else [] for m in MECHANISMS}  # type: ignore[assignment]
            file.write(json.dumps(row) + "\n")
    run_training(
        f"identifier --data {data} --extra_data {data} --encoder {encoder} --rank 2 --epochs 1 "
        f"--batch_size 64 --adapt_data {data} --adapt_steps 2 --output {folder / 'run'}".split()
    )
    return folder


def test_a_run_leaves_a_model_with_its_card(trained: Path) -> None:
    model = trained / "run/model"
    card = (model / "README.md").read_text()
    assert "train.py identifier" in card
    results = json.loads((model / "results.json").read_text())["figures"]
    assert set(results["dev"]) == set(MECHANISMS)
    (assessment,) = load_identifier(str(model)).assess(["i failed"], ["i am so sorry"])
    assert set(assessment.judgements) == set(MECHANISMS)
    assert (trained / "run/loss.png").exists()
    assert (trained / "run/adaptation/log.jsonl").read_text().count("\n") == 2


def test_evaluate_identifier_writes_the_contract(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    arguments = ["identifier", "--model", str(trained / "run/model"), "--data", "sample:test"]
    run_evaluation([*arguments, "--limit", "12", "--json", str(out)])
    figures = json.loads(out.read_text())
    assert set(figures) == set(MECHANISMS)
    assert set(figures["explorations"]) == {"accuracy", "macro_f1", "token_f1", "iou_f1", "n"}
    assert figures["explorations"]["n"] == 12
    with pytest.raises(SystemExit) as stop:
        run_evaluation([*arguments, "--json", str(out)])
    assert stop.value.code == 1


def test_evaluate_probe_writes_the_contract(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "probe.json"
    rewards = ["--rewards", "{empathy_change: 1, edit_size: 1}", "--reward_rows", "9"]
    model = ["--model", str(trained / "run/model"), "--limit", "30", "--json", str(out)]
    run_evaluation(["probe", *model, *rewards])
    figures = json.loads(out.read_text())
    for mechanism in MECHANISMS:
        assert figures[mechanism].keys() == {"flagged_before", "flagged_after", "seeds", "n"}
    assert figures["mismatched"]
    assert figures["rewards"]["edit_size"]["share_rising"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody"], "no recipe 'nobody'"),
        (["identifier", "--data", "gone.csv"], "no such file"),
        (["identifier", "--config", "gone.yaml"], "gone.yaml"),
        (["identifier", "--model", "gone"], "is no identifier"),
        (["identifier", "--bogus", "1"], "no field --bogus"),
        (["identifier", "--split", "half"], "split is train, dev, test or all"),
        (["probe", "--contexts", "gone.csv"], "no such file"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        run_evaluation(arguments)
    assert stop.value.code == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error


@pytest.mark.parametrize("module", [identifier, evaluate_identifier, evaluate_probe])
def test_every_field_is_explained(module: object) -> None:
    from dataclasses import fields

    for field in fields(module.Config):  # type: ignore[attr-defined]
        assert field.metadata.get("help"), field.name
