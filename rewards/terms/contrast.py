"""`contrast`: how much likelier the new sentence is after this post than after other posts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rewards.option_kinds import FROM_0, NUMBER
from rewards.protocol import texts
from rewards.reading.echo import echoed
from rewards.reading.reader import Reading, SentenceReader
from rewriting.errors import UserError
from rewriting.new_sentences import new_and_kept
from rewriting.runtime.language_models.backbone import Backbone

DECOYS = 2.0  # log-odds of stock, nonsense and insults to answers among an agent's sentences
MOST_DOUBT = 6.0  # nats
PROMPT = "Someone wrote:\n{}\n\nA kind friend answered:\n"


class Contrast:
    """Specificity by contrast, in nats: high for an answer to this post that fits no other.

    log of q(sentence | this post) over the mean of q(sentence | post) for this and K other posts,
    the pointwise term of InfoNCE (arXiv 1807.03748), whose mean is a lower bound on the mutual
    information that PARTNER rewards (arXiv 2101.07714); and the same for the rest of the reply,
    since a sentence has to belong there too. Two critics, encoders of different families, each give
    this number, and their mean is taken. Each reads the sentence once, whatever K is.

    reply: weight of the fit to the rest of the reply. It is 0 where nothing is kept.
    worth: weight of the log-probability, from the sentence alone, that it is a person's answer
    rather than a stock sentence, nonsense or an insult; 0 for a sure answer, −6 at the least.
    pessimism: how many standard deviations of the two critics' opinions are taken off: what only
    one of them believes is then not paid.
    zero: what counts as 0, which is what keeping a reply earns. It lies where a person's sentence
    for somebody else is in the mean: below it are stock sentences and nonsense, which are worse
    than saying nothing, above it what is meant for this person.
    What a sentence copies from the post or from the reply is taken off, in proportion.

    In: completions, seeker_post, response_post, optionally sentence. Out: the mean over the new
    sentences; 0 where nothing is new.
    """

    def __init__(
        self,
        reader: SentenceReader,
        *,
        reply: float = 0.5,
        worth: float = 0.7,
        pessimism: float = 0.0,
        zero: float = -2.0,
        name: str = "contrast",
    ) -> None:
        for option, value in {"reply": reply, "worth": worth, "zero": zero}.items():
            NUMBER.check(option, value)
        FROM_0.check("pessimism", pessimism)
        self.__name__ = name
        self.reader = reader
        self.reply, self.worth, self.pessimism, self.zero = reply, worth, pessimism, zero

    def __call__(
        self,
        *,
        completions: Sequence[Any],
        seeker_post: Sequence[str],
        response_post: Sequence[str],
        sentence: Sequence[str | None] | None = None,
        **_: Any,
    ) -> list[float]:
        rows = new_and_kept_of_rows(completions, response_post, sentence)
        pairs = [
            (post, text) for post, (new, _) in zip(seeker_post, rows, strict=True) for text in new
        ]
        replies = [" ".join(kept) for new, kept in rows for _ in new]
        values = iter(map(self._value, pairs, replies, self.reader.read(pairs, replies)))
        return [mean([next(values) for _ in new]) for new, _ in rows]

    def _value(self, pair: tuple[str, str], reply: str, reading: Reading) -> float:
        """What is copied is no answer: it loses its fit."""
        post, text = pair
        fit = reading.contrast + self.reply * reading.reply
        doubt = abs(reading.contrast_gap + self.reply * reading.reply_gap)
        value = fit - self.pessimism * doubt + self.worth * log_worth(reading) - self.zero
        return value - max(echoed(post, text), echoed(reply, text)) * max(value, 0.0)


class LanguageModelContrast:
    """Specificity by contrast with a language model as critic: log p(sentence | post), summed over
    the tokens of the sentence.

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


def log_worth(reading: Reading) -> float:
    """The log-probability that a sentence is an answer, where decoys are common; at least −6."""
    return max(-math.log1p(math.exp(min(DECOYS - reading.worth, 60.0))), -MOST_DOUBT)


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
    return [new for new, _ in new_and_kept_of_rows(completions, response_post, sentence)]


def new_and_kept_of_rows(
    completions: Sequence[Any],
    response_post: Sequence[str],
    sentence: Sequence[str | None] | None,
) -> list[tuple[list[str], list[str]]]:
    """The new sentences of each row, and the others."""
    rewritten = texts(completions)
    columns = sentence if sentence is not None else [None] * len(rewritten)
    return [new_and_kept(*row) for row in zip(rewritten, response_post, columns, strict=True)]


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def _bounded(log_probs: Sequence[float]) -> float:
    """The first log-probability less the log-mean of all."""
    highest = max(log_probs)
    total = math.fsum(math.exp(value - highest) for value in log_probs)
    return log_probs[0] - (highest + math.log(total / len(log_probs)))
