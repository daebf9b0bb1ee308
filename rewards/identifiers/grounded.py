"""An identifier that pays for what is said to this person: `grounded`.

    identifier = GroundedIdentifier.load("rewards/shipped/reader")
    (assessment,) = identifier.assess(["Rex died today."], ["I miss him with you. Why?"])

Each sentence of a response is read alone under the post (rewards/reading/), and a mechanism has the
level of its best sentence. So a question can raise nothing but what that sentence itself shows, a
third question adds nothing to a second, and the same kindness twice counts once. EPITOME's own
identifier reads the response as a whole and hardly the post (arXiv 2009.08441; Lee et al. 2023).

Left out: sentences that are empathic only together. A story told over five sentences counts by the
best of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from rewards.identifiers.assessment import Assessment, Judgement
from rewards.identifiers.grounding import Grounding, levels
from rewards.reading.reader import SentenceReader, read_settings
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS
from rewriting.sentences import split_sentences

if TYPE_CHECKING:
    from numpy.typing import NDArray


class GroundedIdentifier:
    """Assesses pairs of posts sentence by sentence."""

    def __init__(
        self, reader: SentenceReader, grounding: Grounding, *, name: str = "grounded"
    ) -> None:
        self.reader = reader
        self.grounding = grounding
        self.name = name

    @classmethod
    def load(cls, folder: Path | str, *, reader: SentenceReader | None = None) -> Self:
        """The identifier in a folder that `train.py reader` has written."""
        path = Path(folder).expanduser()
        settings = read_settings(path)
        if "grounding" not in settings:
            raise UserError(f"{path} holds a reader that no levels were fitted for.")
        return cls(reader or SentenceReader.load(path), Grounding.from_json(settings["grounding"]))

    def assess(
        self,
        seeker_posts: Sequence[str],
        response_posts: Sequence[str],
        *,
        rationales: bool = True,
    ) -> list[Assessment]:
        """Assess pairs of posts. A response without a word shows nothing."""
        return [
            self._assessment(*row, rationales)
            for row in self.readings(seeker_posts, response_posts)
        ]

    def readings(
        self, seeker_posts: Sequence[str], response_posts: Sequence[str]
    ) -> list[tuple[Sequence[str], NDArray[Any], bool]]:
        """For each pair: the sentences of the response, the probabilities of some and of strong
        for each of them and each mechanism, [T, M, 2], and whether the post calls for empathy."""
        rows = [split_sentences(response).texts for response in response_posts]
        pairs = [
            (post, sentence)
            for post, sentences in zip(seeker_posts, rows, strict=True)
            for sentence in sentences
        ]
        found_NM2 = self.grounding.probabilities(self.reader.read(pairs, alone=True), pairs)
        ends = np.cumsum([len(sentences) for sentences in rows])
        parts = np.split(found_NM2, ends[:-1]) if rows else []
        return list(zip(rows, parts, self._needs(seeker_posts), strict=True))

    def _needs(self, posts: Sequence[str]) -> list[bool]:
        """Whether each post calls for empathy at all."""
        readings = self.reader.read([(post, "") for post in posts], alone=True)
        return [one.need > self.grounding.need_bar for one in readings]

    def _assessment(
        self, sentences: Sequence[str], own_TM2: NDArray[Any], needed: bool, rationales: bool
    ) -> Assessment:
        judgements = {}
        for m, mechanism in enumerate(MECHANISMS):
            if not len(sentences):
                judgements[mechanism] = Judgement(0, (1.0, 0.0, 0.0))
                continue
            some_T, strong_T = own_TM2[:, m, 0], own_TM2[:, m, 1]
            best = int(np.argmax(some_T * (1 + strong_T)))
            some, strong = float(some_T[best]), float(strong_T[best])
            bars = self.grounding.some_bars[m], self.grounding.strong_bars[m]
            levels_T = levels(some_T, strong_T, *bars) * needed
            level = int(levels_T.max())
            texts = (
                tuple(sentences[t] for t in np.flatnonzero(levels_T > 0).tolist()) if level else ()
            )
            probabilities = (1 - some, some * (1 - strong), some * strong)
            judgements[mechanism] = Judgement(level, probabilities, texts if rationales else ())
        return Assessment(judgements)
