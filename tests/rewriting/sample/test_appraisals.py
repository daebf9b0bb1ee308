"""The bundled corpus of appraisals keeps what its datasheet promises."""

import json
from collections import Counter

import pytest

from rewriting.data import load_exchanges
from rewriting.data.appraisals import APPRAISALS, ROLES, SAMPLE_FILE, load_appraisals
from rewriting.data.load import SAMPLE_SPLITS

ROWS = [json.loads(line) for line in SAMPLE_FILE.read_text(encoding="utf-8").splitlines()]
EVERY = list(load_appraisals("sample"))
SHEET = SAMPLE_FILE.with_name("APPRAISALS.md").read_text(encoding="utf-8")


def test_size_and_ids() -> None:
    assert len(EVERY) == len(ROWS) >= 150
    assert len({exchange.id for exchange in EVERY}) == len(EVERY)
    assert f"{len(EVERY)} exchanges" in SHEET
    assert f"{len({e.seeker_id for e in EVERY})} posts" in SHEET


def test_spans_are_exact_words_in_order_without_overlap() -> None:
    for row in ROWS:
        ends = 0
        for start, end, _ in row["spans"]:
            words = row["full_text"][start:end]
            assert words == words.strip(), row["id"]
            assert words in row["target_text"] or words in row["observer_text"], row["id"]
            assert start >= ends, row["id"]
            ends = end


def test_alignments_go_from_a_target_span_to_an_observer_span() -> None:
    for exchange in EVERY:
        for target, observer in exchange.alignments:
            assert target < len(exchange.target_spans)
            assert observer < len(exchange.observer_spans)


@pytest.mark.parametrize("split", SAMPLE_SPLITS)
def test_every_appraisal_is_in_every_split(split: str) -> None:
    found = Counter(
        span.label for e in EVERY if e.split == split for role in ROLES for span in e.spans(role)
    )
    assert set(found) == set(APPRAISALS)
    assert min(found.values()) >= 10


def test_posts_stay_in_one_split_also_of_the_sample_of_replies() -> None:
    split_of_post = {}
    for split in SAMPLE_SPLITS:
        split_of_post |= {e.seeker_post: split for e in load_exchanges(f"sample:{split}")}
    for exchange in EVERY:
        known = split_of_post.setdefault(exchange.target_text, exchange.split)
        assert known == exchange.split, exchange.id
    spans = {}
    for exchange in EVERY:  # one post is marked one way, whoever answers
        known_spans = spans.setdefault(exchange.seeker_id, exchange.target_spans)
        assert known_spans == exchange.target_spans, exchange.id


def test_kinds_of_alignment_and_of_misses() -> None:
    kinds: Counter[str] = Counter()
    for exchange in EVERY:
        for target, observer in exchange.alignments:
            label = exchange.observer_spans[observer].label
            same = exchange.target_spans[target].label == label
            kinds["advice" if label == "Advice" else "mirrored" if same else "reframed"] += 1
        aligned = {observer for _, observer in exchange.alignments}
        left = [s.label for k, s in enumerate(exchange.observer_spans) if k not in aligned]
        kinds["trope unaligned"] += left.count("Trope")
        kinds["near-miss"] += sum(label not in ("Trope", "Advice") for label in left)
        kinds["nothing met"] += bool(exchange.observer_spans) and not exchange.alignments
    assert all(kinds[name] >= 40 for name in ("advice", "mirrored", "reframed", "near-miss"))
    for name, count in kinds.items():
        assert f"| {name} | {count} |" in SHEET


def test_the_datasheet_counts_the_splits() -> None:
    for split in SAMPLE_SPLITS:
        rows = [exchange for exchange in EVERY if exchange.split == split]
        spans = sum(len(e.target_spans) + len(e.observer_spans) for e in rows)
        posts = len({e.seeker_id for e in rows})
        aligned = sum(len(e.alignments) for e in rows)
        assert f"| {split} | {posts} | {len(rows)} | {spans} | {aligned} |" in SHEET
