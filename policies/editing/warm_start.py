"""Supervision for an edit policy, built from labelled or scored exchanges, and its loss.

PARTNER (arXiv 2101.07714) starts from responses that are empathic already, and undoes them:

    insert   the sentences that carry the empathy are taken out; learn where one was, what it said
    replace  a sentence without empathy stands in its place; learn which it is, what it should say
    keep     a response of high empathy is left alone; learn to leave it alone

A sentence carries the empathy where a rationale of some mechanism covers at least half of it
(rewriting/carriers.py). All carriers of a response go, not only the one to be learnt: what is left
then looks like the responses that need an edit. Nothing here knows of splits: it is given one at a
time, and weak sentences come from that one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from torch import Tensor

from policies.editing.agent import EditAgent
from policies.editing.empathic_sentences import (
    empathy_of,
    first_sentence,
    tells_own_story,
    to_be_learnt,
    weak_sentences,
)
from rewriting.carriers import carriers, suitable, without
from rewriting.edits import Edit
from rewriting.exchange import Exchange
from rewriting.loop import EditState, spans
from rewriting.runtime.seeds import derive_seed
from rewriting.sentences import Sentences, split_sentences

SHARES: Final[Mapping[str, float]] = {"insert": 0.45, "replace": 0.35, "keep": 0.2}


@dataclass(frozen=True, slots=True)
class Supervised:
    """An example of the warm start: a state, and the edit to be learnt in it."""

    state: EditState
    position: int
    """The place among the 2n + 2 of the state's span."""
    sentence: str
    """Blank for keep."""
    kind: str
    """insert, replace, keep; or say, where the place is not to be learnt."""
    others: tuple[tuple[int, str], ...] = ()
    """Further places and sentences in the same state, which is read once for all of them."""

    @property
    def size(self) -> int:
        """Characters to be read and written: rows of similar size make good micro-batches."""
        span = sum(map(len, self.state.span))
        written = len(self.sentence) + sum(len(sentence) for _, sentence in self.others)
        return len(self.state.exchange.seeker_post) + span + written

    @property
    def actions(self) -> list[tuple[int, str]]:
        """Every pair of a position and a sentence to be learnt."""
        return [(self.position, self.sentence), *self.others]


def build(
    exchanges: Sequence[Exchange],
    *,
    span_length: int = 4,
    seed: int = 0,
    shares: Mapping[str, float] = SHARES,
    max_repeats: int = 8,
    keep_empathy: int = 4,
    min_words: int = 3,
    max_words: int = 30,
    own_stories: bool = False,
) -> list[Supervised]:
    """Rows to learn from, the kinds in the given shares, in an order that follows from the seed.

    keep_empathy: total empathy from which a response is left alone. max_repeats: a kind that is
    scarce is repeated up to so many times, before the others are cut down to its measure.
    own_stories: also learn sentences in which a peer tells of their own life.
    """
    weak = weak_sentences(exchanges, min_words, max_words)
    found: dict[str, list[Supervised]] = {kind: [] for kind in SHARES}
    for exchange in exchanges:
        chooser = random.Random(derive_seed(seed, exchange.seeker_post, exchange.response_post))
        sentences, carrying = split_sentences(exchange.response_post), carriers(exchange)
        usable = [
            carrier
            for carrier in carrying
            if suitable(sentence := first_sentence(carrier.text), min_words, max_words)
            and (own_stories or not tells_own_story(sentence))
        ]
        for carrier in to_be_learnt(usable):
            others = {c.place for c in carrying} - {carrier.place}
            left = without(sentences, others)
            place = carrier.place - sum(other < carrier.place for other in others)
            filler = chooser.choice(weak) if weak else ""
            for row in _undone(left, place, first_sentence(carrier.text), filler):
                found[row[1].operation].append(_row(exchange, *row, span_length))
        if (exchange.empathy or 0) >= keep_empathy:
            for span in spans(len(sentences), span_length):
                # One level less: some rationales are not found, or lie across two spans.
                if empathy_of([c for c in carrying if c.place in span]) >= keep_empathy - 1:
                    texts = sentences.texts[span.start : span.stop]
                    state = EditState(exchange, texts, span.start)
                    found["keep"].append(Supervised(state, 2 * len(span) + 1, "", "keep"))
    return balanced(found, shares, max_repeats, seed)


def _undone(
    sentences: Sentences, place: int, sentence: str, weak: str
) -> Iterator[tuple[Sentences, Edit]]:
    """A response without its empathy, and the edit that brings it back: by insertion, by replacing.

    Nothing is inserted into a response of which nothing is left.
    """
    rest = without(sentences, {place})
    if any(len(text.split()) > 1 for text in rest.texts):
        yield rest, Edit.insert(place, sentence)
    if weak:
        yield sentences.with_replaced(place, weak), Edit.replace(place, sentence)


def _row(exchange: Exchange, sentences: Sentences, edit: Edit, span_length: int) -> Supervised:
    """The span of the changed response that an edit falls into. Its labels hold no longer."""
    assert edit.position is not None  # keep has rows of another kind
    changed = replace(exchange, response_post=str(sentences), labels={})
    found = spans(len(sentences), span_length)
    span = found[min(edit.position // span_length, len(found) - 1)]  # the last may be appended to
    state = EditState(changed, sentences.texts[span.start : span.stop], span.start)
    inside = edit.shifted(-span.start)
    return Supervised(state, inside.index(len(span)), edit.sentence, str(edit.operation))


def balanced(
    found: Mapping[str, Sequence[Supervised]],
    shares: Mapping[str, float],
    max_repeats: int,
    seed: int,
) -> list[Supervised]:
    """The kinds in the given shares, as many rows as that allows, shuffled.

    The most plentiful kind (for its share) is taken whole if the scarcest, repeated `max_repeats`
    times, can keep up with it. A kind without any row is left out, and the others share its part.
    """
    shares = {kind: share for kind, share in shares.items() if share > 0 and found.get(kind)}
    if not shares:
        return []
    possible = min(max_repeats * len(found[kind]) / share for kind, share in shares.items())
    total = min(possible, max(len(found[kind]) / share for kind, share in shares.items()))
    rows: list[Supervised] = []
    for kind, share in shares.items():
        chooser = random.Random(derive_seed(seed, "balance", kind))
        count, available = round(total * share), list(found[kind])
        rows += available * (count // len(available))
        rows += chooser.sample(available, count % len(available))
    random.Random(derive_seed(seed, "order")).shuffle(rows)
    return rows


def summary(rows: Sequence[Supervised]) -> dict[str, dict[str, float]]:
    """Per kind: rows, the different ones of them, their share in percent, words of a sentence."""
    table: dict[str, dict[str, float]] = {}
    for kind in (*SHARES, "say"):
        chosen = [row for row in rows if row.kind == kind]
        if kind not in SHARES and not chosen:
            continue
        table[kind] = {
            "rows": len(chosen),
            "different": len({id(row) for row in chosen}),
            "share": 100 * len(chosen) / max(len(rows), 1),
            "words": sum(len(row.sentence.split()) for row in chosen) / max(len(chosen), 1),
        }
    return table


def examples(rows: Sequence[Supervised], count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Some rows drawn at random, readable: what the policy sees, and what it should do."""
    drawn = random.Random(seed).sample(list(rows), min(count, len(rows)))
    found = []
    for row in drawn:
        edit = Edit.at(row.position, len(row.state.span), row.sentence or "…")
        seen = {"seeker_post": row.state.exchange.seeker_post, "span": list(row.state.span)}
        found.append(edit.row() | seen)
    return found


def supervised_loss(
    agent: EditAgent, rows: Sequence[Supervised], *, sum_tokens: bool = False
) -> tuple[Tensor, float]:
    """Minus log π of the rows' actions, summed, and their number.

    The position and the mean of the sentence's tokens weigh alike: as a plain sum, twenty tokens
    drown the one decision where to write. sum_tokens: the plain sum, the likelihood of the action.
    A loss for the supervised loop, whose module is `agent.module`.
    """
    wanted = [(row, place, sentence) for row in rows for place, sentence in row.actions]
    actions = [agent.action(place, sentence) for _, place, sentence in wanted]
    found = agent.log_probs([row.state for row, _, _ in wanted], actions, dropout=True)
    placed_B = found.position_B.new_tensor([row.kind != "say" for row, _, _ in wanted])
    total = (found.position_B * placed_B).sum()
    for tokens in found.tokens:
        if len(tokens):
            total = total + (tokens.sum() if sum_tokens else tokens.mean())
    return -total, float(len(actions))
