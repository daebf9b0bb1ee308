"""What a sentence takes for granted though nobody said it: "How does your wife feel?" where the
post tells of no wife.

    invented("How does your wife feel?", "My dog died.")     # ["your wife"]

Two things are looked for: people and animals that somebody has ("your wife", "his boss"), by the
groups of `invented.toml`, and names. Each is fine where the post or the reply has it, in any word
of its group. A sentence that asks whether there is somebody ("Is there a sister you could ring?")
takes nothing for granted. What else may be made up, feelings, events and mixed-up facts, is left to
the sense model, which reads post and sentence together.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).parent / "invented.toml"
OWNED: Final = re.compile(
    r"\b(?:your|his|her|their)\s+(?:(?P<alone>[a-zé]+)\b)(?:\s+(?P<described>[a-zé]+)\b)?",
    re.IGNORECASE,
)
WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
NAME: Final = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}\b")
NO_NAMES: Final = re.compile(
    "god|lord|christ|christmas|easter|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february"
    "|march|april|may|june|july|august|september|october|november|december|internet|facebook"
    "|instagram|google|whatsapp|english"
)


def invented(sentence: str, told: str) -> list[str]:
    """The words of a sentence that take for granted what is not in `told`, post and reply."""
    known = _words(told)
    found = [
        sentence[match.start() : match.end(place)]
        for match in OWNED.finditer(sentence)
        for place in ("alone", "described")
        if (group := groups().get((match[place] or "").lower()))
        and not _mentions(group, known, told)
    ]
    found += [
        match[0]
        for match in NAME.finditer(sentence)
        if (name := match[0].lower().removesuffix("s")) not in known
        and match[0].lower() not in known
        and not NO_NAMES.fullmatch(name)
    ]
    return found


def _words(text: str) -> frozenset[str]:
    return frozenset(
        part
        for word in WORD.findall(text.lower())
        for part in (word, re.split("['’]", word)[0], word.removesuffix("s"))
    )


def _mentions(group: frozenset[str], known: frozenset[str], told: str) -> bool:
    """Whether a text has one word of a group, or one of its turns of speech."""
    return bool(group & known) or any(" " in hint and hint in told.lower() for hint in group)


@cache
def groups() -> dict[str, frozenset[str]]:
    """Word → all words that tell of the same person; one word may stand in several groups."""
    table = tomllib.loads(FILE.read_text(encoding="utf-8"))["group"]
    found: dict[str, frozenset[str]] = {}
    for group in table:
        told = frozenset(group["words"]) | frozenset(group["hints"])
        for word in group["words"]:
            found[word] = found.get(word, frozenset()) | told
    return found
