"""The bundled rewrites keep what their datasheet promises."""

import json
from collections import Counter
from itertools import combinations
from typing import Any

import pytest

from rewriting.data import load_exchanges
from rewriting.data.load import REWRITTEN, SAMPLE, SAMPLE_SPLITS
from rewriting.data.split import normalised
from rewriting.edits import Edit, Operation, apply_edits
from rewriting.exchange import MECHANISMS
from rewriting.safety import Gate
from rewriting.sentences import split_sentences

PARTS: dict[str, list[dict[str, Any]]] = {
    split: [
        json.loads(line)
        for line in (SAMPLE / f"rewrites_{split}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    for split in SAMPLE_SPLITS
}
ROWS = [row for rows in PARTS.values() for row in rows]
SHEET = (SAMPLE / "REWRITES.md").read_text(encoding="utf-8")


def new_sentences(rows: list[dict[str, Any]]) -> list[str]:
    return [edit["sentence"] for row in rows for edit in row["edits"]]


def test_they_load_by_name_and_have_no_levels_of_the_weak_reply() -> None:
    for name, rows in zip(REWRITTEN, PARTS.values(), strict=True):
        exchanges = list(load_exchanges(f"sample:{name}"))
        assert [exchange.id for exchange in exchanges] == [row["id"] for row in rows]
        assert not any(exchange.labels for exchange in exchanges)


@pytest.mark.parametrize("split", SAMPLE_SPLITS)
def test_the_datasheet_counts_them(split: str) -> None:
    rows = PARTS[split]
    posts, edits = len({row["seeker_id"] for row in rows}), len(new_sentences(rows))
    assert f"| `rewrites_{split}.jsonl` | {len(rows):,} | {posts:,} | {edits:,} |" in SHEET


def test_edits_give_the_rewritten_reply() -> None:
    for row in ROWS:
        edits = [
            Edit(Operation(e["operation"]), e["position"], e["sentence"]) for e in row["edits"]
        ]
        assert apply_edits(row["response_post"], edits) == row["rewritten_response"], row["id"]
        kept = set(split_sentences(row["rewritten_response"]).texts)
        assert {edit.sentence for edit in edits} <= kept, row["id"]


def test_levels_are_carried_by_sentences_of_the_rewritten_reply() -> None:
    for row in ROWS:
        texts = split_sentences(row["rewritten_response"]).texts
        for mechanism in MECHANISMS:
            rationales = row["rewritten_rationales"][mechanism]
            assert bool(rationales) == (row["rewritten_levels"][mechanism] > 0), row["id"]
            assert set(rationales) <= set(texts), row["id"]


def test_no_post_and_no_new_sentence_is_shared_by_two_parts() -> None:
    for first, second in combinations(PARTS.values(), 2):
        assert not {normalised(row["seeker_post"]) for row in first} & {
            normalised(row["seeker_post"]) for row in second
        }
    counts = Counter(map(normalised, new_sentences(ROWS)))
    assert [text for text, count in counts.items() if count > 1] == []


def test_shares_of_kinds_of_edits() -> None:
    new = new_sentences(ROWS)
    replacing = sum(edit["operation"] == "replace" for row in ROWS for edit in row["edits"])
    assert 0.3 < replacing / len(new) < 0.5
    assert 0.2 < sum(text.endswith("?") for text in new) / len(new) < 0.35
    assert 1 / 7 < sum(not row["edits"] for row in ROWS) / len(ROWS) < 1 / 5
    assert max(len(row["edits"]) for row in ROWS) == 3
    openings = Counter(" ".join(text.lower().split()[:2]) for text in new)
    assert openings.most_common(1)[0][1] < 0.03 * len(new)


def test_nothing_in_them_is_for_the_gate() -> None:
    gate = Gate()
    for row in ROWS:
        assert not gate.check_post(row["seeker_post"]).alarming, row["id"]
        assert gate.check_output(row["rewritten_response"], row["response_post"]).clear, row["id"]
