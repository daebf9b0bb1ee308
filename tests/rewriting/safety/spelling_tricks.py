"""Random spelling tricks, as people use them to get past a filter."""

import random
from collections.abc import Callable

LEET = {
    "a": "4@", "b": "8", "e": "3", "g": "9", "i": "1!", "l": "1|", "o": "0", "s": "5$", "t": "7+",
}  # fmt: skip
HOMOGLYPHS = {
    "a": "аα", "c": "с", "d": "ԁ", "e": "еє", "h": "һ", "i": "іι", "k": "кκ", "l": "ӏ", "m": "м",
    "n": "ո", "o": "оο", "p": "рρ", "s": "ѕ", "t": "т", "u": "υ", "v": "ν", "w": "ԝ", "x": "х",
    "y": "у",
}  # fmt: skip
ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
MARKS = "\u0301\u0308\u0336\u0327"
KEYS = {
    "a": "sq", "c": "xv", "d": "sf", "e": "wr", "h": "gj", "i": "uo", "k": "jl", "l": "k", "m": "n",
    "n": "mb", "o": "ip", "r": "et", "s": "ad", "t": "ry", "u": "yi", "v": "cb", "w": "qe",
    "y": "tu",
}  # fmt: skip


def some(text: str, table: dict[str, str], share: float, dice: random.Random) -> str:
    """Letters replaced by what the table offers, each with a chance."""
    swapped = (dice.choice(table[c]) if c in table and dice.random() < share else c for c in text)
    return "".join(swapped)


def leetspeak(text: str, dice: random.Random) -> str:
    return some(text, LEET, 0.5, dice)


def homoglyphs(text: str, dice: random.Random) -> str:
    return some(text, HOMOGLYPHS, 0.6, dice)


def spaced(text: str, dice: random.Random) -> str:
    """One word, or all of them, with spaces between the letters."""
    words = text.split(" ")
    if dice.random() < 0.5:
        return "  ".join(" ".join(word) for word in words)
    chosen = longest(words)
    words[chosen] = " ".join(words[chosen])
    return " ".join(words)


def punctuated(text: str, dice: random.Random) -> str:
    mark = dice.choice(".-_*~,/'|")
    words = text.split(" ")
    chosen = longest(words)
    words[chosen] = mark.join(words[chosen])
    return " ".join(words)


def broken(text: str, dice: random.Random) -> str:
    """A dot, a hyphen or a space inside the longest word."""
    words = text.split(" ")
    chosen = longest(words)
    place = dice.randrange(1, len(words[chosen]))
    words[chosen] = words[chosen][:place] + dice.choice(".- ") + words[chosen][place:]
    return " ".join(words)


def glued(text: str, dice: random.Random) -> str:
    return text.replace(" ", dice.choice(["", "_", "-", "."]))


def zero_width(text: str, dice: random.Random) -> str:
    return "".join(c + (dice.choice(ZERO_WIDTH) if dice.random() < 0.4 else "") for c in text)


def accented(text: str, dice: random.Random) -> str:
    return "".join(c + (dice.choice(MARKS) if c.isalpha() else "") for c in text)


def repeated(text: str, dice: random.Random) -> str:
    return "".join(c * dice.choice([1, 1, 1, 2, 4]) if c.isalpha() else c for c in text)


def shouted(text: str, dice: random.Random) -> str:
    return "".join(c.upper() if dice.random() < 0.6 else c for c in text)


def wide(text: str, dice: random.Random) -> str:
    """Full-width or mathematical letters."""
    first = dice.choice([0xFF41, 0x1D41A, 0x1D5EE, 0x24D0])
    return "".join(chr(first + ord(c) - 97) if "a" <= c <= "z" else c for c in text)


def starred(text: str, dice: random.Random) -> str:
    """A star for a letter inside the longest word."""
    words = text.split(" ")
    chosen = longest(words)
    place = dice.randrange(1, len(words[chosen]) - 1)
    words[chosen] = words[chosen][:place] + "*" + words[chosen][place + 1 :]
    return " ".join(words)


def mistyped(text: str, dice: random.Random) -> str:
    """One letter of the longest word missing, doubled, swapped with the next, or the key beside."""
    words = text.split(" ")
    chosen = longest(words)
    word = words[chosen]
    place = dice.randrange(len(word) - 1)
    change = dice.choice(["missing", "doubled", "swapped", "beside"])
    middle = {
        "missing": "",
        "doubled": word[place] * 2,
        "swapped": word[place + 1] + word[place],
        "beside": dice.choice(KEYS.get(word[place], word[place])),
    }[change]
    words[chosen] = word[:place] + middle + word[place + (2 if change == "swapped" else 1) :]
    return " ".join(words)


def longest(words: list[str]) -> int:
    return max(range(len(words)), key=lambda place: len(words[place]))


Trick = Callable[[str, random.Random], str]
SPELLING: tuple[Trick, ...] = (mistyped, repeated, leetspeak, starred)
SHAPE: tuple[Trick, ...] = (spaced, punctuated, broken, glued)
LOOKS: tuple[Trick, ...] = (homoglyphs, zero_width, accented, shouted, wide)


def mutated(phrase: str, dice: random.Random) -> str:
    """A phrase after one to three tricks: of its spelling, its shape, its looks."""
    kinds = dice.sample([SPELLING, SHAPE, LOOKS], dice.choice([1, 1, 2, 3]))
    for tricks in (SPELLING, SHAPE, LOOKS):  # the order in which they can still be read
        if tricks in kinds:
            phrase = dice.choice(tricks)(phrase, dice)
    return phrase
