"""The words that spelling tricks are read as: those of `spelling.toml`, and of the phrases."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).parent / "spelling.toml"
PHRASES = Path(__file__).parent / "phrases.toml"
SPOKEN = ("explicit", "coded", "method_seeking")  # kinds whose words are read through tricks
STEM = re.compile(r"[a-z]*\\[a-z][*+]?")  # what is no whole word in a phrase: suicid\w*
PLURAL = re.compile(r"\b([a-z]+)([a-z])\?")
FAR = 7  # a word of a phrase with so many letters may have one of them wrong
REPEATED = re.compile(r"(.)\1+")


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The words that tricks are read as, by themselves and with every letter only once in a row."""

    targets: dict[str, int]
    """Word → how many letters may differ."""
    squeezed: dict[str, str]
    glue: tuple[str, ...]
    typos: dict[str, str]
    real: frozenset[str]
    ordinary: frozenset[str]
    """Words that are not taken apart, nor for a long word of the phrases with a slip."""
    explicit: tuple[str, ...]
    """Whole phrases, for what has lost its spaces."""
    common: frozenset[str]


@cache
def lexicon(file: Path = FILE) -> Lexicon:
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    targets = dict.fromkeys(table["near_twice"].split(), 2)
    targets |= dict.fromkeys(table["near_once"].split(), 1)
    pieces = sorted({*targets, *table["glue"].split()}, key=len, reverse=True)
    return Lexicon(
        targets,
        {squeeze(word): word for word in (*table["glue"].split(), *targets)},
        tuple(pieces),
        table["typos"],
        frozenset(table["real"].split()),
        frozenset(table["ordinary"].split()),
        tuple(table["explicit"]),
        frozenset(table["common"].split()),
    )


def squeeze(word: str) -> str:
    """A word with no letter twice in a row."""
    return REPEATED.sub(r"\1", word)


@cache
def phrase_words() -> dict[str, str]:
    """The whole words of the phrases: with no letter twice in a row → as it is spelt."""
    table = tomllib.loads(PHRASES.read_text(encoding="utf-8"))
    texts = [phrase for kind in SPOKEN for phrase in table[kind]["phrases"]]
    texts += table["words"].values()
    texts = [PLURAL.sub(r"\1 \1\2", STEM.sub(" ", text)) for text in texts]
    found = {word for text in texts for word in re.findall(r"[a-z]+", text)}
    return {squeeze(word): word for word in sorted(found) if len(word) > 1}


@cache
def far_words() -> dict[str, int]:
    """Long words of the phrases → how many letters may differ."""
    return {word: 1 for word in phrase_words().values() if len(word) >= FAR}
