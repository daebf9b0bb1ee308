"""Stock sentences: kind words that fit everybody, the lists of them, and how to tell one.

The rule is about words alone. It asks no reward and no model, so that an audit of a reward does not
rest on another reward.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rewriting.errors import UserError

STOCK: Final = Path(__file__).parent / "stock.txt"
NONSENSE: Final = Path(__file__).parent / "nonsense.txt"
MIN_RATIO: Final = 85
SHORT: Final = 5  # words

# Words that say nothing of what happened to whom. Without their apostrophes, as below.
FUNCTION_WORDS: Final = """
    a about again all also am an and any anyone anything are as at be been being both but by can
    cant could couldnt did didnt do does doesnt dont even ever every for from had has hasnt have
    havent he her here hers him his how i id if ill im in into is isnt it its ive just like may me
    might more most much must my no not of off oh on one or our out over own quite really she should
    so some such than that thats the their them then there these they thing things this those
    through to too truly up us very was way we well were what whats when where which while who why
    will with wont would yeah yes you youd youll your youre yours youve
"""
# Words of which kind sentences for everybody are made.
STOCK_WORDS: Final = """
    bad better care feel feeling feelings feels felt get glad go going hang happen happened
    happening hard hear heard help helps hope hopefully hug hugs hurt hurts know listen love make
    makes need okay ok rough sad same see situation sorry sound sounds stay strong struggling suck
    sucks sure talk talking tell think time tough understand understandable want wish wishing wrong
"""
SAYING_NOTHING: Final = frozenset(f"{FUNCTION_WORDS} {STOCK_WORDS}".split())


def read_sentences(path: str | Path) -> list[str]:
    """The sentences of a list, one a line; blank lines and lines that start with # are left out."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UserError(f"cannot read the stock sentences of {path}: {reason}.") from error
    written = [line.strip() for line in lines]
    sentences = [line for line in written if line and not line.startswith("#")]
    if not sentences:
        raise UserError(f"{path} holds no sentence. Write one a line; lines with # are comments.")
    return list(dict.fromkeys(sentences))


def is_stock(sentence: str, known: Iterable[str]) -> bool:
    """Whether a sentence would fit everybody: in doubt, no.

    It is stock if it has five words or fewer, all of them function words or stock words; or if it
    resembles a known stock sentence, adds nothing but such words, and is at most twice as long. It
    resembles one where rapidfuzz's token_set_ratio is 85 or more, in lower case and without
    punctuation. That ratio alone would be too generous: it is 100 wherever one sentence holds all
    the words of the other, as "I'm sorry that Rex died." holds those of "I'm sorry.".
    """
    from rapidfuzz.fuzz import token_set_ratio

    own = plain_words(sentence)
    telling = set(own) - SAYING_NOTHING
    if own and len(own) <= SHORT and not telling:
        return True
    for other in map(plain_words, known):
        if len(own) > 2 * len(other) or not telling <= set(other):
            continue
        if token_set_ratio(" ".join(own), " ".join(other)) >= MIN_RATIO:
            return True
    return False


def plain_words(text: str) -> list[str]:
    """The words in lower case: without apostrophes ("im"), other punctuation parts them."""
    return re.findall(r"\w+", re.sub(r"['’`´]", "", text.lower()))
