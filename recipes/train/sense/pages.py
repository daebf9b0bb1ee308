"""What `train.py sense` learns from: pages of labelled sentences, a post each."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from rewriting.data.load import SAMPLE
from rewriting.errors import UserError
from rewriting.runtime.seeds import derive_seed

if TYPE_CHECKING:
    from recipes.train.sense.recipe import Config
    from rewards.reading.labelled import Page
    from rewriting.exchange import Exchange

PARTS = ("counterfactuals", "sense")
SENTENCES_OF_PAGE = 12


def pages_of(config: Config, split: str) -> list[Page]:
    """The pages of one part, in an order that follows from the seed.

    Kindness sentences come many to a page, without a post: they teach what hurts by itself.
    """
    from recipes.shared.kindness_sentences import sentences
    from recipes.shared.sources import drawn
    from rewards.audit.stock import STOCK, read_sentences
    from rewards.reading import labelled
    from rewriting.data import load_exchanges

    train = split == "train"
    chosen = chosen_corpora(config.corpora)
    corpora = {name: CORPORA[name](split) for name in CORPORA if name in chosen}
    posts = [page for pages in corpora.values() for page in pages]
    rows = drawn(labelled_exchanges(config, split), config.max_labelled, config.seed)
    posts += labelled.labelled_pages(rows if train else rows[:100])
    seed = derive_seed(config.seed, "sense", split)
    added = config.moved + config.garbled
    posts = labelled.merged(posts, SENTENCES_OF_PAGE - added)
    posts = labelled.with_moved(posts, config.moved, seed)
    if config.garbled:
        posts = labelled.with_garbled(posts, seed)
    if train:
        repeats = {
            "machine": config.machine_repeats,
            "fits": config.fit_repeats,
            "lent": config.lent_repeats,
        }
        for name, times in repeats.items():
            again = labelled.merged(corpora.get(name, []), SENTENCES_OF_PAGE)
            posts += again * (times - 1)
        if "calm" in chosen:
            stock = read_sentences(STOCK) + weak_sentences(f"sample:counterfactuals_{split}")
            posts += labelled.calm_pages(load_exchanges("sample:calm"), stock, seed)
    if "kindness" in chosen:
        kind = sentences("", split)
        random.Random(seed).shuffle(kind)
        posts += labelled.merged(
            labelled.kindness_pages((one.text, one.hurts) for one in kind), SENTENCES_OF_PAGE
        )
    return posts


def chosen_corpora(names: str) -> set[str]:
    """The corpora that are named, by commas; one that there is not is a user's mistake."""
    chosen = {name.strip() for name in names.split(",") if name.strip()}
    if unknown := sorted(chosen - set(ALL_CORPORA)):
        raise UserError(f"corpora: there is no {unknown[0]!r}; there are {', '.join(ALL_CORPORA)}.")
    return chosen


def _by_kind(part: str) -> Callable[[str], list[Page]]:
    def pages(split: str) -> list[Page]:
        from rewards.reading.labelled import pages_by_kind
        from rewriting.data import load_exchanges

        return pages_by_kind(load_exchanges(f"sample:{part}_{split}"))

    return pages


def _machine(split: str) -> list[Page]:
    from rewards.reading.labelled import machine_pages

    return machine_pages(SAMPLE / f"machine_sentences_{split}.jsonl")


def _fits(split: str) -> list[Page]:
    from rewards.reading.labelled import fit_pages

    return fit_pages(SAMPLE / f"fits_{split}.jsonl")


def _lent(split: str) -> list[Page]:
    from rewards.reading.labelled import lent_pages

    return lent_pages(SAMPLE / f"lent_{split}.jsonl")


def _rewrites(split: str) -> list[Page]:
    from rewards.reading.labelled import rewrite_pages
    from rewriting.data import load_exchanges

    return rewrite_pages(load_exchanges(f"sample:rewrites_{split}"))


def _bank(split: str) -> list[Page]:
    """All of the bank is for training: nothing is measured on it."""
    from rewards.reading.labelled import bank_pages
    from rewriting.data.lent import lent_rows

    return bank_pages(lent_rows()) if split == "train" else []


CORPORA: Final[Mapping[str, Callable[[str], list[Page]]]] = {
    "machine": _machine,
    "fits": _fits,
    "lent": _lent,
    "rewrites": _rewrites,
    "bank": _bank,
    **{part: _by_kind(part) for part in PARTS},
}
"""The bundled corpora of labelled sentences under posts: their pages, by part."""
ALL_CORPORA: Final = (*CORPORA, "calm", "kindness")


def labelled_exchanges(config: Config, split: str) -> list[Exchange]:
    """Exchanges with all three levels, without replies that are known not to fit their post."""
    from recipes.shared.sources import known_levels, load_splits

    splits = load_splits(config.data, seed=config.seed)
    return known_levels(splits[split])  # type: ignore[index]


def weak_sentences(source: str) -> list[str]:
    """The stock sentences of counterfactuals: kind words that fit everybody."""
    from rewards.reading.blocks import sentences_by_kind
    from rewriting.data import load_exchanges

    return [
        text
        for exchange in load_exchanges(source)
        for kind, text in sentences_by_kind(exchange).items()
        if kind.endswith("_weak")
    ]
