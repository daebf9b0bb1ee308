"""An identifier that reads every sentence together with the post: `joint`.

    identifier = JointIdentifier.load("rewards/shipped/sense")
    (assessment,) = identifier.assess(["Rex died today."], ["I miss him with you. Why?"])

`grounded` compares the vector of a sentence with that of the post, and doubts a general sentence
such as "It must be exhausting to hold all of that together on your own." wherever it stands. Here
the sentence attends to the post (rewards/reading/sense_model.py): whether it is true of this person
counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from rewards.identifiers.assessment import Assessment
from rewards.identifiers.by_sentence import Bars, Shown, assessment_of
from rewards.reading.sense_model import BARS, SETTINGS, SenseModel, read_settings
from rewriting.errors import UserError
from rewriting.runtime.files.model_files import one_line_where_unfit
from rewriting.runtime.models.hub import found_folder
from rewriting.sentences import split_sentences


class JointIdentifier:
    """The identifier `joint`: reads every sentence together with its post; the best one counts."""

    def __init__(self, model: SenseModel, bars: Bars, *, name: str = "joint") -> None:
        self.model = model
        self.bars = bars
        self.name = name

    @classmethod
    def load(
        cls, folder: Path | str, *, model: SenseModel | None = None, batch_size: int = 1
    ) -> Self:
        """The identifier that `train.py sense` has written, by folder or hub id."""
        path = found_folder(folder, SETTINGS)
        model = model or SenseModel.load(path, batch_size=batch_size)
        settings = read_settings(path)
        if BARS not in settings:
            raise UserError(f"{path} holds a sense model that no levels were fitted for.")
        with one_line_where_unfit(path / SETTINGS):
            some, strong = map(tuple, settings[BARS])
        return cls(model, (some, strong))

    def assess(
        self,
        seeker_posts: Sequence[str],
        response_posts: Sequence[str],
        *,
        rationales: bool = True,
    ) -> list[Assessment]:
        """Assess pairs of posts. A response without a word shows nothing."""
        return [
            assessment_of(shown, self.bars, rationales=rationales)
            for shown in self.readings(seeker_posts, response_posts)
        ]

    def readings(self, seeker_posts: Sequence[str], response_posts: Sequence[str]) -> list[Shown]:
        """What each sentence of each response shows under its post."""
        rows = [split_sentences(response).texts for response in response_posts]
        pairs = [
            (post, " ".join(sentence.split()))
            for post, sentences in zip(seeker_posts, rows, strict=True)
            for sentence in sentences
        ]
        found = iter(self.model.read(pairs))
        shown: list[Shown] = []
        for sentences in rows:
            own = [next(found) for _ in sentences]
            shown.append(
                (sentences, np.array([list(zip(o.some, o.strong, strict=True)) for o in own]), True)
            )
        return shown
