"""The crisis corpus: what its datasheet says of it, and that its parts are apart."""

import json
import re
from collections import Counter
from itertools import combinations
from typing import Any

import pytest

from rewriting.data.load import SAMPLE
from rewriting.data.split import normalised

PARTS: dict[str, list[dict[str, Any]]] = {
    part: [
        json.loads(line)
        for line in (SAMPLE / f"crisis_{part}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    for part in ("train", "dev", "test", "blind", "languages")
}
SHEET = (SAMPLE / "CRISIS.md").read_text(encoding="utf-8")
WRITERS = {
    "train": {f"c{number}" for number in range(1, 20)} - {"c8"},
    "dev": {"c8", "d2"},
    "test": {"t1", "t2"},
    "blind": {"t3"},
    "languages": {"es", "de", "fr", "pt"},
}
AMOUNT = re.compile(r"\b\d+\s*(mg|milligrams?|pills|tablets)\b", re.IGNORECASE)


@pytest.mark.parametrize("part", PARTS)
def test_the_datasheet_counts_them(part: str) -> None:
    rows = PARTS[part]
    labels = Counter(row["label"] for row in rows)
    assert set(labels) == {"crisis", "benign"}
    figures = f"{len(rows):,} | {labels['crisis']:,} | {labels['benign']:,}"
    assert f"| `crisis_{part}.jsonl` | {figures} |" in SHEET
    assert {row["id"].split("-")[1] for row in rows} == WRITERS[part]


def test_the_datasheet_counts_all_and_names_every_register() -> None:
    rows = [row for part in PARTS.values() for row in part]
    labels = Counter(row["label"] for row in rows)
    assert f"{len(rows):,} short messages" in SHEET
    assert f"{labels['crisis']:,} in\nwhich" in SHEET
    assert f"{labels['benign']:,} that use" in SHEET
    for register in {row["register"] for row in rows}:
        assert re.search(rf"\b{register}\b", SHEET), register


def test_no_message_stands_in_two_parts_or_twice() -> None:
    texts = {part: [normalised(row["text"]) for row in rows] for part, rows in PARTS.items()}
    for rows in texts.values():
        assert len(set(rows)) == len(rows)
    for first, second in combinations(texts.values(), 2):
        assert not set(first) & set(second)


def test_test_has_every_register_of_train() -> None:
    def registers(part: str) -> Counter[tuple[str, str]]:
        return Counter((row["label"], row["register"]) for row in PARTS[part])

    assert set(registers("test")) == set(registers("train"))
    assert min(registers("test").values()) >= 15


def test_no_crisis_message_names_an_amount() -> None:
    for rows in PARTS.values():
        for row in rows:
            assert row["label"] == "benign" or not AMOUNT.search(row["text"]), row["id"]
