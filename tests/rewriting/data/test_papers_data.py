"""The papers' own files, where they are at hand."""

from pathlib import Path

from rewriting.data import load_exchanges
from rewriting.data.check import Summary, summarise
from rewriting.edits import Edit, apply_edits
from rewriting.sentences import split_sentences


def test_epitome_counts(papers_data: Path) -> None:
    counts = summarise(load_exchanges(papers_data / "epitome"), Summary()).json()
    assert (counts["rows"], counts["seekers"], counts["duplicates"]) == (2458, 2375, 49)
    assert counts["levels"] == {
        "emotional_reactions": [1625, 715, 118],
        "interpretations": [1277, 94, 1087],
        "explorations": [2096, 80, 282],
    }


def test_empathetic_dialogues_counts(papers_data: Path) -> None:
    folder = papers_data / "empathetic_dialogues"
    assert sum(1 for _ in load_exchanges(folder / "train.csv")) == 40306
    assert sum(1 for _ in load_exchanges(folder / "valid.csv")) == 5714
    assert summarise(load_exchanges(folder), Summary()).json()["rows"] == 46020


def test_every_epitome_text_splits_and_joins_exactly(papers_data: Path) -> None:
    for exchange in load_exchanges(papers_data / "epitome"):
        for text in (exchange.seeker_post, exchange.response_post):
            assert str(split_sentences(text)) == text
        assert apply_edits(exchange.response_post, [Edit.keep()]) == exchange.response_post
