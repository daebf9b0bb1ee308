"""The bundled sample keeps what its datasheet promises."""

from collections import Counter, defaultdict
from itertools import product

import pytest

from rewriting.data import load_exchanges
from rewriting.data.load import SAMPLE_SPLITS
from rewriting.exchange import LEVELS, MECHANISMS
from rewriting.sentences import split_sentences

SPLITS = {split: list(load_exchanges(f"sample:{split}")) for split in SAMPLE_SPLITS}
EVERY = [exchange for exchanges in SPLITS.values() for exchange in exchanges]


def test_size_and_topics() -> None:
    assert len(EVERY) == 624
    topics = Counter(exchange.extra["topic"] for exchange in EVERY)
    assert len(topics) == 12
    assert min(topics.values()) >= 50


def test_ids_are_unique_and_posts_stay_in_one_split() -> None:
    assert len({exchange.id for exchange in EVERY}) == len(EVERY)
    splits_of_post = defaultdict(set)
    for split, exchanges in SPLITS.items():
        for exchange in exchanges:
            splits_of_post[exchange.seeker_id].add(split)
            splits_of_post[exchange.seeker_post].add(split)
    assert all(len(splits) == 1 for splits in splits_of_post.values())


@pytest.mark.parametrize("split", SAMPLE_SPLITS)
def test_every_level_of_every_mechanism_is_in_every_split(split: str) -> None:
    found = {(m, exchange.labels[m].level) for exchange in SPLITS[split] for m in MECHANISMS}
    assert found == set(product(MECHANISMS, LEVELS))


def test_rationales_are_in_the_response_exactly_where_there_is_a_level() -> None:
    for exchange in EVERY:
        for label in exchange.labels.values():
            assert bool(label.level) == bool(label.rationales), exchange.id
            assert all(text in exchange.response_post for text in label.rationales), exchange.id


def test_kinds_match_the_levels() -> None:
    ranges = {
        "advice": (0, 0),
        "dismissive": (0, 0),
        "factual": (0, 0),
        "partial": (1, 2),
        "empathic": (3, 4),
        "very_empathic": (5, 6),
        "contrast": (0, 6),
    }
    for exchange in EVERY:
        low, high = ranges[exchange.extra["kind"]]
        assert exchange.empathy is not None
        assert low <= exchange.empathy <= high, exchange.id


def test_contrast_pairs_share_a_sentence_that_fits_one_post_only() -> None:
    pairs = defaultdict(list)
    for exchange in EVERY:
        if contrast := exchange.extra.get("contrast"):
            assert contrast["sentence"] in exchange.response_post
            pairs[contrast["pair"]].append(exchange)
    assert len(pairs) == 48
    for pair in pairs.values():
        assert sorted(exchange.extra["contrast"]["fits"] for exchange in pair) == [False, True]
        assert len({exchange.extra["contrast"]["sentence"] for exchange in pair}) == 1
        assert len({exchange.seeker_id for exchange in pair}) == 2


def test_several_replies_to_each_post() -> None:
    replies = Counter(exchange.seeker_id for exchange in EVERY)
    assert min(replies.values()) >= 4


def test_the_sample_splits_and_joins_exactly() -> None:
    for exchange in EVERY:
        for text in (exchange.seeker_post, exchange.response_post):
            assert str(split_sentences(text)) == text


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("everyday", 597),
        ("calm", 420),
        ("technical_support", 150),
        ("enquiries", 60),
        ("counter", 120),
    ],
)
def test_exchanges_that_call_for_no_empathy(name: str, count: int) -> None:
    exchanges = list(load_exchanges(f"sample:{name}"))
    assert len({exchange.id for exchange in exchanges}) == count
    assert len({exchange.seeker_post for exchange in exchanges}) == count
    assert not any(exchange.labels for exchange in exchanges)
    assert not {exchange.seeker_post for exchange in exchanges} & {e.seeker_post for e in EVERY}


def test_families_to_test_on_share_no_post_or_reply_with_the_one_to_train_on() -> None:
    texts = {
        name: {
            text
            for e in load_exchanges(f"sample:{name}")
            for text in (e.seeker_post, e.response_post)
        }
        for name in ("everyday", "technical_support", "enquiries", "counter")
    }
    trained = texts.pop("everyday")
    assert not trained & set().union(*texts.values())
