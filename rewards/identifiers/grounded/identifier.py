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
from typing import Self

import numpy as np

from rewards.identifiers.assessment import Assessment
from rewards.identifiers.by_sentence import Shown, assessment_of
from rewards.identifiers.grounded.grounding import Grounding
from rewards.reading.reader import SETTINGS, SentenceReader, read_settings
from rewriting.errors import UserError
from rewriting.runtime.files.model_files import one_line_where_unfit
from rewriting.runtime.models.hub import found_folder
from rewriting.sentences import split_sentences


class GroundedIdentifier:
    """The identifier `grounded`: reads every sentence under its post; the best one counts."""

    def __init__(
        self, reader: SentenceReader, grounding: Grounding, *, name: str = "grounded"
    ) -> None:
        self.reader = reader
        self.grounding = grounding
        self.name = name

    @classmethod
    def load(
        cls, folder: Path | str, *, reader: SentenceReader | None = None, batch_size: int = 1
    ) -> Self:
        """The identifier that `train.py reader` has written, by folder or hub id."""
        path = found_folder(folder, SETTINGS)
        settings = read_settings(path)
        if "grounding" not in settings:
            raise UserError(f"{path} holds a reader that no levels were fitted for.")
        reader = reader or SentenceReader.load(path, batch_size=batch_size)
        with one_line_where_unfit(path / SETTINGS):
            grounding = Grounding.from_json(settings["grounding"])
        return cls(reader, grounding)

    def assess(
        self,
        seeker_posts: Sequence[str],
        response_posts: Sequence[str],
        *,
        rationales: bool = True,
    ) -> list[Assessment]:
        """Assess pairs of posts. A response without a word shows nothing."""
        bars = self.grounding.some_bars, self.grounding.strong_bars
        return [
            assessment_of(shown, bars, rationales=rationales)
            for shown in self.readings(seeker_posts, response_posts)
        ]

    def readings(self, seeker_posts: Sequence[str], response_posts: Sequence[str]) -> list[Shown]:
        """What each sentence of each response shows, and whether its post calls for empathy."""
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
