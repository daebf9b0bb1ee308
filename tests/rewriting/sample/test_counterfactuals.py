"""The bundled counterfactuals, burdens, clubs and kindness texts keep what they promise."""

import json
from collections import Counter
from itertools import combinations
from typing import Any

import pytest

from rewards.reading.blocks import KIND_LEVELS, MISFITS
from rewriting.data import load_exchanges
from rewriting.data.load import AUDITED, NEUTRAL, SAMPLE, SAMPLE_SPLITS, sample_files
from rewriting.data.split import normalised
from rewriting.errors import UserError

KINDS = [
    "interpretation_strong",
    "reaction_strong",
    "question_strong",
    "interpretation_weak",
    "reaction_weak",
    "question_weak",
    "wrong_feeling",
    "wrong_detail",
    "nonsense",
    "hurtful",
    "advice",
    "echo",
]
PARTS = {split: list(load_exchanges(f"sample:counterfactuals_{split}")) for split in SAMPLE_SPLITS}
ROWS = [exchange for exchanges in PARTS.values() for exchange in exchanges]
KINDNESS: dict[str, list[dict[str, Any]]] = {
    split: [
        json.loads(line)
        for line in (SAMPLE / f"kindness_{split}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    for split in (*SAMPLE_SPLITS, "blind")
}
SHEET = " ".join((SAMPLE / "COUNTERFACTUALS.md").read_text(encoding="utf-8").split())


def twice(texts: list[str]) -> list[str]:
    """The texts that stand there more than once, case and white space aside."""
    return [text for text, count in Counter(map(normalised, texts)).items() if count > 1]


def test_the_names_of_the_files() -> None:
    for name in (*AUDITED, *NEUTRAL):
        (file,) = sample_files(f"sample:{name}")
        assert file.is_file()
        assert file.stem == name
    assert {"counterfactuals_test", "burdens"} < set(AUDITED)
    with pytest.raises(UserError, match="counterfactuals_dev"):
        sample_files("sample:counterfactuals")
    # They are no part of the sample itself.
    assert {file.stem for file in sample_files("sample")} == set(SAMPLE_SPLITS)


def test_sizes_and_ids() -> None:
    assert {split: len(rows) for split, rows in PARTS.items()} == {
        "train": 195,
        "dev": 45,
        "test": 40,
    }
    assert len({exchange.id for exchange in ROWS}) == len(ROWS)
    assert twice([exchange.seeker_post for exchange in ROWS]) == []


def test_every_row_has_the_kinds_in_their_order() -> None:
    for exchange in ROWS:
        assert [one["kind"] for one in exchange.extra["sentences"]] == KINDS, exchange.id
    assert set(KINDS) == set(KIND_LEVELS) | set(MISFITS)


def test_no_sentence_but_stock_stands_twice_in_or_across_the_parts() -> None:
    every = [one for exchange in ROWS for one in exchange.extra["sentences"]]
    assert twice([one["text"] for one in every if not one["kind"].endswith("_weak")]) == []
    said = {normalised(one["text"]) for one in every if not one["kind"].endswith("_weak")}
    assert not said & {normalised(one["text"]) for one in every if one["kind"].endswith("_weak")}


def test_the_datasheet_counts_the_stock_sentences_that_training_knows() -> None:
    stock = {
        split: [
            normalised(one["text"])
            for exchange in rows
            for one in exchange.extra["sentences"]
            if one["kind"].endswith("_weak")
        ]
        for split, rows in PARTS.items()
    }
    known = {split: sum(text in stock["train"] for text in stock[split]) for split in stock}
    words = f"{known['dev']} weak sentences of the dev part and {known['test']} of the test part"
    assert words in SHEET


def test_sentences_are_sentences_of_at_most_30_words() -> None:
    for exchange in ROWS:
        for one in exchange.extra["sentences"]:
            assert one["text"] == one["text"].strip(), exchange.id
            assert 1 <= len(one["text"].split()) <= 30, (exchange.id, one["kind"])


def test_writers_are_parted() -> None:
    writers = {
        split: {exchange.id.split("-")[1] for exchange in rows} for split, rows in PARTS.items()
    }
    assert {split: len(names) for split, names in writers.items()} == {
        "train": 4,
        "dev": 1,
        "test": 1,
    }
    for one, two in combinations(writers.values(), 2):
        assert not one & two


def test_no_post_is_one_of_the_sample() -> None:
    known = {normalised(e.seeker_post) for e in load_exchanges("sample")}
    assert not known & {normalised(e.seeker_post) for e in ROWS}


@pytest.mark.parametrize("split", KINDNESS)
def test_kindness_sentences_are_unique_and_have_both_labels(split: str) -> None:
    rows = KINDNESS[split]
    assert len(rows) == {"train": 8627, "dev": 767, "test": 399, "blind": 1037}[split]
    assert twice([row["text"] for row in rows]) == []
    assert all(row["text"].strip() for row in rows)
    hurts = [row["hurts"] for row in rows]
    assert all(isinstance(value, bool) for value in hurts)
    assert 0.3 < sum(hurts) / len(hurts) < 0.7


def test_kindness_parts_share_neither_ids_nor_sentences() -> None:
    every = [row for rows in KINDNESS.values() for row in rows]
    assert len({row["id"] for row in every}) == len(every)
    assert twice([row["text"] for row in every]) == []


LATER_KINDS = {"sexual", "diagnosis", "religion_verdict"}
LATER_KINDS |= {"affection", "treatment_respected", "faith_shared"}


def test_a_kind_of_kindness_has_one_label() -> None:
    labels: dict[str, set[bool]] = {}
    for rows in KINDNESS.values():
        for row in rows:
            labels.setdefault(row["kind"], set()).add(row["hurts"])
    assert all(len(values) == 1 for values in labels.values()), labels
    assert sum(values == {True} for values in labels.values()) == 13
    assert all(f"`{kind}`" in SHEET for kind in labels)
    assert set(labels) >= LATER_KINDS
    for split, least in (("train", 144), ("dev", 15), ("test", 19), ("blind", 38)):
        found = Counter(row["kind"] for row in KINDNESS[split])
        kinds = set(labels) - (LATER_KINDS if split == "test" else set())
        assert set(found) == kinds
        assert min(found.values()) >= least


def test_writers_of_kindness_are_parted() -> None:
    writers = {split: {row["id"].split("-")[1] for row in rows} for split, rows in KINDNESS.items()}
    assert {split: len(names) for split, names in writers.items()} == {
        "train": 21,
        "dev": 2,
        "test": 1,
        "blind": 2,
    }
    for one, two in combinations(writers.values(), 2):
        assert not one & two


def test_kindness_of_dev_and_test_is_not_in_the_counterfactuals_of_training() -> None:
    trained = {normalised(one["text"]) for e in PARTS["train"] for one in e.extra["sentences"]}
    for split in ("dev", "test", "blind"):
        assert not trained & {normalised(row["text"]) for row in KINDNESS[split]}


def test_burdens_and_clubs() -> None:
    burdens = list(load_exchanges("sample:burdens"))
    fits = Counter(exchange.extra["fits"] for exchange in burdens)
    assert fits == {True: 20, False: 20}
    assert twice([exchange.seeker_post for exchange in burdens]) == []
    assert len({exchange.id for exchange in burdens}) == 40
    clubs = list(load_exchanges("sample:clubs"))
    assert len(clubs) == len({exchange.id for exchange in clubs}) == 120
    assert twice([exchange.seeker_post for exchange in clubs]) == []
    assert twice([exchange.response_post for exchange in clubs]) == []
    assert not {e.seeker_post for e in clubs} & {
        e.seeker_post for e in load_exchanges("sample:everyday")
    }
