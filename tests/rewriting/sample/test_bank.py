"""The bundled bank and the newcomers keep what their datasheet promises."""

import json
from collections import Counter
from typing import Any

import pytest
from rapidfuzz import fuzz

from rewriting.data import load_exchanges
from rewriting.data.lent import lent_rows
from rewriting.data.load import SAMPLE
from rewriting.data.split import normalised
from rewriting.safety import check_post
from rewriting.safety.outputs.check import check_output
from rewriting.sentences import split_sentences

ROWS = list(lent_rows())
SENTENCES: list[dict[str, Any]] = [one for row in ROWS for one in row["sentences"]]
SHEET = (SAMPLE / "BANK.md").read_text(encoding="utf-8")


def test_the_datasheet_counts_posts_and_sentences() -> None:
    assert f"{len(ROWS):,} posts" in SHEET
    assert f"{len(SENTENCES):,} sentences" in SHEET
    for kind, count in Counter(one["kind"] for one in SENTENCES).items():
        assert f"| `{kind}` | {count:,} |" in SHEET, kind


def test_each_sentence_is_one_sentence_and_stands_once() -> None:
    texts = [one["text"] for one in SENTENCES]
    assert len({normalised(text) for text in texts}) == len(texts)
    for text in texts:
        assert text == " ".join(text.split())
        assert 4 <= len(text.split()) <= 26, text
        assert len(split_sentences(text)) == 1, text


def test_no_opening_is_worn_out() -> None:
    openings = Counter(" ".join(normalised(one["text"]).split()[:3]) for one in SENTENCES)
    _, most = openings.most_common(1)[0]
    assert most < 0.03 * len(SENTENCES)


def test_questions_ask_and_nothing_else_does() -> None:
    for one in SENTENCES:
        assert one["text"].endswith("?") is (one["kind"] == "question"), one


def test_the_gate_is_clear() -> None:
    for row in ROWS:
        assert check_post(row["seeker_post"]).clear, row["id"]
        for one in row["sentences"]:
            assert check_output(one["text"]).clear, one


def test_no_post_is_nearly_one_of_a_test_part() -> None:
    others = (
        "newcomers", "newcomers2", "newcomers3", "rewrites_test", "rewrites_dev", "test",
        "sense_test", "burdens",
    )  # fmt: skip
    tested = {e.seeker_post for name in others for e in load_exchanges(f"sample:{name}")}
    for row in ROWS:
        for post in tested:
            assert fuzz.ratio(row["seeker_post"], post) < 70, row["id"]


@pytest.mark.parametrize(
    ("part", "good"), [("newcomers", 10), ("newcomers2", 8), ("newcomers3", 10)]
)
def test_the_newcomers(part: str, good: int) -> None:
    rows = list(load_exchanges(f"sample:{part}"))
    assert len({row.id for row in rows}) == len(rows) == 80
    assert Counter(row.extra["topic"] for row in rows).most_common(1)[0][1] == 10
    assert Counter(row.extra["quality"] for row in rows) == {"weak": 80 - good, "good": good}
    lines = (SAMPLE / f"{part}.jsonl").read_text(encoding="utf-8").splitlines()
    assert all(json.loads(line)["response_post"].strip() for line in lines)
