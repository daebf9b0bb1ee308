"""The bundled sense corpus keeps what its datasheet promises."""

from collections import Counter

from rewriting.data import load_exchanges
from rewriting.data.load import SAMPLE, SAMPLE_SPLITS
from rewriting.data.split import normalised
from rewriting.exchange import Exchange

KINDS = (
    "specific",
    "general_fit",
    "question",
    "plain",
    "wrong_fact",
    "answered",
    "senseless",
    "misjudged",
    "stings",
)
PARTS = {split: list(load_exchanges(f"sample:sense_{split}")) for split in SAMPLE_SPLITS}
SHEET = (SAMPLE / "SENSE.md").read_text(encoding="utf-8")


def sentences(exchanges: list[Exchange], *kinds: str) -> list[str]:
    return [
        one["text"]
        for exchange in exchanges
        for one in exchange.extra["sentences"]
        if not kinds or one["kind"] in kinds
    ]


def test_the_datasheet_counts_posts_and_sentences() -> None:
    assert f"{sum(map(len, PARTS.values()))} posts" in SHEET
    for split, exchanges in PARTS.items():
        counts = f"| {len(exchanges)} | {len(sentences(exchanges)):,} |"
        assert f"| `sense_{split}.jsonl` {counts}" in SHEET
    for kind in KINDS:
        assert f"| `{kind}` |" in SHEET


def test_each_kind_stands_once_at_the_most_and_nearly_always_there() -> None:
    for exchanges in PARTS.values():
        for exchange in exchanges:
            kinds = [one["kind"] for one in exchange.extra["sentences"]]
            assert kinds == [kind for kind in KINDS if kind in kinds], exchange.id
        counts = Counter(
            one["kind"] for exchange in exchanges for one in exchange.extra["sentences"]
        )
        assert min(counts[kind] for kind in KINDS) > 0.9 * len(exchanges)


def test_posts_are_those_of_the_same_part_of_the_rewrites() -> None:
    for split, exchanges in PARTS.items():
        posts = {one.seeker_post for one in load_exchanges(f"sample:rewrites_{split}")}
        assert {exchange.seeker_post for exchange in exchanges} <= posts


def test_no_sentence_stands_in_two_parts() -> None:
    telling = [kind for kind in KINDS if kind != "plain"]  # there are only so many stock sentences
    texts = {
        split: set(map(normalised, sentences(rows, *telling))) for split, rows in PARTS.items()
    }
    assert not texts["train"] & (texts["dev"] | texts["test"])
    assert not texts["dev"] & texts["test"]


def test_no_opening_is_a_habit() -> None:
    for split, exchanges in PARTS.items():
        texts = sentences(exchanges, *(kind for kind in KINDS if kind != "plain"))
        openings = Counter(" ".join(normalised(text).split()[:3]) for text in texts)
        opening, count = openings.most_common(1)[0]
        assert count < 0.02 * len(texts), (split, opening, count)


def test_sentences_are_single_and_short() -> None:
    for exchanges in PARTS.values():
        for text in sentences(exchanges):
            assert 2 <= len(text.split()) <= 32, text
            assert "\n" not in text
