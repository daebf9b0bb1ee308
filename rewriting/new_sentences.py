"""Which sentences of a rewritten response are new: what terms about new sentences look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rewriting.data.split import normalised
from rewriting.sentences import PAUSES, STOPS, split_sentences


def new_flags(sentences: Sequence[str], response_post: str, sentence: str | None) -> list[bool]:
    """For each sentence of a completion, whether it is new.

    New is what the column `sentence` says and the completion still holds; without that column,
    the sentences that the original response does not have.
    """
    if sentence and sentence.strip():
        return _taken(sentences, Counter(map(_key, split_sentences(sentence).texts)))
    old = _taken(sentences, Counter(map(_key, split_sentences(response_post).texts)))
    return [not was_there for was_there in old]


def new_and_kept(
    completion: str, response_post: str, sentence: str | None = None
) -> tuple[list[str], list[str]]:
    """The new sentences of a completion, and the others, each in their order."""
    texts = split_sentences(completion).texts
    flags = new_flags(texts, response_post, sentence)
    new = [text for text, is_new in zip(texts, flags, strict=True) if is_new]
    return new, [text for text, is_new in zip(texts, flags, strict=True) if not is_new]


def new_sentences(completion: str, response_post: str, sentence: str | None = None) -> list[str]:
    """The new sentences of a completion, in their order."""
    return new_and_kept(completion, response_post, sentence)[0]


def _taken(sentences: Sequence[str], keys: Counter[str]) -> list[bool]:
    """Which sentences are among the keys, each key as often as it is counted."""
    left = Counter(keys)
    taken = []
    for text in sentences:
        taken.append(left[_key(text)] > 0)
        left[_key(text)] -= taken[-1]
    return taken


def _key(sentence: str) -> str:
    """A sentence without what joining may change: case, white space, the last full stop."""
    return normalised(sentence).rstrip(STOPS + PAUSES + " ")
