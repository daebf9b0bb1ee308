"""The bundled fits keep what their datasheet promises."""

import json
from collections import Counter
from typing import Any

from rewriting.data.load import SAMPLE, SAMPLE_SPLITS
from rewriting.data.split import normalised

MECHANISMS = {"interpretation": 4, "reaction": 2, "question": 2}
PARTS: dict[str, list[dict[str, Any]]] = {
    split: [
        json.loads(line)
        for line in (SAMPLE / f"fits_{split}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    for split in SAMPLE_SPLITS
}
SHEET = (SAMPLE / "FITS.md").read_text(encoding="utf-8")


def cells(groups: list[dict[str, Any]]) -> list[int]:
    """Every fit that was decided."""
    return [
        fit
        for group in groups
        for sentence in group["sentences"]
        for fit in sentence["fits"]
        if fit is not None
    ]


def test_the_datasheet_counts_groups_posts_and_cells() -> None:
    for split, groups in PARTS.items():
        posts = sum(len(group["posts"]) for group in groups)
        counts = f"| {len(groups)} | {posts:,} | {len(cells(groups)):,} |"
        assert f"| `fits_{split}.jsonl` {counts}" in SHEET, counts


def test_a_group_has_six_posts_and_eight_sentences_judged_under_each() -> None:
    for groups in PARTS.values():
        for group in groups:
            assert len(set(group["posts"])) == 6, group["id"]
            kinds = Counter(sentence["mechanism"] for sentence in group["sentences"])
            assert kinds == MECHANISMS, group["id"]
            for sentence in group["sentences"]:
                assert len(sentence["fits"]) == 6
                assert set(sentence["fits"]) <= {0, 1, None}
                assert sentence["level"] in (1, 2)


def test_the_form_of_a_sentence_does_not_tell_whether_it_fits() -> None:
    """Nearly every sentence is right somewhere in its group and wrong somewhere else."""
    for split, groups in PARTS.items():
        sentences = [sentence for group in groups for sentence in group["sentences"]]
        both = [sentence for sentence in sentences if {0, 1} <= set(sentence["fits"])]
        assert len(both) > 0.9 * len(sentences), split
        assert 0.2 < sum(cells(groups)) / len(cells(groups)) < 0.35, split


def test_a_third_of_the_posts_is_one_short_sentence() -> None:
    for split, groups in PARTS.items():
        lengths = [len(post.split()) for group in groups for post in group["posts"]]
        assert sum(length <= 16 for length in lengths) > 0.3 * len(lengths), split


def test_no_text_stands_in_two_parts() -> None:
    texts = {
        split: {
            normalised(text)
            for group in groups
            for text in (*group["posts"], *(s["text"] for s in group["sentences"]))
            if len(text.split()) > 6  # there are only so many short kind sentences
        }
        for split, groups in PARTS.items()
    }
    assert not texts["train"] & (texts["dev"] | texts["test"])
    assert not texts["dev"] & texts["test"]
