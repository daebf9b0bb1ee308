"""Reading a reply against a post: the sentences of both, what they appraise, and where they meet.

(reading,) = read(
    load_alignment(), load_appraiser(), ["It was my fault."], ["You did all you could."]
)
reading.met, reading.strengths          # how much of the post is met; pair by pair
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rewards.appraisals.alignment.model import Alignment
from rewards.appraisals.alignment.pairs import Grid, Side
from rewards.appraisals.appraiser import Appraisal, Appraiser, appraise
from rewriting.data.appraisals import APPRAISALS, NO_APPRAISAL, Role

CALLED = 0.5  # the strength above which a pair is called aligned


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reply meets of a post: the appraised sentences of both, and every pair's strength.

    strengths: [target, observer], 0 to 1, 0.5 where the model would just call the pair aligned.
    """

    target: tuple[Appraisal, ...]
    observer: tuple[Appraisal, ...]
    strengths: tuple[tuple[float, ...], ...]

    @property
    def met(self) -> float:
        """How much of what the target appraised is met, advice like everything else."""
        return met_share(self, advice_weight=1.0)


def met_share(reading: Reading, *, advice_weight: float) -> float:
    """Σ wᵢ · maxⱼ sᵢⱼ aⱼ / Σ wᵢ over the target's sentences i and the observer's j; 0 without any.

    wᵢ is the probability that i appraises at all; sᵢⱼ the strength of the pair; aⱼ the probability
    that j appraises, in which advice counts `advice_weight`.
    """
    weights = [sentence.any_appraisal for sentence in reading.target]
    counts = [
        sentence.any_appraisal - (1 - advice_weight) * sentence.probability("Advice")
        for sentence in reading.observer
    ]
    if not counts or sum(weights) <= 0:
        return 0.0
    best = [
        max(strength * count for strength, count in zip(row, counts, strict=True))
        for row in reading.strengths
    ]
    return sum(w * b for w, b in zip(weights, best, strict=True)) / sum(weights)


def met_appraisals(reading: Reading) -> dict[str, float]:
    """Of every appraisal that the target makes, the share of its sentences that are met.

    For counting, so called and not weighed: a sentence has its likeliest label, and is met where a
    pair with a sentence of the observer that appraises is called aligned.
    """
    answering = [j for j, one in enumerate(reading.observer) if one.label != NO_APPRAISAL]
    met: dict[str, list[bool]] = {}
    for sentence, row in zip(reading.target, reading.strengths, strict=True):
        if sentence.label != NO_APPRAISAL:
            own = met.setdefault(sentence.label, [])
            own.append(any(row[j] > CALLED for j in answering))
    return {label: sum(found) / len(found) for label, found in met.items()}


def read(
    model: Alignment, appraiser: Appraiser, posts: Sequence[str], replies: Sequence[str]
) -> list[Reading]:
    """Every post and its reply, sentence by sentence."""
    target_role: list[Role] = ["target"]
    observer_role: list[Role] = ["observer"]
    roles = target_role * len(posts) + observer_role * len(replies)
    found = appraise(appraiser, [*posts, *replies], roles)
    readings = []
    for target, observer in zip(found[: len(posts)], found[len(posts) :], strict=True):
        if target and observer:
            grid = Grid(_side(target), _side(observer), frozenset(), "")
            (scores,) = model.scores([grid])
            strengths = tuple(tuple(row) for row in scores.sigmoid().tolist())
        else:
            strengths = tuple(() for _ in target)
        readings.append(Reading(tuple(target), tuple(observer), strengths))
    return readings


def _side(sentences: Sequence[Appraisal]) -> Side:
    """Sentences as spans."""
    texts = tuple(sentence.text for sentence in sentences)
    return Side(texts, tuple(_shares(sentence.probabilities) for sentence in sentences), texts)


def _shares(probabilities: Sequence[float]) -> tuple[float, ...]:
    """The nine labels' shares of one another, whether or not it is an appraisal at all."""
    nine = probabilities[: len(APPRAISALS)]
    return tuple(value / max(sum(nine), 1e-6) for value in nine)


def with_called_labels(grids: Sequence[Grid], appraiser: Appraiser) -> list[Grid]:
    """The grids with what an appraiser says of their spans in place of what annotators said."""
    roles: tuple[Role, Role] = ("target", "observer")
    keys = list(
        dict.fromkeys(
            (text, role)
            for grid in grids
            for role, side in zip(roles, (grid.target, grid.observer), strict=True)
            for text in side.spans
        )
    )
    found = appraiser.probabilities([text for text, _ in keys], [role for _, role in keys])
    known = dict(zip(keys, (_shares(row) for row in found.tolist()), strict=True))

    def called(side: Side, role: Role) -> Side:
        return replace(side, labels=tuple(known[text, role] for text in side.spans))

    return [
        replace(
            grid, target=called(grid.target, "target"), observer=called(grid.observer, "observer")
        )
        for grid in grids
    ]
