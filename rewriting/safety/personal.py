"""Personal data in a text: mail addresses, telephone numbers, handles and links.

Left out: names of people and places. Finding them needs a model, and one that misses some is worse
than a rule that everybody knows to be narrow.
"""

from __future__ import annotations

import re

# Every pattern walks a text in one pass: what repeats is bounded, or ends where the next piece
# starts. The look-behinds keep a search from starting again inside a word it has already refused.
MAIL = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}(?:\s?[\[(]\s?at\s?[\])]\s?|@)"
    r"[\w-]{1,63}(?:(?:\.|\s?[\[(]\s?dot\s?[\])]\s?)[\w-]{1,63}){1,8}"
    r"|\b[\w.+-]{1,64} at [\w-]{1,63} dot (?:com|org|net|edu|co|de|fr|uk|io|me)\b",
    re.IGNORECASE,
)
# A bare domain needs an ending that is no word, or a path: "Call me.In the end" is no link.
PLAIN_ENDINGS = "com|org|net|edu|gov|info|biz|io|gg|uk|eu|tv|app|dev"
ENDINGS = PLAIN_ENDINGS + "|me|co|us|ca|au|de|fr|in|ly|be|chat"
REST = r"[^\s<>\"')\]]*[^\s<>\"')\].,;:!?]"  # of a link, without the full stop of the sentence
LINK = re.compile(
    rf"\b(?:[a-z][a-z0-9+]{{1,9}}://|www\.){REST}"
    r"|(?<![\w@.-])(?:[a-z0-9-]{1,63}\.){1,4}"
    rf"(?:(?:{ENDINGS})/(?:{REST})?|(?:{PLAIN_ENDINGS})\b(?![\w-]))",
    re.IGNORECASE,
)
PHONE = re.compile(
    r"(?<![\w+])(?:"
    r"\+\d{1,3}(?:[ .()/-]{0,2}\d){6,13}"  # +44 20 7946 0000
    r"|\(?\d{3}\)?[ .-]{0,2}\d{3}[ .-]\d{4}"  # (555) 010-0000
    r"|0\d{1,4}[ ./-]?\d{3,4}[ ./-]?\d{3,4}"  # 020 7946 0000
    r"|\d{3}-\d{4}"
    r"|\d{9,15}"
    r")(?![\w-])"
)
HANDLE = re.compile(
    r"(?<![\w@./])@[A-Za-z_][\w.]{0,62}\w|(?<![\w/])/?u/[\w-]{2,32}|(?<![\w#])[\w.]{2,32}#\d{4}\b"
)
SCRUBBED: tuple[tuple[re.Pattern[str], str], ...] = (
    (MAIL, "[mail]"),
    (LINK, "[link]"),
    (PHONE, "[phone]"),
    (HANDLE, "[handle]"),
)


def scrub(text: str) -> str:
    """The text with [mail], [link], [phone] and [handle] in the place of such things."""
    for pattern, word in SCRUBBED:
        text = pattern.sub(word, text)
    return text
