"""The labelled sentences of agents keep what their datasheet promises."""

import json
from collections import Counter
from typing import Any

from rewriting.data.load import SAMPLE

ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (SAMPLE / "machine_sentences.jsonl").read_text(encoding="utf-8").splitlines()
]
SHEET = (SAMPLE / "MACHINE_SENTENCES.md").read_text(encoding="utf-8")


def test_the_datasheet_counts_the_labels() -> None:
    counts = Counter(row["label"] for row in ROWS)
    assert set(counts) == {"good", "plain", "wrong", "senseless", "hurtful"}
    for label, count in counts.items():
        assert f"| `{label}` | {count} |" in SHEET, label
    assert f"{len(ROWS)} sentences" in SHEET


def test_every_sentence_has_its_post_and_who_said_it() -> None:
    assert len({row["id"] for row in ROWS}) == len(ROWS)
    trained = (SAMPLE / "rewrites_train.jsonl").read_text(encoding="utf-8").splitlines()
    posts = {json.loads(line)["seeker_post"] for line in trained}
    for row in ROWS:
        assert row["seeker_post"] in posts  # none of the dev or test part
        assert row["sentence"].strip()
        assert row["policy"] in ("partner", "partner-start")
