"""A lent sentence in the voice of the reply it goes into: capital letters and full stops."""

from __future__ import annotations

import re
from typing import Final

from rewriting.sentences import split_sentences

LONELY_I: Final = re.compile(r"\bi(?=\b(?!\.))")
ENDS: Final = tuple(".!?…:;,)\"'”’")


def in_voice(sentence: str, reply: str) -> str:
    """The sentence as somebody would type it who types as the reply does.

    A reply whose sentences begin with capitals gets a sentence that does, with "I" for "i" and a
    full stop; one whose sentences do not gets a small letter at the start.
    """
    starts = [text.lstrip()[:1] for text in split_sentences(reply).texts]
    letters = [letter for letter in starts if letter.isalpha()]
    if not letters or not sentence:
        return sentence
    if 2 * sum(letter.isupper() for letter in letters) >= len(letters):
        sentence = LONELY_I.sub("I", sentence)
        full_stop = "" if sentence.endswith(ENDS) else "."
        return sentence[0].upper() + sentence[1:] + full_stop
    first = re.match(r"[A-Za-z']+", sentence)
    if first and (first[0] == "I" or first[0].startswith("I'")):
        return sentence
    return sentence[0].lower() + sentence[1:]
