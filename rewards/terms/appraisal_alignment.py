"""`appraisal_alignment`: how much of what the seeker appraised the response meets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rewards.option_kinds import SHARE
from rewards.protocol import texts

if TYPE_CHECKING:
    from rewards.appraisals.alignment.reading import Reading

ADVICE_WEIGHT = 0.5  # an answer to a worry, but not yet understanding


class AppraisalAlignment:
    """The share of the seeker's own appraisals that some sentence of the response meets, 0 to 1.

    ALOE (arXiv 2405.00948) reads empathy as alignment: does the answer take up how this person
    sees the situation: what hurt, whose doing it was, what is in doubt? Each sentence of the
    post weighs its probability to appraise at all; it counts as met as far as the best sentence
    of the response does (rewards/appraisals/alignment/model.py). Advice counts `advice_weight`: an
    answer to a worry, but not yet understanding. Sentences that fit everybody meet little, and
    kind words at another person's post less than in place.

    Not to be used alone: a copy of the post meets nearly all of it, and "it was your fault" meets
    "it was my fault" as well as its denial does (docs/results/appraisals.md).

    reader: reads posts and replies; by default with the shipped models.

    In: completions, seeker_post. Out: 0 to 1; 0 for a blank post or response.
    """

    def __init__(
        self,
        reader: AlignmentReader | None = None,
        *,
        advice_weight: float = ADVICE_WEIGHT,
        name: str = "appraisal_alignment",
    ) -> None:
        SHARE.check("advice_weight", advice_weight)
        self.reader = reader or AlignmentReader.load()
        self.advice_weight = advice_weight
        self.__name__ = name

    def __call__(
        self, *, completions: Sequence[Any], seeker_post: Sequence[str], **_: Any
    ) -> list[float]:
        from rewards.appraisals.alignment.reading import met_share

        pairs = list(zip(seeker_post, texts(completions), strict=True))
        different = list(dict.fromkeys(pairs))
        readings = self.reader([post for post, _ in different], [reply for _, reply in different])
        known = {
            pair: met_share(reading, advice_weight=self.advice_weight)
            for pair, reading in zip(different, readings, strict=True)
        }
        return [known[pair] for pair in pairs]


class AlignmentReader:
    """The appraiser and the alignment model together; they share a frozen encoder.

    batch_size: how many sentences that encoder reads at once. More than one is faster; then a call
    forgets what earlier ones have read, so that its numbers depend on its own rows alone.
    """

    def __init__(self, appraiser: Any, alignment: Any, *, batch_size: int = 1) -> None:
        self.appraiser = appraiser
        self.alignment = alignment
        self.batch_size = batch_size
        both = (getattr(part, "states", None) for part in (appraiser, alignment))
        self.encoders = list(dict.fromkeys(states for states in both if states is not None))
        for states in self.encoders:
            states.batch_size = batch_size

    @classmethod
    def load(
        cls, appraisals: str = "", alignment: str = "", *, batch_size: int = 1
    ) -> AlignmentReader:
        """Both by name: a folder that train.py wrote, or a model; the shipped ones by default."""
        from rewards.appraisals.alignment.model import load_alignment
        from rewards.appraisals.appraiser import load_appraiser

        appraiser = load_appraiser(appraisals)
        states = getattr(appraiser, "states", None)
        return cls(appraiser, load_alignment(alignment, states=states), batch_size=batch_size)

    def __call__(self, posts: Sequence[str], replies: Sequence[str]) -> list[Reading]:
        from rewards.appraisals.alignment.reading import read

        for states in self.encoders if self.batch_size > 1 else ():
            states.forget()
        return read(self.alignment, self.appraiser, posts, replies)
