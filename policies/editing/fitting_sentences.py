"""Supervision from sentences that fit a post, though nobody wrote down where they would stand.

Two corpora hold such sentences: `sample:sense`, where every post has a reply (rewriting/sample/
SENSE.md), and `sample:fits`, where the reply is another sentence that fits (FITS.md). A policy
learns from them what to say. The place is drawn at random and is not learnt: where a sentence goes
is told by written edits alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final

from policies.editing.warm_start import Supervised
from rewriting.data.fits import CORPORA, STRONG, fit_groups
from rewriting.data.load import load_exchanges
from rewriting.edits import num_positions
from rewriting.errors import UserError
from rewriting.exchange import Exchange
from rewriting.loop import EditState, spans
from rewriting.runtime.seeds import derive_seed
from rewriting.sentences import split_sentences

GOOD_KINDS: Final = frozenset({"specific", "general_fit", "question"})
"""What is worth saying, of the kinds of `sample:sense`."""


def build_fitting(
    corpora: Sequence[str], part: str, *, span_length: int = 4, seed: int = 0
) -> list[Supervised]:
    """One row a post, with all that could be said under it; part is train, dev or test."""
    readers = {"sample:sense": sense_posts, "sample:fits": fit_posts}
    rows = []
    for corpus in corpora:
        if corpus not in readers:
            raise UserError(f"sentences are of {' or '.join(CORPORA)}, not {corpus!r}.")
        for post, reply, sentences in readers[corpus](part):
            chooser = random.Random(derive_seed(seed, post, reply))
            rows.append(_row(post, reply, sentences, span_length, chooser))
    return rows


def _row(
    post: str, reply: str, sentences: Sequence[str], span_length: int, chooser: random.Random
) -> Supervised:
    """A span of the reply, and each sentence at some place in it."""
    texts = split_sentences(reply).texts
    span = chooser.choice(spans(len(texts), span_length))
    state = EditState(Exchange(post, reply), texts[span.start : span.stop], span.start)
    places = [chooser.randrange(num_positions(len(span)) - 1) for _ in sentences]  # the last: keep
    first, *others = zip(places, sentences, strict=True)
    return Supervised(state, *first, "say", tuple(others))


def sense_posts(part: str) -> Iterator[tuple[str, str, list[str]]]:
    """Post, reply and what is worth saying there, of the sense corpus."""
    for exchange in load_exchanges(f"sample:sense_{part}"):
        rows = exchange.extra["sentences"]
        good = [row["text"] for row in rows if row["kind"] in GOOD_KINDS]
        if good:
            yield exchange.seeker_post, exchange.response_post, good


def fit_posts(part: str) -> Iterator[tuple[str, str, list[str]]]:
    """Post, reply and strong sentences that fit, of the fits.

    The reply is the plainest of the sentences that fit; what is strong is left to be said.
    """
    for group in fit_groups(part):
        for place, post in enumerate(group["posts"]):
            fitting = [row for row in group["sentences"] if row["fits"][place]]
            fitting.sort(key=lambda row: row["level"])
            strong = [row["text"] for row in fitting[1:] if row["level"] == STRONG]
            if strong:
                yield post, fitting[0]["text"], strong
