"""Words of a text in any script, for terms that count them, and numbers with their noun."""

from __future__ import annotations

import re

# Thai, Lao, Myanmar, Khmer, kana and Han put no spaces between words: their characters count each.
UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003134f"
)
WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")


def words(text: str) -> list[str]:
    """What stands between white space; punctuation stays with its word."""
    return WORD.findall(text)


def counted(number: int, noun: str) -> str:
    """A number with its noun, for people: "1 process", "2 processes", "1,024 rows"."""
    if noun.endswith("y"):
        plural = noun[:-1] + "ies"
    elif noun.endswith("sis"):
        plural = noun[:-2] + "es"
    else:
        plural = noun + ("es" if noun.endswith(("s", "x", "ch")) else "s")
    return f"{number:,} {noun if number == 1 else plural}"
