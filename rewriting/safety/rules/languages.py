"""Whether a text is in English, which is all that the gate can read.

No model and no dependency: words that tell a language (`languages.toml`), and the letters of other
scripts. It errs on the side of English for short texts, names and slang, and says of anything that
is clearly something else that it is: what cannot be read must not be called clear.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

from rewriting.safety.rules.lexicon import lexicon
from rewriting.safety.rules.spelling import folded, plain_words
from rewriting.safety.verdict import CLEAR, Verdict

FILE = Path(__file__).parent / "languages.toml"
SENTENCE = re.compile(r"[.!?…\n]+")
UNCHECKED = Verdict("unchecked", ("not English: unchecked",))
LATIN = 0x250  # letters below this number are of Latin scripts
FEW_LETTERS = 6  # so many letters of another script may stand in an English text, as a name
FEW_WORDS = 6  # a text of fewer words is only foreign if its words are known to be
ENOUGH_WORDS = 8  # a text of so many words without a tenth of common English ones is not English


def check_language(text: str) -> Verdict:
    """clear for English and for what is too short to tell; unchecked for anything else."""
    return CLEAR if is_english(text) else UNCHECKED


def is_english(text: str) -> bool:
    """Whether all of a text may be English: not one sentence is clearly something else."""
    plain = folded(text)
    if other_script(plain):
        return False
    sentences = [plain_words(part).split() for part in SENTENCE.split(plain)]
    return not any(map(is_foreign, [*sentences, [word for part in sentences for word in part]]))


def other_script(plain: str) -> bool:
    """Whether a folded text has more letters of another script than a name or two.

    Look-alikes of Latin letters are Latin by now, so that a trick does not pass for Russian.
    """
    letters = [letter for letter in plain if letter.isalpha()]
    other = sum(ord(letter) >= LATIN for letter in letters)
    return other >= FEW_LETTERS or 4 * other > len(letters)


def is_foreign(words: list[str]) -> bool:
    """Whether some words in a row are of another language, by its common words or for want of
    English ones."""
    words = [word for word in words if word.isalpha()]
    known = word_lists()
    english = sum(word in known["en"] for word in words)
    others = [own for name, own in known.items() if name != "en"]
    told = max(sum(word in own for word in words) for own in others)
    if len(words) < FEW_WORDS and not english:
        # "Las Vegas" is a name; "estoy cansado" is none.
        long = any(len(word) > 3 and word in own for own in others for word in words)
        return told >= 2 or (long and len(words) >= 2) or (told == 1 and len(words) >= 4)
    if len(words) >= ENOUGH_WORDS and 10 * english < len(words):
        return True
    return told >= 2 and told > 2 * english


@cache
def word_lists() -> dict[str, frozenset[str]]:
    """Language → the words that tell it; what is common in English and elsewhere tells nothing."""
    table = tomllib.loads(FILE.read_text(encoding="utf-8"))
    lists = {name: frozenset(words.split()) for name, words in table.items()}
    read = lexicon()
    english = lists.pop("en") | read.common | read.real | set(read.targets) | set(read.glue)
    elsewhere = frozenset().union(*lists.values())
    return {"en": english - elsewhere} | {name: own - english for name, own in lists.items()}
