"""Words of a text in any script, for terms that count them."""

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
