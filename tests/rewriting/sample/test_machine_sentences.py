"""The labelled sentences of agents keep what their datasheet promises."""

import json
from collections import Counter
from typing import Any

import pytest

from rewriting.data.load import SAMPLE, SAMPLE_SPLITS

PARTS: dict[str, list[dict[str, Any]]] = {
    split: [
        json.loads(line)
        for line in (SAMPLE / f"machine_sentences_{split}.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    ]
    for split in SAMPLE_SPLITS
}
SHEET = (SAMPLE / "MACHINE_SENTENCES.md").read_text(encoding="utf-8")
LABELS = ("good", "plain", "wrong", "senseless", "hurtful")


def test_the_datasheet_counts_the_labels() -> None:
    counts = {split: Counter(row["label"] for row in rows) for split, rows in PARTS.items()}
    for label in LABELS:
        row = " | ".join(str(counts[split][label]) for split in SAMPLE_SPLITS)
        assert f"| `{label}` | {row} |" in SHEET, label
    assert {label for count in counts.values() for label in count} == set(LABELS)
    assert f"{sum(map(len, PARTS.values())):,} sentences" in SHEET


@pytest.mark.parametrize("split", SAMPLE_SPLITS)
def test_every_sentence_has_its_post_and_who_said_it(split: str) -> None:
    rows = PARTS[split]
    assert len({row["id"] for row in rows}) == len(rows)
    assert len({(row["seeker_post"], row["sentence"]) for row in rows}) == len(rows)
    sources = (f"rewrites_{split}", f"counterfactuals_{split}")
    lines = [
        line
        for source in sources
        for line in (SAMPLE / f"{source}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    posts = {json.loads(line)["seeker_post"] for line in lines}
    for row in rows:
        assert row["seeker_post"] in posts  # none of another part
        assert row["sentence"].strip()
        assert row["policy"] in ("partner", "partner-start", "imitator")
        assert f"`{row['policy']}`" in SHEET
