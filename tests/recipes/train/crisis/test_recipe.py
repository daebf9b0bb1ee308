"""`train.py crisis`, really run: two steps on a tiny encoder; its choices and figures by hand."""

import json
import math
import random
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch

from recipes.entry import run_training
from recipes.train.crisis.figures import bar_above, choose_bars, fit_temperature, measure, table
from recipes.train.crisis.messages import (
    KIND_OF_REGISTER,
    Message,
    messages,
    mixed_copies,
    noisy,
    noisy_copies,
    ordinary_posts,
)
from recipes.train.crisis.recipe import Config, crisis_loss, run
from rewriting.errors import UserError
from rewriting.safety.reader.crisis_reader import KINDS, Bars, CrisisReader, Reading
from tests.recipes.train.small import SMALL
from tests.rewards.reading.tiny import write_tiny_bert

ROWS = [
    {"id": str(n), "text": f"I {word} it {n} times.", "label": label, "register": register}
    for n in range(4)
    for word, label, register in (("fear", "crisis", "planned"), ("love", "benign", "idiom"))
]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an encoder and with messages."""
    folder = tmp_path_factory.mktemp("crisis")
    write_tiny_bert(folder / "encoder")
    for part in ("train", "dev", "test", "languages"):
        rows = ROWS if part == "train" else ROWS[:6]
        rows = [row | {"language": "es"} for row in rows] if part == "languages" else rows
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"crisis_{part}.jsonl").write_text(text)
    return folder


def config(given: Path, output: Path, **changes: Any) -> Config:
    settings: dict[str, Any] = {
        "output": str(output),
        "data": str(given),
        "ordinary": False,
        "noisy": 0.0,
        "mixed": 0.0,
        "encoder": str(given / "encoder"),
        **SMALL,
    }
    return Config(**(settings | changes))


@pytest.fixture(scope="module")
def trained(given: Path) -> Path:
    settings = vars(config(given, given / "run")) | {"ordinary": "false", "test": "true"}
    run_training(["crisis", *(word for k, v in settings.items() for word in (f"--{k}", str(v)))])
    return given / "run"


def test_a_run_leaves_a_reader_with_its_card(trained: Path) -> None:
    folder = trained / "model"
    figures = json.loads((folder / "results.json").read_text())["figures"]
    assert figures["messages"] == 8
    assert figures["dev"]["crisis"]["planned"]["n"] == 3
    assert figures["dev"]["all_benign"]["n"] == 3
    assert figures["languages"]["crisis"]["es"]["n"] == 3
    log = [json.loads(line) for line in (trained / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in log] == [1, 2]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "| crisis: planned |" in card
    assert "## On the test part" in card
    reader = CrisisReader.load(folder)
    assert vars_of(reader.bars) == figures["bars"]
    assert reader.read("I fear it.").kind in KINDS


def vars_of(bars: Bars) -> dict[str, float]:
    return {field.name: getattr(bars, field.name) for field in fields(bars)}


def test_a_finished_run_is_restored(given: Path, trained: Path) -> None:
    first = json.loads((trained / "model" / "results.json").read_text())["figures"]
    assert run(config(given, trained, test=True)) == first


class Fake:
    """Reads the probability of a crisis off the last word of a text."""

    bars = Bars(possible=0.5, crisis=0.8, benign=0.1)
    judged = CrisisReader.judged

    def read(self, text: str) -> Reading:
        return Reading(float(text.split()[-1]), KINDS[0])

    def __call__(self, texts: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
        chances = [self.read(text).probability for text in texts]
        logits_N = torch.tensor([math.log(p / (1 - p)) for p in chances])
        return logits_N, torch.zeros(len(texts), len(KINDS))


def told(crisis: bool, *probabilities: float, register: str = "planned") -> list[Message]:
    return [Message(f"some words here {p}", crisis, register) for p in probabilities]


FAKE: Any = Fake()


def test_the_loss_by_hand() -> None:
    rows = told(True, 0.8) + told(False, 0.8, register="idiom")
    total, count = crisis_loss(FAKE, rows, 0.0, 0.5)
    assert count == 2
    expected = -math.log(0.8) - math.log(0.2) + 0.5 * math.log(len(KINDS))
    assert total.item() == pytest.approx(expected, rel=1e-5)


def test_ways_of_telling_have_no_kind_and_cost_none() -> None:
    total, _ = crisis_loss(FAKE, told(True, 0.8, register="slang"), 0.0, 0.5)
    assert total.item() == pytest.approx(-math.log(0.8), rel=1e-5)
    assert set(KIND_OF_REGISTER.values()) == set(KINDS)


@pytest.mark.parametrize(("allowed", "bar"), [(0, 0.6), (1, 0.4), (3, 0.1), (4, 0.0)])
def test_a_bar_is_reached_by_no_more_than_allowed(allowed: int, bar: float) -> None:
    assert bar_above([0.1, 0.2, 0.4, 0.6], allowed) == pytest.approx(bar, abs=1e-5)


def test_bars_are_the_lowest_that_the_false_alarms_allow() -> None:
    dev = told(False, *(n / 100 for n in range(20))) + told(True, 0.05, 0.3, 0.9)
    bars = choose_bars(FAKE, dev, (), 0.1, 0.0)
    assert bars.possible == pytest.approx(0.17, abs=1e-5)
    assert bars.crisis == pytest.approx(0.19, abs=1e-5)
    assert bars.benign == 0.0
    ordinary = told(False, 0.01, 0.4, register="ordinary")
    assert choose_bars(FAKE, dev, ordinary, 0.1, 0.0).possible == pytest.approx(0.4, abs=1e-5)
    with pytest.raises(UserError, match="both labels"):
        choose_bars(FAKE, told(True, 0.9), (), 0.1, 0.0)


def test_weak_phrases_have_a_bar_of_their_own() -> None:
    def weak(crisis: bool, *probabilities: float) -> list[Message]:
        return [Message(f"the overdose of that day {p}", crisis, "news") for p in probabilities]

    dev = told(False, *(n / 100 for n in range(18))) + weak(False, 0.1, 0.3)
    bars = choose_bars(FAKE, dev + told(True, 0.165) + weak(True, 0.12), (), 0.1, 0.0)
    assert (bars.possible, bars.benign) == pytest.approx((0.16, 0.1), abs=1e-5)


def test_hints_have_bars_of_their_own() -> None:
    def hinted(crisis: bool, *probabilities: float) -> list[Message]:
        return [Message(f"I flinch in the house {p}", crisis, "anger") for p in probabilities]

    def twice(crisis: bool, *probabilities: float) -> list[Message]:
        return [Message(f"I flinch and I am clumsy {p}", crisis, "anger") for p in probabilities]

    benign = told(False, *(n / 100 for n in range(60, 80))) + hinted(False, 0.05) * 9
    dev = benign + hinted(True, 0.45) + twice(True, 0.06) + twice(False, 0.01)
    bars = choose_bars(FAKE, dev, (), 0.1, 0.0)
    assert bars.possible == pytest.approx(0.76, abs=1e-5)
    assert (bars.hinted, bars.hinted_twice) == (0.4, 0.05)


def test_firm_rules_do_not_make_bars_impossible() -> None:
    firm = [Message("I want to kill myself, said the clown 0.9", False, "news")] * 3
    bars = choose_bars(FAKE, firm + told(False, 0.2) + told(True, 0.5), (), 0.0, 0.0)
    assert bars.possible == pytest.approx(0.2, abs=1e-5)


def test_the_temperature_cools_one_that_is_too_sure() -> None:
    sure = told(True, *[0.99] * 8) + told(False, *[0.99] * 2)
    assert fit_temperature(FAKE, sure) > 2
    modest = told(True, *[0.8] * 8) + told(False, *[0.8] * 2)
    assert fit_temperature(FAKE, modest) == pytest.approx(1.0, abs=0.05)


def test_figures_by_hand() -> None:
    rows = told(True, 0.9, 0.6, 0.2) + told(False, 0.55, 0.05, register="idiom")
    found = measure(FAKE, rows)
    planned = found["crisis"]["planned"]
    assert (planned["n"], planned["found"], planned["crisis"]) == (3, 2, 1)
    assert (planned["low"], planned["high"]) == pytest.approx((20.77, 93.85), abs=0.01)
    assert found["all_benign"]["found"] == 1
    assert found["all_crisis"]["reader_alone"] == 2
    assert found["auroc"] == pytest.approx(100 * 5 / 6)
    assert found["kind_accuracy"] == 100
    assert "| crisis: planned | 2 of 3 | 21 to 94 % |" in table(found)


def test_noise_keeps_labels_and_differs() -> None:
    rows = [Message("Tomorrow everything will be different.", True, "planned")] * 20
    copies = noisy_copies(rows, 1.0, seed=3)
    assert len(copies) == 20
    assert {(row.crisis, row.register) for row in copies} == {(True, "planned")}
    assert len({row.text for row in copies}) > 5
    assert noisy_copies(rows, 0.0, seed=3) == []
    assert noisy("Ok, no.", random.Random(0)) in ("ok no", "ok, no.", "Ok, no.")


def test_mixed_copies_hold_a_message_and_an_ordinary_post() -> None:
    ordinary = [Message("The bus was late.", False, "ordinary")]
    (one,) = mixed_copies([Message("I am scared.", True, "planned")], ordinary, 1.0, seed=0)
    assert one.crisis
    assert sorted(one.text.replace(". ", ".|").split("|")) == ["I am scared.", "The bus was late."]
    assert mixed_copies([one], [], 1.0, seed=0) == []


def test_ordinary_posts_are_parted() -> None:
    learnt, kept = ordinary_posts()
    assert len(learnt) > len(kept) > 1000
    assert {row.register for row in kept} == {"ordinary", "seeker"}
    assert not {row.text for row in learnt} & {row.text for row in kept}
    assert not any(row.crisis for row in (*learnt, *kept))


@pytest.mark.parametrize(
    "line", ['{"text": "a"}', '{"label": "crisis"}', '{"text": "a", "label": "sad"}', "no", "[1]"]
)
def test_a_bad_line_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "crisis_dev.jsonl").write_text(f"{json.dumps(ROWS[0])}\n{line}\n")
    with pytest.raises(UserError, match=r"crisis_dev.jsonl, line 2: a line needs `text`"):
        messages(str(tmp_path), "dev")


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such file; --data names the folder"):
        messages(str(tmp_path), "dev")


def test_every_field_is_explained() -> None:
    assert all(field.metadata.get("help") for field in fields(Config))
