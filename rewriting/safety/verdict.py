"""What the gate says of a text: how grave it is, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

Level = Literal["clear", "unchecked", "possible", "crisis"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
"""From least to most grave. `unchecked`: not in English, so nothing was found and nothing is
known. Whatever is not clear is held back from automatic rewriting."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One of the levels, and the reasons: kind and words, as `explicit: "kill myself"`."""

    verdict: Level
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.verdict not in LEVELS:
            raise ValueError(f"a verdict is one of {', '.join(LEVELS)}, not {self.verdict!r}")

    @property
    def clear(self) -> bool:
        return self.verdict == "clear"

    @property
    def alarming(self) -> bool:
        """Whether something was found: possible or crisis. An unchecked text is not clear either,
        but nothing in it was found."""
        return LEVELS.index(self.verdict) >= LEVELS.index("possible")

    def row(self) -> dict[str, Any]:
        return {"verdict": self.verdict, "reasons": list(self.reasons)}


CLEAR: Final = Verdict("clear")


def gravest(*verdicts: Verdict) -> Verdict:
    """The most grave of several verdicts, with the reasons of all, each once."""
    level: Level = max((one.verdict for one in verdicts), key=LEVELS.index, default=LEVELS[0])
    reasons = dict.fromkeys(reason for one in verdicts for reason in one.reasons)
    return Verdict(level, tuple(reasons))
