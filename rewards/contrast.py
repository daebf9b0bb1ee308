"""`contrast`: how much likelier the new sentence is after this post than after other posts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rewards.new_sentences import new_sentences
from rewards.protocol import texts
from rewards.reading.echo import echoed
from rewards.reading.reader import Reading, SentenceReader
from rewriting.errors import UserError
from rewriting.runtime.backbone import Backbone

MOST_WORTH = 3.0
PROMPT = "Someone wrote:\n{}\n\nA kind friend answered:\n"


class Contrast:
    """Specificity by contrast, in nats: high for an answer to this post that fits no other.

    log of q(sentence | this post) over the mean of q(sentence | post) for this and K other posts,
    the pointwise term of InfoNCE (arXiv 1807.03748), whose mean is a lower bound on the mutual
    information that PARTNER rewards (arXiv 2101.07714). q is the reader's critic, which costs one
    pass of a small encoder over the sentence, whatever K is.

    worth: how much the reader's second number counts, within ±3 nats, which says, from the
    sentence alone, how likely it is a person's answer rather than a stock sentence, nonsense or an
    insult. With 0 a sentence that fits everybody has about 0, and none more than log(K + 1).
    What a sentence copies from the post is taken off, in proportion.

    In: completions, seeker_post, response_post, optionally sentence. Out: the mean over the new
    sentences; 0 where nothing is new.
    """

    def __init__(
        self, reader: SentenceReader, *, worth: float = 1.0, name: str = "contrast"
    ) -> None:
        if isinstance(worth, bool) or not isinstance(worth, int | float):
            raise UserError(f"worth is a number, not {worth!r}.")
        self.__name__ = name
        self.reader = reader
        self.worth = worth

    def __call__(
        self,
        *,
        completions: Sequence[Any],
        seeker_post: Sequence[str],
        response_post: Sequence[str],
        sentence: Sequence[str | None] | None = None,
        **_: Any,
    ) -> list[float]:
        rows = new_of_rows(completions, response_post, sentence)
        pairs = [(post, text) for post, new in zip(seeker_post, rows, strict=True) for text in new]
        values = iter(map(self._value, pairs, self.reader.read(pairs)))
        return [mean([next(values) for _ in new]) for new in rows]

    def _value(self, pair: tuple[str, str], reading: Reading) -> float:
        """What is copied from the post is no answer to it: it loses its fit and its worth."""
        value = reading.contrast + self.worth * bounded_worth(reading)
        return value - echoed(*pair) * max(value, 0.0)


class LanguageModelContrast:
    """The same with a language model as critic: log p(sentence | post), summed over its tokens.

    posts: the other posts, K of them; their number times the sentence is what a row costs. No
    training is needed, and any causal model serves; the reader is stronger and reads a sentence
    once, so this is for models and languages that it does not know.
    """

    def __init__(
        self,
        backbone: Backbone,
        *,
        num_posts: int = 6,
        posts: Sequence[str] | None = None,
        name: str = "language_model_contrast",
    ) -> None:
        self.__name__ = name
        self.backbone = backbone
        self.posts = list(posts or sample_posts(num_posts))

    def __call__(
        self,
        *,
        completions: Sequence[Any],
        seeker_post: Sequence[str],
        response_post: Sequence[str],
        sentence: Sequence[str | None] | None = None,
        **_: Any,
    ) -> list[float]:
        rows = new_of_rows(completions, response_post, sentence)
        asked = [
            (PROMPT.format(other.strip()), text)
            for post, new in zip(seeker_post, rows, strict=True)
            for text in new
            for other in (post, *self.posts)
        ]
        scores = self.backbone.scores([prefix for prefix, _ in asked], [text for _, text in asked])
        totals = iter([score.total for score in scores])
        count = len(self.posts) + 1
        return [mean([_bounded([next(totals) for _ in range(count)]) for _ in new]) for new in rows]


def bounded_worth(reading: Reading) -> float:
    """The reader's log-odds that a sentence is an answer, within ±3: surer is not better."""
    return min(max(reading.worth, -MOST_WORTH), MOST_WORTH)


def sample_posts(count: int) -> list[str]:
    """Posts of the bundled sample, on different topics, to contrast with."""
    from rewriting.data import load_exchanges

    by_topic = {e.extra["topic"]: e.seeker_post for e in load_exchanges("sample:train")}
    if not 1 <= count <= len(by_topic):
        raise UserError(f"num_posts is 1 to {len(by_topic)}, not {count}; or give `posts`.")
    return list(by_topic.values())[:count]


def new_of_rows(
    completions: Sequence[Any],
    response_post: Sequence[str],
    sentence: Sequence[str | None] | None,
) -> list[list[str]]:
    """The new sentences of each row."""
    rewritten = texts(completions)
    columns = sentence if sentence is not None else [None] * len(rewritten)
    return [new_sentences(*row) for row in zip(rewritten, response_post, columns, strict=True)]


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def _bounded(log_probs: Sequence[float]) -> float:
    """The first log-probability less the log-mean of all."""
    highest = max(log_probs)
    total = math.fsum(math.exp(value - highest) for value in log_probs)
    return log_probs[0] - (highest + math.log(total / len(log_probs)))
