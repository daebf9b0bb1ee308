"""Supervision for a choosing policy: which sentence fits a post, and where people edit a reply.

The fits (rewriting/sample/FITS.md) say of kind sentences under which posts they are right: under a
weak reply, what fits shall be likelier than what does not. The written edits (REWRITES.md) say
where a sentence goes, what is replaced, and when to stop. Neither says both, so a lesson may lack
one of the two.

Legend: B lessons, N sentences of a span, K sentences to choose from, L kinds of places.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from policies.choosing.agent import ChoosingAgent
from policies.choosing.bank import Near
from policies.choosing.heads import END, FRONT, MIDDLE, REPLACE
from rewriting.data.fits import fit_groups
from rewriting.exchange import Exchange
from rewriting.loop import EditState, spans
from rewriting.sentences import split_sentences

USUAL_COSINE = 0.6
"""Of a post with those that the bank finds for it; the sentences of a lesson were not looked up."""
FEW_CHOICES = 6
"""Sentences that are read where only a position is learnt: most of the time goes into reading."""
STATEMENT, QUESTION = (FRONT, MIDDLE, REPLACE), (MIDDLE, END)
"""The kinds of places where a sentence is at home."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A state, and what to learn in it: a position, or which of some sentences fit."""

    state: EditState
    position: int | None = None
    sentences: tuple[str, ...] = ()
    fits: tuple[bool, ...] = ()

    @property
    def size(self) -> int:
        return len(self.state.exchange.seeker_post) + sum(map(len, self.sentences))


def fitting_lessons(
    part: str, replies: Sequence[str], *, span_length: int, seed: int
) -> Iterator[Lesson]:
    """A lesson for each post of the fits for which something fits and something does not."""
    chooser = random.Random(seed)
    for group in fit_groups(part):
        for place, post in enumerate(group["posts"]):
            rows = [row for row in group["sentences"] if row["fits"][place] is not None]
            fits = tuple(bool(row["fits"][place]) for row in rows)
            if any(fits) and not all(fits):
                reply = chooser.choice(replies)
                texts = split_sentences(reply).texts
                span = chooser.choice(spans(len(texts), span_length))
                state = EditState(Exchange(post, reply), texts[span.start : span.stop], span.start)
                yield Lesson(state, None, tuple(row["text"] for row in rows), fits)


def position_lessons(states: Iterable[tuple[EditState, int]]) -> list[Lesson]:
    """A lesson for each state with the position that somebody edited there; keep among them."""
    return [Lesson(state, position) for state, position in states]


def lesson_loss(agent: ChoosingAgent, lessons: Sequence[Lesson]) -> tuple[Tensor, float]:
    """The sum of the losses of some lessons, and their number."""
    agent.read_ahead((lesson.state, sentences_of(agent, lesson)) for lesson in lessons)
    losses = [_loss(agent, lesson) for lesson in lessons]
    return torch.stack(losses).sum(), float(len(losses))


def sentences_of(agent: ChoosingAgent, lesson: Lesson) -> Sequence[str]:
    """What is read for a lesson, the reply aside."""
    if lesson.position is None:
        return lesson.sentences
    return [agent.bank.sentences[one.number] for one in _few(agent, lesson.state)]


def _loss(agent: ChoosingAgent, lesson: Lesson) -> Tensor:
    state = lesson.state
    if lesson.position is not None:
        cosines = [one.cosine for one in _few(agent, state)]
        logits_P, _ = agent.scores_of(state, sentences_of(agent, lesson), cosines)
        return -logits_P.log_softmax(0)[lesson.position]
    _, scores_KL = agent.scores_of(state, lesson.sentences, [USUAL_COSINE] * len(lesson.sentences))
    losses = []
    for kinds, asks in ((STATEMENT, False), (QUESTION, True)):
        own = [row for row, text in enumerate(lesson.sentences) if is_question(text) == asks]
        right = [row for row in own if lesson.fits[row]]
        if right:
            # Against everything that does not fit, and what is at home at other places.
            rivals = [row for row in range(len(lesson.sentences)) if row not in right]
            log_probs_KL = scores_KL[[*right, *rivals]].log_softmax(0)
            losses.append(-log_probs_KL[: len(right)].mean(0)[list(kinds)].mean())
    return torch.stack(losses).mean()


def _few(agent: ChoosingAgent, state: EditState) -> list[Near]:
    """Some sentences to learn a position with, welcome or not: without any, only keep could be."""
    (near,) = agent.bank.nearest([state.exchange.seeker_post], FEW_CHOICES)
    return near


def is_question(sentence: str) -> bool:
    return sentence.rstrip().endswith("?")
