"""The bundled lent sentences keep what their datasheet promises."""

import json
from typing import Any

import pytest

from rewards.reading.labelled import lent_pages
from rewriting.data.load import SAMPLE, SAMPLE_SPLITS
from rewriting.errors import UserError

PARTS: dict[str, list[dict[str, Any]]] = {
    split: [
        json.loads(line)
        for line in (SAMPLE / f"lent_{split}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    for split in SAMPLE_SPLITS
}
SHEET = (SAMPLE / "LENT.md").read_text(encoding="utf-8")


def test_the_datasheet_counts_posts_and_pairs() -> None:
    for split, rows in PARTS.items():
        pairs = [one["belongs"] for row in rows for one in row["sentences"]]
        counts = f"| `lent_{split}.jsonl` | {len(rows)} | {len(pairs):,} | {sum(pairs):,} |"
        assert counts in SHEET, counts


def test_no_post_stands_in_two_parts_and_no_id_twice() -> None:
    posts = {split: {row["seeker_post"] for row in rows} for split, rows in PARTS.items()}
    assert not posts["train"] & (posts["dev"] | posts["test"])
    assert not posts["dev"] & posts["test"]
    for rows in PARTS.values():
        assert len({row["id"] for row in rows}) == len(rows)


def test_a_sentence_stands_once_under_a_post() -> None:
    for rows in PARTS.values():
        for row in rows:
            texts = [one["text"] for one in row["sentences"]]
            assert len(set(texts)) == len(texts) >= 8, row["id"]


def test_a_bad_line_is_named(tmp_path: Any) -> None:
    path = tmp_path / "lent.jsonl"
    path.write_text('{"seeker_post": "Rex died.", "sentences": [{"text": "Poor Rex."}]}\n')
    with pytest.raises(UserError, match=r"lent\.jsonl, line 1: a line needs .* belongs"):
        lent_pages(path)
