"""The rules of the gate: phrases in English, explicit ones in four other languages, and whether a
text is in English at all. Fast, explained, and read through spelling tricks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rewriting.safety.rules.disguise import disguised
from rewriting.safety.rules.languages import check_language
from rewriting.safety.rules.phrases import load_phrases
from rewriting.safety.rules.spelling import CLAUSE, folded, plain_words, views
from rewriting.safety.verdict import CLEAR, LEVELS, Verdict, gravest

DANGERS = Path(__file__).parent / "dangers.toml"
OTHER_LANGUAGES = Path(__file__).parent / "other_languages.toml"
MAX_REASONS = 6


@dataclass(frozen=True, slots=True)
class Ruled:
    """What the rules say: what holds whatever a reader says, and what does not where it finds the
    text benign."""

    firm: Verdict
    weak: Verdict
    hints: tuple[str, ...] = ()
    """What is nothing by itself, and is enough where the reader half thinks so too."""

    @property
    def verdict(self) -> Verdict:
        """The verdict of the rules alone, without the reader."""
        both = gravest(self.firm, self.weak)
        return Verdict(both.verdict, both.reasons[:MAX_REASONS])


def check_rules(text: str) -> Verdict:
    """The verdict of the rules alone: of the text as it stands, and as it may have been meant."""
    return ruled(text).verdict


def ruled(text: str) -> Ruled:
    """What the rules find, firm and weak apart.

    A weak phrase that somebody hid by a spelling trick is firm: news and games hide nothing.
    """
    plain = folded(text)
    open_words = plain_words(plain)
    firm, weak = [check_language(text)], [CLEAR]
    hints: dict[str, str] = {}
    for view in views(plain):
        for one in (*load_phrases().found(view), *load_phrases(DANGERS).found(view)):
            verdict = Verdict(one.kind.verdict, (f'{one.kind.reason}: "{one.words}"',))
            is_open = one.words.replace(" . ", " ") in open_words
            hidden = one.kind.verdict == "crisis" and not is_open
            if one.kind.hint:
                hints.setdefault(one.pattern, verdict.reasons[0])
            else:
                (weak if one.weak and not hidden else firm).append(verdict)
    found = {
        f'{one.kind.reason}: "{one.words}"': one.kind.verdict
        for part in (open_words, *map(plain_words, CLAUSE.split(plain)))
        for one in load_phrases(OTHER_LANGUAGES).found(part)
    }
    firm += [Verdict(level, (reason,)) for reason, level in found.items()]
    # What stands there openly is in the views above: as a phrase, or as part of a harmless one.
    if (phrase := disguised(plain)) and f" {phrase} " not in f" {open_words} ":
        verdict = Verdict("crisis", (f'explicit, in disguise: "{phrase}"',))
        is_open = phrase.replace(" ", "") in open_words.replace(" ", "")
        (weak if is_open else firm).append(verdict)
    return Ruled(_ordered(firm), _ordered(weak), tuple(hints.values()))


def _ordered(found: list[Verdict]) -> Verdict:
    """The gravest verdict, with the gravest reasons first."""
    return gravest(*sorted(found, key=lambda verdict: -LEVELS.index(verdict.verdict)))
