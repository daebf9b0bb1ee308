"""Reading through spelling tricks: look-alike letters, digits for letters, spaces and dots inside
words, letters that are missing, doubled or swapped.

`plain_words` is the text as it stands, in lower case and without punctuation. `tricky_words` is
what somebody may have meant who hid it: it changes words only into those of `spelling.toml`, and
never a word that is real English there. The gate looks at both. Left out: other languages, rot13
and the like, pictures of text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache, lru_cache

from rewriting.safety.rules.lexicon import far_words, lexicon, phrase_words, squeeze

# Letters of other alphabets that look like Latin ones and that Unicode does not fold.
LOOKALIKES = {
    ord(other): latin
    for latin, others in {
        "a": "аɑαæ", "b": "вьƅ", "c": "сϲ", "d": "ԁđ", "e": "еєεɛ", "g": "ɡց", "h": "һнħ",
        "i": "іιɩıɪ", "j": "ј", "k": "кκ", "l": "ӏłʟ", "m": "мᴍ", "n": "пոηи", "o": "оοσөøœ",
        "p": "рρ", "q": "ԛ", "r": "гʀя", "s": "ѕꜱſß", "t": "тτ", "u": "υцս", "v": "ѵν", "w": "шωԝ",
        "x": "хχ", "y": "уүγ", "z": "ƶᴢ",
    }.items()
    for other in others
}  # fmt: skip
APOSTROPHES = re.compile(r"['’‘`´ʼ＇]")
WORD = re.compile(r"[a-z0-9]+")
BREAK = " . "  # between the clauses of a text of plain words
CLAUSE = re.compile(r"[.!?;,:…()\"“”\n–—]+|\s-+\s")
SPOKEN_CLAUSE = re.compile(r"[.!?;,:…()\"“”–—]+(?=\s|$)|\n|\s-+\s")  # w@n7 70 d!3 stays whole
SQUARED = ((0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189), (0x1F1E6, 0x1F1FF))
LONGEST_PIECE = 14
LONGEST = 80  # what is longer than this without a space is no word
OUTSIDE = '.,;:?"()[]{}…–—-~_/\\«»“”„'
STARS = "*#%•●○_-.?"
CENSORED = re.compile(r"[a-z][*#%•●○_.?-]{1,3}[a-z]|[a-z]{2}[*#%•●○_.?-]{1,3}")
RUN = re.compile(r"(.)\1*")
NOT_LETTER = re.compile(r"[^a-z]")
CORE = re.compile(
    r"kil|suicid|myself|mself|die|dead|life|hang|overdos|unalive|wrist|harm|alive|cut|log|yet|end"
    r"|sewer|slide|live|living|leav|earth|existence|catch|sign|check|permanent|delet|instal|jump|want|wish|funer|skin|voice"
    r"|planet|subscri|purpos|tablet|hurt|burn|alive|overdos|pils|knife"
)
SUM = re.compile(r"[$€£]\d[\d,.]*k?")
"""An amount of money is no word: "$212" is not "si"."""
DIGITS = str.maketrans("013457896@$!|+€£¥(<{¡", "oieastbgbasiiteiyccci")
DIGITS_L = str.maketrans("013457896@$!|+€£¥(<{¡", "oleastbggasllteiyccci")


def folded(text: str) -> str:
    """Lower case, Latin look-alikes as Latin, no accents, nothing that has no width."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKD", "".join(map(_letter, text)).casefold())
    kept = (c for c in text if not unicodedata.combining(c) and unicodedata.category(c) != "Cf")
    return "".join(kept).casefold().translate(LOOKALIKES)


def _letter(character: str) -> str:
    """A letter in a box or a circle as that letter; everything else as it is."""
    code = ord(character)
    for first, last in SQUARED:
        if first <= code <= last:
            return chr(ord("a") + code - first)
    return character


def plain_words(text: str) -> str:
    """The words of a folded text with one space between them."""
    return " ".join(WORD.findall(APOSTROPHES.sub("", text)))


def views(text: str) -> list[str]:
    """The readings of a folded text: with its clauses apart, and as one row of words.

    With the clauses apart nothing harmless reaches over the end of a sentence; as one row, what was
    pulled apart by punctuation is found.
    """
    plain = BREAK.join(filter(None, map(plain_words, CLAUSE.split(text))))
    tricky = BREAK.join(filter(None, map(tricky_words, SPOKEN_CLAUSE.split(text))))
    return list(dict.fromkeys((plain, tricky, plain_words(text), tricky_words(text))))


def tricky_words(text: str) -> str:
    """The words of a folded text as they may have been meant."""
    chunks = APOSTROPHES.sub("", text).split()
    if all(_is_word(chunk.strip(OUTSIDE + "!")) for chunk in chunks):
        return plain_words(text)
    tokens: list[str] = []
    for chunk in chunks:
        tokens += _read(chunk) if len(chunk) <= LONGEST else WORD.findall(chunk)
    return " ".join(_joined(tokens))


@lru_cache(maxsize=20_000)
def _read(chunk: str) -> tuple[str, ...]:
    """The words of a piece of text without white space: as a trick if it is one, or as it is."""
    core = chunk.strip(OUTSIDE)
    if SUM.fullmatch(core):
        return (core,)
    if core.isalpha():
        return meant(core) or (core,)
    if CENSORED.search(core) and (word := _censored(core)):
        return (word,)
    for letters in (DIGITS, DIGITS_L):
        for whole in (core, core.rstrip("!1")):
            joined = NOT_LETTER.sub("", whole.translate(letters))
            found = meant(joined) or _as_it_is(joined)
            if found and _differs(joined, found) <= 1:  # a digit and two typos are no trick
                return found
    words = [meant(word) or (word,) for word in WORD.findall(core)]
    return tuple(word for found in words for word in found)


def _as_it_is(joined: str) -> tuple[str, ...]:
    """A word of the phrases that signs stood between, or instead of letters of: g00d, h-a-n-d."""
    return (joined,) if phrase_words().get(squeeze(joined)) == joined else ()


@lru_cache(maxsize=20_000)
def meant(token: str) -> tuple[str, ...]:
    """The words of the lexicon that a token stands for; none where it is just itself."""
    known = lexicon()
    if token in known.typos:
        return (known.typos[token],)
    if token in known.real or len(token) < 3:
        return ()
    if token in known.targets or token in known.glue:
        return (token,)
    if token in known.common:  # "too" is not "to"
        return _nearest(token, known.targets)
    if word := known.squeezed.get(squeeze(token)):
        return (word,)
    word = phrase_words().get(squeeze(token))
    if word and len(word) > 2 and _has_runs(token, word):
        # A slip may stand in the phrases itself: "klil".
        return (_nearest(token, known.targets) if word == token else ()) or (word,)
    near = _nearest(token, known.targets)
    if token in known.ordinary:
        return near
    if near and len(near[0]) > 6:  # "killong" is not "kill long"
        return near
    if len(token) > 5 and (parts := _glued(token)):
        return parts
    return near or _nearest(token, far_words())


def _differs(token: str, words: tuple[str, ...]) -> int:
    """How many letters of a token differ from a word, letters in a row counting once."""
    from rapidfuzz.distance import OSA

    return OSA.distance(squeeze(token), squeeze("".join(words)))


def _nearest(token: str, words: Mapping[str, int]) -> tuple[str, ...]:
    """The word that differs from the token in no more letters than it may."""
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    if len(token) < 4:
        return ()
    for form in (token, squeeze(token)):
        found = process.extractOne(form, words.keys(), scorer=OSA.distance, score_cutoff=2)
        if found and found[1] <= min(words[found[0]], len(form) - 3):
            return (found[0],)
    return ()


def _glued(token: str) -> tuple[str, ...]:
    """A token without spaces as words of the lexicon and of the phrases, if it is all that, with
    as few words as possible.

    Letters may be doubled, and two words share the letter with which one ends and one begins.
    """
    letters = squeeze(token)
    if not CORE.search(letters):
        return ()
    counts = [len(run[0]) for run in RUN.finditer(token)]
    pieces = _pieces_of_glue()
    ways: dict[int, tuple[str, ...]] = {0: ()}
    for end in range(1, len(letters) + 1):
        for start in range(max(0, end - LONGEST_PIECE), end):
            if not (words := pieces.get(letters[start:end])):
                continue
            word = _as_doubled(words, counts[start:end])
            shared = letters[start] if start + 1 in ways and ways[start + 1] else ""
            befores = [ways[start]] if start in ways else []
            if shared and squeeze(ways[start + 1][-1])[-1] == shared:
                befores.append(ways[start + 1])
            for before in befores:
                ways[end] = min(ways.get(end, ()), (*before, word), key=_worth)
    return ways.get(len(letters), ())


def _worth(words: tuple[str, ...]) -> tuple[float, int]:
    """Few words are better than many, and of as many those with more letters; none are worst."""
    return len(words) or 1e9, -sum(map(len, words))


def _as_doubled(words: tuple[str, ...], counts: list[int]) -> str:
    """Of words that differ in doubled letters alone, the longest whose doubled letters are there:
    "off" in "loooggoff", "of" in "endof"."""
    for word in words:
        if all(len(run[0]) <= count for run, count in zip(RUN.finditer(word), counts, strict=True)):
            return word
    return words[-1]


def _has_runs(token: str, word: str) -> bool:
    """Whether each letter that a word doubles is doubled in a token: "noses" are no "nooses"."""
    runs = zip(RUN.finditer(word), RUN.finditer(token), strict=True)
    return all(len(one[0]) <= len(other[0]) for one, other in runs)


@cache
def _pieces_of_glue() -> dict[str, tuple[str, ...]]:
    """Squeezed → the words that it may be, long ones first."""
    known, found = lexicon(), dict[str, list[str]]()
    words = {*phrase_words().values(), *known.glue, *known.common}
    for word in sorted(words, key=lambda word: (-len(word), word)):
        found.setdefault(squeeze(word), []).append(word)
    return {letters: tuple(words) for letters, words in found.items()}


def _censored(core: str) -> str | None:
    """A word of the lexicon or the phrases in which stars stand for letters: s**cide, k*ll."""
    pattern = re.compile("".join("[a-z]" if c in STARS else re.escape(c) for c in core))
    words = (*lexicon().targets, *phrase_words().values())
    return next((word for word in words if pattern.fullmatch(word)), None)


def _joined(tokens: list[str]) -> list[str]:
    """Tokens with words put together again that were pulled apart: k i l l, sui cide."""
    found: list[str] = []
    place = 0
    while place < len(tokens):
        words = _run(tokens, place) or _pieces(tokens, place)
        found += words[0] if words else (tokens[place],)
        place = words[1] if words else place + 1
    return found


def _run(tokens: list[str], place: int) -> tuple[tuple[str, ...], int] | None:
    """The words of a run of single letters, and where it ends."""
    end = place
    while end < len(tokens) and len(tokens[end]) == 1 and end - place < LONGEST:
        end += 1
    if end - place < 3:
        return None
    for letters in (DIGITS, DIGITS_L):
        joined = "".join(tokens[place:end]).translate(letters)
        if words := meant(joined) or _as_it_is(joined):
            return words, end
    return None


def _pieces(tokens: list[str], place: int) -> tuple[tuple[str, ...], int] | None:
    """The word that two to four pieces make, and where they end. Two real words make none."""
    if all(map(_is_word, tokens[place : place + 2])):
        return None
    for count in (4, 3, 2):
        pieces = tokens[place : place + count]
        whole = "".join(pieces).translate(DIGITS)
        if len(pieces) == count and 4 <= len(whole) <= 14 and not all(map(_is_word, pieces)):
            words = meant(whole) or _as_it_is(whole)
            if not whole.startswith("".join(pieces)) and _differs(whole, words) > 1:
                continue
            if len(words) == 1 and _made_of(words[0], pieces):
                return words, place + count
    return None


def _made_of(word: str, pieces: list[str]) -> bool:
    """Whether a word is more than any of its pieces, and not another word than the first one."""
    if squeeze("".join(pieces)) == squeeze(word):
        return True
    whole_first = pieces[0] in lexicon().targets and not word.startswith(pieces[0])
    return max(map(len, pieces)) < len(word) and not whole_first


@lru_cache(maxsize=20_000)
def _is_word(token: str) -> bool:
    """Whether a token is taken as it stands."""
    known = lexicon()
    if token in known.real or token in known.glue or token in known.common:
        return True
    return len(token) > 6 and token.isalpha() and not meant(token)
