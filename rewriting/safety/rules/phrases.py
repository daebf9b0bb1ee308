"""The phrases of `phrases.toml`, looked for in a text.

Plain words and regular expressions: a person can read why a post was held back, add a phrase, and
see in the tests what that does. What needs understanding is for the learned reader beside them.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from rewriting.safety.rules.needed_words import Index, needed
from rewriting.safety.rules.spelling import BREAK
from rewriting.safety.verdict import Level

FILE = Path(__file__).parent / "phrases.toml"
START, END = r"(?<![a-z0-9])", r"(?![a-z0-9])"
GAP = r"(?: [a-z0-9]+){0,6}?"
WEAK = "~ "  # before a phrase that harmless texts hold as well
HIDDEN = "~"  # stands for what was cut out of a text: no phrase matches across it
# Whoever hurts himself right after these words, in the same clause, is invented.
FICTION = re.compile(
    r"(?<![a-z0-9])(?:(?:character|hero|heroine|villain|protagonist|detective)"
    r"|(?:in|of) (?:the|a|an|my|this|that|our|his|her|last) (?:[a-z]+ )?"
    r"(?:novel|book|chapter|film|movie|series|episode|season|scene|opera|song)"
    r"|(?:novel|book|chapter|film|movie|series|episode|season|scene|opera|song)"
    r" (?:where|about|in which))"
    r"(?: (?!(?:and|but|so|then|because|told|tells|said|says|club|store|shop) )[a-z0-9]+){0,4} ?$"
)
REAL = re.compile(  # somebody the writer knows
    r"(?<![a-z0-9])(?:my|our) (?:[a-z]+ )?(?:son|brother|sister|friend|mum|mom|mother|dad|father"
    r"|daughter|wife|husband|partner|boyfriend|girlfriend|bf|gf|ex|roommate|flatmate|cousin|uncle"
    r"|aunt|nephew|niece|gran[a-z]*|colleague|coworker|neighbou?r|student|classmate|teammate|mate"
    r"|kid|child|teen|boy|girl|parent|parents|stepson|stepdaughter|fianc[a-z]+|bestie|buddy)"
    r"(?![a-z0-9])"
)


@dataclass(frozen=True, slots=True)
class Phrase:
    """One phrase: its regular expression, and the words that a text with it has."""

    expression: str
    needs: tuple[frozenset[str], ...] = ()
    weak: bool = False
    """Whether it does not count where the reader finds the whole text benign."""

    @property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when a text needs it first: all of them at once take seconds."""
        return _pattern(self.expression)


@cache
def _pattern(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


@dataclass(frozen=True, slots=True)
class Kind:
    """Phrases that lead to the same verdict for the same reason."""

    reason: str
    verdict: Level
    phrases: tuple[Phrase, ...]
    fiction: bool = False
    """Whether a match does not count after words that tell of a story."""
    hides: bool = False
    """Whether a match is hidden from the kinds that come after."""
    hint: bool = False
    """Whether a match only makes the learned reader's lower bar count, and nothing without it."""
    index: Index = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", Index([phrase.needs for phrase in self.phrases]))

    def found(self, text: str) -> Iterator[Found]:
        """Each phrase that is found, in a text of plain words."""
        for number in self.index.possible(text):
            phrase = self.phrases[number]
            for match in phrase.pattern.finditer(text):
                if not (self.fiction and _invented(text, match)):
                    yield Found(self, match.group(), phrase.weak, phrase.expression)
                    break

    def without(self, text: str) -> str:
        """The text with all matches cut out."""
        for number in self.index.possible(text):
            text = self.phrases[number].pattern.sub(HIDDEN, text)
        return text


@dataclass(frozen=True, slots=True)
class Found:
    """A phrase in a text: its kind, the words that show it, whether it is a weak one, and its
    regular expression."""

    kind: Kind
    words: str
    weak: bool
    pattern: str


def _invented(text: str, match: re.Match[str]) -> bool:
    """Whether a match is about somebody in a story: never about a person the writer knows."""
    before = text[max(0, match.start() - 200) : match.start()].rpartition(BREAK)[2]
    return bool(FICTION.search(before)) and not REAL.search(before + match.group())


@dataclass(frozen=True, slots=True)
class Phrases:
    """All kinds, and the turns of speech that are cut out before."""

    harmless: Kind
    kinds: tuple[Kind, ...]

    def found(self, text: str) -> Iterator[Found]:
        """Every phrase that is found in a text of plain words."""
        text = self.without_harmless(text)
        for kind in self.kinds:
            yield from kind.found(text)
            text = kind.without(text) if kind.hides else text

    def without_harmless(self, text: str) -> str:
        """The text with harmless turns of speech cut out, but no part of a crisis.

        Where a phrase of a crisis lies partly outside a cut, the cut is not made: "die by suicide"
        takes nothing away from "I want to die by suicide".
        """
        for number in self.harmless.index.possible(text):
            pattern = self.harmless.phrases[number].pattern
            if not pattern.search(text):
                continue
            spans = self._crises(text)
            starts = [start for start, _ in spans]
            longest = max((end - start for start, end in spans), default=0)

            def cut(
                match: re.Match[str],
                spans: list[tuple[int, int]] = spans,
                starts: list[int] = starts,
                longest: int = longest,
            ) -> str:
                first = bisect_left(starts, match.start() - longest)
                near = spans[first : bisect_left(starts, match.end())]
                parts = (
                    end > match.start() and (start < match.start() or end > match.end())
                    for start, end in near
                )
                return match.group() if any(parts) else HIDDEN

            text = pattern.sub(cut, text)
        return text

    def _crises(self, text: str) -> list[tuple[int, int]]:
        """Where phrases of a crisis without a gap stand, from first to last."""
        return sorted(
            match.span()
            for kind in self.kinds
            if kind.verdict == "crisis"
            for number in kind.index.possible(text)
            if GAP not in kind.phrases[number].expression
            for match in kind.phrases[number].pattern.finditer(text)
        )


@cache
def load_phrases(file: Path = FILE) -> Phrases:
    """Read and compile a file of phrases."""
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    words: dict[str, str] = table["words"]
    kinds = {
        name: _kind(entry, words)
        for name, entry in table.items()
        if isinstance(entry, dict) and "phrases" in entry
    }
    return Phrases(kinds.pop("harmless", Kind("", "clear", ())), tuple(kinds.values()))


def _kind(entry: Mapping[str, Any], words: Mapping[str, str]) -> Kind:
    weak = entry.get("weak", False)
    phrases = tuple(compiled(phrase, words, _fillers(), weak=weak) for phrase in entry["phrases"])
    fiction, hides = entry.get("fiction", False), entry.get("hides", False)
    hint = entry.get("hint", False)
    verdict = entry.get("verdict", "clear")
    return Kind(entry.get("reason", ""), verdict, phrases, fiction, hides, hint)


@cache
def _fillers() -> str:
    words: str = tomllib.loads(FILE.read_text(encoding="utf-8"))["fillers"]
    return "|".join(words.split())


def compiled(
    phrase: str, words: Mapping[str, str], fillers: str = "just", *, weak: bool = False
) -> Phrase:
    """The regular expression of one phrase; the head of phrases.toml explains the language."""
    weak, phrase = weak or phrase.startswith(WEAK), phrase.removeprefix(WEAK)
    space = rf" (?:(?:{fillers}) ){{0,3}}"
    pattern, needs = "", []
    for element in elements(phrase):
        if element == "...":
            pattern += GAP
            continue
        inner = element.removeprefix("!").removesuffix("?")
        for name, alternatives in words.items():
            inner = inner.replace(f"{{{name}}}", f"(?:{alternatives})")
        whole = f"(?:{inner}){END}"
        if element.startswith("!"):
            pattern += f"(?!{space}{whole})"
        elif element.endswith("?"):
            pattern += f"(?:{space}{whole})?"
        else:
            pattern += f"{space if pattern else START}{whole}"
            needs += [found] if (found := needed(inner)) else []
    return Phrase(pattern, tuple(needs), weak)


def elements(phrase: str) -> list[str]:
    """A phrase at the white space that stands outside all brackets."""
    depth, found = 0, [""]
    for letter in phrase:
        depth += (letter in "([{") - (letter in ")]}")
        if letter.isspace() and not depth:
            found.append("")
        else:
            found[-1] += letter
    return [element for element in found if element]
