"""What the gate says of a text: how grave it is, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

Level = Literal["clear", "possible", "crisis"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
"""From least to most grave."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """clear, possible or crisis, and the reasons: kind and words, as `explicit: "kill myself"`."""

    verdict: Level
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.verdict not in LEVELS:
            raise ValueError(f"a verdict is one of {', '.join(LEVELS)}, not {self.verdict!r}")

    @property
    def clear(self) -> bool:
        return self.verdict == "clear"

    def row(self) -> dict[str, Any]:
        return {"verdict": self.verdict, "reasons": list(self.reasons)}


CLEAR: Final = Verdict("clear")


def gravest(*verdicts: Verdict) -> Verdict:
    """The most grave of several verdicts, with the reasons of all, each once."""
    level: Level = max((one.verdict for one in verdicts), key=LEVELS.index, default=LEVELS[0])
    reasons = dict.fromkeys(reason for one in verdicts for reason in one.reasons)
    return Verdict(level, tuple(reasons))
