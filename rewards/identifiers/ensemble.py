"""Several identifiers as one, which can refuse to pay where they disagree: `ensemble:NAME,NAME`.

    identifier = load_identifier("ensemble:grounded,epitome,pessimism=1")
    (assessment,) = identifier.assess(["Rex died today."], ["I miss him with you. Why?"])

A policy that is trained against one identifier finds sentences that only this identifier takes for
empathy. The mean over several identifiers is harder to deceive, and harder still where disagreement
costs: here the mean minus a multiple of the standard deviation. Coste et al., "Reward Model
Ensembles Help Mitigate Overoptimization" (arXiv 2310.02743), subtract the variance instead.

Left out: weights of the members, and models that members could share in memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median_low
from typing import Final, NamedTuple, Self

from rewards.identifiers.assessment import Assessment, Identifier, Judgement, shrunk
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS

PART_ENDS: Final = re.compile(r",(?![^{}]*\})")  # Commas in a judge's {…} separate its options.
OPTION: Final = re.compile(r"(\w+)\s*=(.*)")
Row = tuple[Assessment, ...]
"""What each member says of one pair of posts, in the order of the members."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Mean and standard deviation of the members' expected levels, for one mechanism of one row.

    The members are all there is, not a sample of more: the deviation divides by their number.
    """

    mean: float
    standard_deviation: float

    @classmethod
    def of(cls, judgements: Sequence[Judgement]) -> Self:
        """How far the members' judgements of one mechanism lie apart."""
        levels = [judgement.expected_level for judgement in judgements]
        mean = fmean(levels)
        return cls(mean, math.sqrt(fmean((level - mean) ** 2 for level in levels)))

    def kept_share(self, pessimism: float) -> float:
        """The share of the mean that is left at `pessimism` standard deviations below it."""
        if not self.mean:
            return 1.0
        return max(0.0, self.mean - pessimism * self.standard_deviation) / self.mean


class EnsembleIdentifier:
    """Assesses pairs of posts with every member and combines what they say (`combined`).

    pessimism: how many standard deviations the expected level lies below the members' mean. With 1
    and two members, the expected level is that of the more sceptical one.
    """

    def __init__(
        self, members: Sequence[Identifier], *, pessimism: float = 0.0, name: str = "ensemble"
    ) -> None:
        if len(members) < 2:
            raise UserError(f"an ensemble needs at least two members, not {len(members)}.")
        check_pessimism(pessimism)
        self.members = tuple(members)
        self.pessimism = pessimism
        self.name = name
        self._last: _Answers | None = None

    @classmethod
    def load(cls, text: str, *, batch_size: int = 1) -> Self:
        """The ensemble that a text describes, as `grounded,epitome,pessimism=1`."""
        from rewards.identifiers.named import ENSEMBLE, load_identifier

        parsed = EnsembleName.parse(text)
        members = [load_identifier(name, batch_size=batch_size) for name in parsed.members]
        return cls(members, pessimism=parsed.pessimism, name=f"{ENSEMBLE}{text}")

    def assess(
        self,
        seeker_posts: Sequence[str],
        response_posts: Sequence[str],
        *,
        rationales: bool = True,
    ) -> list[Assessment]:
        """Assess pairs of posts by what all members say of them."""
        rows = self._answers(seeker_posts, response_posts, rationales)
        return [
            Assessment({m: combined(_of(row, m), self.pessimism, rationales) for m in MECHANISMS})
            for row in rows
        ]

    def disagreement(
        self, seeker_posts: Sequence[str], response_posts: Sequence[str]
    ) -> list[Mapping[str, Disagreement]]:
        """For each pair of posts and each mechanism, how far the members are apart.

        Directly after `assess` of the same posts, no member is asked again.
        """
        rows = self._answers(seeker_posts, response_posts, rationales=False)
        return [{m: Disagreement.of(_of(row, m)) for m in MECHANISMS} for row in rows]

    def _answers(
        self, seeker_posts: Sequence[str], response_posts: Sequence[str], rationales: bool
    ) -> list[Row]:
        """What the members say of each pair; the last answers are kept and serve again."""
        pairs = list(zip(seeker_posts, response_posts, strict=True))
        last = self._last
        if last and last.pairs == pairs and (last.rationales or not rationales):
            return last.rows
        answers = [
            member.assess(seeker_posts, response_posts, rationales=rationales)
            for member in self.members
        ]
        rows: list[Row] = list(zip(*answers, strict=True))
        self._last = _Answers(pairs, rationales, rows)
        return rows


class _Answers(NamedTuple):
    """What was asked last, whether with rationales, and what the members said."""

    pairs: list[tuple[str, str]]
    rationales: bool
    rows: list[Row]


def _of(row: Row, mechanism: str) -> list[Judgement]:
    return [assessment.judgements[mechanism] for assessment in row]


def combined(
    judgements: Sequence[Judgement], pessimism: float = 0.0, rationales: bool = True
) -> Judgement:
    """One judgement of a mechanism from those of the members.

    The level called is the lower median. The probabilities are the means, shrunk to none until the
    expected level is the mean less `pessimism` standard deviations, or 0. The rationales are those
    of the first member that calls the median or more and has any: a judge never has.
    """
    by_level = zip(*(judgement.probabilities for judgement in judgements), strict=True)
    none, weak, strong = map(fmean, by_level)
    share = Disagreement.of(judgements).kept_share(pessimism)
    level = median_low(judgement.level for judgement in judgements)
    agreeing = (j.rationales for j in judgements if j.level >= level and j.rationales)
    words = next(agreeing, ()) if level and rationales else ()
    return Judgement(level, shrunk((none, weak, strong), share), words)


def check_pessimism(value: float) -> None:
    """Refuse a number of standard deviations that is negative, infinite or not a number."""
    if not 0 <= value < math.inf:
        raise UserError(f"pessimism is {value}; write a finite number from 0 on.")


@dataclass(frozen=True, slots=True)
class EnsembleName:
    """What stands after `ensemble:`, checked as far as it can be without loading a model."""

    members: tuple[str, ...]
    pessimism: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read names and options separated by commas, as `grounded,epitome,pessimism=1`."""
        parts = [part.strip() for part in PART_ENDS.split(text)]
        options = [found for part in parts if (found := OPTION.fullmatch(part))]
        members = tuple(part for part in parts if not OPTION.fullmatch(part))
        pessimism = _pessimism([(found[1], found[2].strip()) for found in options])
        _check_members(members, text)
        return cls(members, pessimism)


def _pessimism(options: Sequence[tuple[str, str]]) -> float:
    """The value of the only option that there is, 0 without it."""
    for name, _ in options:
        if name != "pessimism":
            raise UserError(f"an ensemble has no option {name!r}, only pessimism=NUMBER.")
    if len(options) > 1:
        raise UserError("an ensemble takes one pessimism=NUMBER, not several.")
    if not options:
        return 0.0
    text = options[0][1]
    try:
        value = float(text)
    except ValueError:
        raise UserError(f"pessimism is {text!r}; write a finite number from 0 on.") from None
    check_pessimism(value)
    return value


def _check_members(names: Sequence[str], text: str) -> None:
    """At least two different identifiers that can be found, none of them an ensemble."""
    from rewards.identifiers.named import ENSEMBLE

    if "" in names:
        raise UserError(f"the ensemble {text!r} has an empty part; write ensemble:NAME,NAME.")
    if len(names) < 2:
        raise UserError(f"an ensemble needs at least two members, and {text!r} has {len(names)}.")
    for name in names:
        if name.startswith(ENSEMBLE):
            raise UserError(f"an ensemble cannot hold another one ({name!r}): name its members.")
    first_names: dict[str, str] = {}
    for name in names:
        identity = _identity(name)
        if first := first_names.get(identity):
            raise UserError(f"the ensemble {text!r} holds one member twice: {first!r}, {name!r}.")
        first_names[identity] = name


def _identity(name: str) -> str:
    """What two names of one identifier have in common; raises where there is no such one."""
    from rewards.identifiers.named import JUDGE, folder_of, kind_of

    if name.startswith(JUDGE):
        from rewards.identifiers.judged import JudgeIdentifier
        from rewards.judge.named import judge_options

        return JUDGE + repr(judge_options(name.removeprefix(JUDGE), JudgeIdentifier.open))
    kind_of(name)
    return str(folder_of(name).resolve())
