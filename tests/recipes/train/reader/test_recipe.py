"""`train.py reader`, really run: two steps on a tiny encoder and a handful of exchanges."""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from recipes.entry import run_training
from recipes.train.reader.material import labelled_splits, smallest
from recipes.train.reader.recipe import Config, run
from rewards.identifiers.grounded.identifier import GroundedIdentifier
from rewards.identifiers.named import load_identifier
from rewards.reading.blocks import KIND_LEVELS, Answer, Material
from rewards.terms.contrast import Contrast
from rewriting.data import split_of
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange
from tests.rewards.reading.tiny import write_tiny_bert

KINDS = [*KIND_LEVELS, "wrong_feeling", "wrong_detail"]
SAID = (
    ("I am sorry for the", "I am so very sorry for the"),
    ("I see the", "I so see what it does, the"),
    ("Why the", "Did it so hurt, the"),
)


def labelled() -> list[dict[str, Any]]:
    """Posts with all levels of all mechanisms in the train part and in the dev part."""
    rows = []
    for number in range(40):
        thing = f"thing {number}"
        level = number % 3
        texts = [f"{pair[max(0, level - 1)]} {thing}." for pair in SAID]
        row: dict[str, Any] = {"seeker_post": f"I lost my {thing}.", "response_post": ""}
        row["response_post"] = " ".join(texts if level else [f"Go and buy a {thing}."])
        row |= dict.fromkeys(MECHANISMS, level)
        row["rationales"] = {
            m: [text] if level else [] for m, text in zip(MECHANISMS, texts, strict=True)
        }
        rows.append(row)
    return rows


def counterfactual(number: int) -> dict[str, Any]:
    sentences = [{"kind": kind, "text": f"A {kind} of {number} here."} for kind in KINDS]
    return {
        "seeker_post": f"My case is {number}.",
        "response_post": "Hm.",
        "sentences": sentences,
    }


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an encoder and with data."""
    folder = tmp_path_factory.mktemp("reader")
    write_tiny_bert(folder / "encoder")
    calm = [
        {"seeker_post": f"Is bus {n} late?", "response_post": f"Bus {n} is on time."}
        for n in range(200)
    ]
    files = {
        "labelled": labelled(),
        "calm": calm,
        "ours_train/rows": [counterfactual(n) for n in range(6)],
        "ours_dev/rows": [counterfactual(n) for n in range(10, 14)],
    }
    for name, rows in files.items():
        path = folder / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def config(given: Path, output: Path, **changes: Any) -> Config:
    settings: dict[str, Any] = {
        "output": str(output),
        "data": str(given / "labelled.jsonl"),
        "counterfactuals": str(given / "ours"),
        "calm": str(given / "calm.jsonl"),
        "encoder": str(given / "encoder"),
        "second": str(given / "encoder"),
        "rank": 2,
        "max_tokens": 48,
        "steps": 2,
        "block_size": 4,
        "bank_size": 3,
        "eval_every": 1,
        "save_every": 1,
    }
    return Config(**(settings | changes))


@pytest.fixture(scope="module")
def trained(given: Path) -> Path:
    settings = vars(config(given, given / "run"))
    run_training(["reader", *(w for k, v in settings.items() for w in (f"--{k}", str(v)))])
    return given / "run"


def test_a_run_leaves_a_reader_with_its_rules_and_its_card(trained: Path) -> None:
    folder = trained / "model"
    figures = json.loads((folder / "results.json").read_text())["figures"]
    assert figures["step"] in (1, 2)
    assert set(figures["kinds"]) == set(KINDS)
    assert set(figures["dev"]) == set(MECHANISMS)
    log = [json.loads(line) for line in (trained / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in log] == [1, 2]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "python train.py reader --data" in card
    assert f"| echo | {figures['kinds']['echo']['contrast']:.2f} |" in card
    assert f"{figures['dev']['explorations']['macro_f1']:.1f}" in card


def test_the_reader_works_as_identifier_and_as_reward(trained: Path) -> None:
    identifier = load_identifier(str(trained / "model"))
    assert isinstance(identifier, GroundedIdentifier)
    assert len(identifier.reader.bank_KD) == 3
    (found,) = identifier.assess(["I lost my thing."], ["I am so very sorry for the thing."])
    assert set(found.judgements) == set(MECHANISMS)
    assert found.expected_empathy > 0
    (value,) = Contrast(identifier.reader)(
        completions=["Hm. I see the thing."], seeker_post=["I lost it."], response_post=["Hm."]
    )
    assert value != 0.0


def test_a_finished_run_gives_the_same_figures_again(
    given: Path, trained: Path, tmp_path: Path
) -> None:
    first = json.loads((trained / "model" / "results.json").read_text())["figures"]
    assert run(config(given, trained)) == first  # restored from its checkpoint
    other = run(config(given, tmp_path / "other", seed=1))
    assert other["kinds"] != first["kinds"]


def test_dialogues_are_a_further_source(
    given: Path, tmp_path: Path, jsonl: Callable[..., Path]
) -> None:
    rows = [
        {
            "seeker_post": f"I had a bad day {n}.",
            "response_post": f"Bad day {n} it was.",
            "emotion": "joyful" if n % 2 else "sad",
        }
        for n in range(60)
    ]
    settings = config(
        given, tmp_path / "run", dialogues=str(jsonl(rows)), max_dialogues=30, steps=1
    )
    assert run(settings)["step"] == 1


def test_replies_that_are_known_not_to_fit_are_left_out(
    given: Path, tmp_path: Path, jsonl: Callable[..., Path]
) -> None:
    rows = labelled()
    misfit = rows[1] | {"response_post": "No fit.", "contrast": {"fits": False}}
    unlabelled = {"seeker_post": rows[2]["seeker_post"], "response_post": "No label."}
    path = jsonl([*rows, misfit, unlabelled])
    splits = labelled_splits(config(given, tmp_path, data=str(path)))
    every = [exchange for exchanges in splits.values() for exchange in exchanges]
    assert {e.response_post for e in every} == {row["response_post"] for row in rows}
    assert all(split_of(e) == split for split, part in splits.items() for e in part)


def test_a_block_is_no_larger_than_the_smallest_source() -> None:
    many = [Answer(f"Post {n}.", "Yes.") for n in range(5)]
    few = [Answer("Post 1.", "Yes."), Answer("Post 1.", "No."), Answer("Post 2.", "Yes.")]
    assert smallest(Material([(0.5, many), (0.5, few)])) == 2


def test_too_little_data_is_said(given: Path, tmp_path: Path, jsonl: Callable[..., Path]) -> None:
    silent = [
        row | {"response_post": "Buy one, buy two."} | dict.fromkeys(MECHANISMS, 0)
        for row in labelled()
    ]
    for row in silent:
        row["rationales"] = {m: [] for m in MECHANISMS}
    with pytest.raises(UserError, match="too little data for the train part"):
        run(config(given, tmp_path / "run", data=str(jsonl(silent))))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": "gone.csv"}, "no such file"),
        ({"counterfactuals": "sample:nothing"}, "sample:nothing_train: the sample has the splits"),
        ({"calm": "gone.csv"}, "no such file"),
        ({"encoder": "gone/nowhere/at all"}, "gone/nowhere/at all"),
    ],
)
def test_mistakes_are_one_line(
    changes: dict[str, str],
    message: str,
    given: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = vars(config(given, tmp_path / "run", **changes))
    with pytest.raises(SystemExit) as stop:
        run_training(["reader", *(w for k, v in settings.items() for w in (f"--{k}", str(v)))])
    assert stop.value.code == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert message in error


def test_every_field_is_explained() -> None:
    assert all(field.metadata.get("help") for field in fields(Config))


def test_the_toy_has_every_level_in_both_parts() -> None:
    """Or the fits of the run above would not be tested."""
    for split in ("train", "dev"):
        rows = [r for r in labelled() if split_of(Exchange(r["seeker_post"], "")) == split]
        assert {row["explorations"] for row in rows} == {0, 1, 2}
