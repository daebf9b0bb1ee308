"""Sentences under posts, with what a careful reader says of each: what `SenseModel` learns from.

A label has three parts, each known or not: does the sentence make sense here, is it true to the
post, would it hurt this person. Beside them stand the levels of empathy that it earns under this
post: what is wrong, senseless or hurtful earns none, whatever its form.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rewards.reading.blocks import Levels, sentence_levels, sentences_by_kind
from rewriting.carriers import suitable
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange

KnownLevels = tuple[int | None, ...]
"""A level for each mechanism, in the order of MECHANISMS; None where nobody has said."""
NOTHING: Final[Levels] = (0, 0, 0)
UNKNOWN: Final[KnownLevels] = (None, None, None)
STRONG: Final = 2
MIN_GARBLED: Final = 6  # words of a sentence that can be garbled


@dataclass(frozen=True, slots=True)
class Label:
    """What is known of a sentence under a post: 1.0 yes, 0.0 no, None not known."""

    sense: float | None = None
    true: float | None = None
    hurts: float | None = None
    levels: KnownLevels = UNKNOWN


@dataclass(frozen=True, slots=True)
class Page:
    """A post and labelled sentences under it: one row of training."""

    post: str
    sentences: tuple[tuple[str, Label], ...]

    @property
    def size(self) -> int:
        """Characters to be read: pages of similar size make good micro-batches."""
        return len(self.post) + sum(len(text) for text, _ in self.sentences)


def welcome(levels: KnownLevels = UNKNOWN) -> Label:
    """The label of a sentence that makes sense, is true to the post and hurts nobody."""
    return Label(1.0, 1.0, 0.0, levels)


WRONG: Final = Label(1.0, 0.0, None, NOTHING)
SENSELESS: Final = Label(0.0, None, None, NOTHING)
HURTFUL: Final = Label(None, None, 1.0, NOTHING)
MOVED: Final = Label(None, 0.0, None, NOTHING)

KINDS: Final[Mapping[str, Label]] = {
    # counterfactuals (rewriting/sample/COUNTERFACTUALS.md)
    "interpretation_strong": welcome((0, 2, 0)),
    "reaction_strong": welcome((2, 0, 0)),
    "question_strong": welcome((0, 0, 2)),
    "interpretation_weak": welcome((0, 1, 0)),
    "reaction_weak": welcome((1, 0, 0)),
    "question_weak": welcome((0, 0, 1)),
    "wrong_feeling": WRONG,
    "wrong_detail": WRONG,
    "nonsense": SENSELESS,
    "hurtful": HURTFUL,
    "advice": welcome(NOTHING),
    "echo": Label(levels=NOTHING),
    # sense (rewriting/sample/SENSE.md)
    "specific": welcome((None, None, 0)),
    "general_fit": welcome((None, 2, 0)),
    "question": welcome((0, 0, 2)),
    "plain": welcome(),
    "wrong_fact": WRONG,
    "answered": WRONG,
    "senseless": SENSELESS,
    "misjudged": WRONG,
    "stings": HURTFUL,
}
"""What a sentence of the counterfactuals, or of the sense corpus, is labelled with by its kind."""

MACHINE: Final[Mapping[str, Label]] = {
    "good": welcome(),
    "plain": welcome(),
    "wrong": WRONG,
    "senseless": SENSELESS,
    "hurtful": HURTFUL,
}
"""The same for the labels of machine sentences (rewriting/sample/MACHINE_SENTENCES.md)."""


FIT_LEVELS: Final[Mapping[str, Callable[[int], KnownLevels]]] = {
    "reaction": lambda level: (level, None, 0),
    "interpretation": lambda level: (None, level, 0),
    "question": lambda level: (0, 0, level),
}
"""The levels that a sentence of the fits earns where it fits, by its mechanism."""


def pages_by_kind(exchanges: Iterable[Exchange]) -> list[Page]:
    """The pages of counterfactuals or of the sense corpus; a kind that is not known is named."""
    pages = []
    for exchange in exchanges:
        kinds = sentences_by_kind(exchange)
        if unknown := sorted(set(kinds) - set(KINDS)):
            raise UserError(f"exchange {exchange.id!r}: unknown kind {unknown[0]!r}.")
        rows = tuple((text, KINDS[kind]) for kind, text in kinds.items())
        pages.append(Page(exchange.seeker_post, rows))
    return pages


def machine_pages(path: Path) -> list[Page]:
    """The pages of a file of labelled machine sentences; a bad line is named."""
    pages = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            row = json.loads(line)
            found = (str(row["sentence"]), MACHINE[row["label"]])
            pages.append(Page(str(row["seeker_post"]), (found,)))
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise UserError(
                f"{path}, line {number}: a line needs seeker_post, sentence and label, one of "
                f"{', '.join(MACHINE)} ({error})."
            ) from error
    return pages


def fit_pages(path: Path) -> list[Page]:
    """The pages of a file of fits: groups of posts and sentences, and under which post each of the
    sentences is right (rewriting/sample/FITS.md). A bad line is named.

    The same sentence is right under one post and wrong under another, so that only reading both
    tells the two apart.
    """
    pages = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            group = json.loads(line)
            rows = [
                (str(row["text"]), FIT_LEVELS[row["mechanism"]](int(row["level"])), row["fits"])
                for row in group["sentences"]
            ]
            for place, post in enumerate(group["posts"]):
                found = tuple(
                    (text, welcome(levels) if fits[place] else WRONG)
                    for text, levels, fits in rows
                    if fits[place] is not None
                )
                pages.append(Page(str(post), found))
        except (json.JSONDecodeError, KeyError, IndexError, TypeError, ValueError) as error:
            raise UserError(
                f"{path}, line {number}: a line needs posts, and sentences with text, mechanism "
                f"(one of {', '.join(FIT_LEVELS)}), level and a fit for each post ({error})."
            ) from error
    return pages


def lent_pages(path: Path) -> list[Page]:
    """The pages of a file of sentences that were said to somebody else, and whether each belongs
    under this post too (rewriting/sample/LENT.md). A bad line is named."""
    pages = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            row = json.loads(line)
            verdicts = tuple(
                (str(sentence["text"]), welcome() if sentence["belongs"] else WRONG)
                for sentence in row["sentences"]
            )
            pages.append(Page(str(row["seeker_post"]), verdicts))
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise UserError(
                f"{path}, line {number}: a line needs seeker_post and sentences, each with text "
                f"and belongs ({error})."
            ) from error
    return pages


def bank_pages(rows: Iterable[Mapping[str, Any]]) -> list[Page]:
    """The posts of the bank with the sentences that were written for them: all of them belong."""
    return [
        Page(
            str(row["seeker_post"]),
            tuple((str(sentence["text"]), welcome()) for sentence in row["sentences"]),
        )
        for row in rows
    ]


def kindness_pages(rows: Iterable[tuple[str, bool]]) -> list[Page]:
    """Sentences without a post, of which only is known whether they hurt."""
    return [Page("", ((text, Label(hurts=float(hurts))),)) for text, hurts in rows]


def labelled_pages(exchanges: Iterable[Exchange]) -> list[Page]:
    """Labelled replies: their sentences are in their place, with the levels of their rationales."""
    pages = []
    for exchange in exchanges:
        if exchange.empathy is None:
            continue
        found = tuple(
            (" ".join(text.split()), Label(1.0, 1.0, None, levels))
            for text, levels in sentence_levels(exchange)
            if suitable(text, 2, 40)
        )
        if found:
            pages.append(Page(exchange.seeker_post, found))
    return pages


def rewrite_pages(exchanges: Iterable[Exchange]) -> list[Page]:
    """The new sentences of `sample:rewrites_*`, with the levels that their rationales give them."""
    pages = []
    for exchange in exchanges:
        levels, rationales = (
            exchange.extra["rewritten_levels"],
            exchange.extra["rewritten_rationales"],
        )
        found = []
        for edit in exchange.extra["edits"]:
            text = edit["sentence"]
            own = tuple(
                int(levels[name])
                if any(text in one or one in text for one in rationales[name])
                else 0
                for name in MECHANISMS
            )
            found.append((text, welcome(own)))
        if found:
            pages.append(Page(exchange.seeker_post, tuple(found)))
    return pages


def calm_pages(exchanges: Iterable[Exchange], kind_words: Sequence[str], seed: int) -> list[Page]:
    """Exchanges that call for no empathy: nothing earns any there, kind words neither."""
    generator = random.Random(seed)
    pages = []
    for exchange in exchanges:
        own = (" ".join(exchange.response_post.split()), Label(1.0, 1.0, 0.0, NOTHING))
        added = generator.sample(list(kind_words), min(3, len(kind_words)))
        rows = (own, *((text, Label(levels=NOTHING)) for text in added))
        pages.append(Page(exchange.seeker_post, rows))
    return pages


def with_moved(pages: Sequence[Page], count: int, seed: int) -> list[Page]:
    """The pages, each with so many strong sentences of other posts, which are not true of it."""
    generator = random.Random(seed)
    strong = [
        (page.post, text)
        for page in pages
        for text, label in page.sentences
        if label.true == 1.0 and STRONG in label.levels
    ]
    posts = {post for post, _ in strong}
    if count and len(posts) < 2:
        raise UserError("moving sentences needs strong sentences of two posts.")
    found = []
    for page in pages:
        own: list[tuple[str, Label]] = []
        while len(own) < count and page.post:
            post, text = generator.choice(strong)
            if post != page.post:
                own.append((text, MOVED))
        found.append(Page(page.post, (*page.sentences, *own)))
    return found


def with_garbled(pages: Sequence[Page], seed: int) -> list[Page]:
    """The pages, each with a garbled copy of one of its right sentences, which makes no sense.

    A weak language model says such things: the words of a sentence, some of them wrong.
    """
    generator = random.Random(seed)
    words = [word for page in pages for word in page.post.split() if len(word) > 3]
    found = []
    for page in pages:
        right = [text for text, label in page.sentences if label.true == 1.0 and page.post]
        long = [text for text in right if len(text.split()) >= MIN_GARBLED]
        own: tuple[tuple[str, Label], ...] = ()
        if long:
            own = ((garbled(generator.choice(long), words, generator), SENSELESS),)
        found.append(Page(page.post, (*page.sentences, *own)))
    return found


def garbled(sentence: str, words: Sequence[str], generator: random.Random) -> str:
    """A sentence with a quarter of its words, two at least, replaced by other people's words, or
    with a piece of it moved elsewhere."""
    own = sentence.split()
    if generator.random() < 0.3:
        start = generator.randrange(1, len(own) - 3)
        piece, rest = own[start : start + 3], own[:start] + own[start + 3 :]
        place = generator.choice([p for p in range(len(rest) + 1) if p != start])
        return " ".join(rest[:place] + piece + rest[place:])
    places = [place for place, word in enumerate(own) if len(word) > 2] or list(range(len(own)))
    for place in generator.sample(places, min(len(places), max(2, len(own) // 4))):
        own[place] = generator.choice(words).strip(".,;:!?\"'()")
    return " ".join(own)


def merged(pages: Iterable[Page], most: int = 12) -> list[Page]:
    """Pages of one post put together, equal sentences once, cut to `most` sentences each."""
    by_post: dict[str, dict[str, Label]] = {}
    for page in pages:
        rows = by_post.setdefault(page.post, {})
        for text, label in page.sentences:
            rows.setdefault(text, label)
    found = []
    for post, rows in by_post.items():
        items = list(rows.items())
        found += [Page(post, tuple(items[i : i + most])) for i in range(0, len(items), most)]
    return found
