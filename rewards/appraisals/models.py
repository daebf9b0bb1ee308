"""Appraisers by the name of a model: classifiers as they are, language models by prompt."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rewards.appraisals.appraiser import Appraiser
from rewards.appraisals.prompts import GapFiller, PromptAppraiser
from rewards.appraisals.units import LABELS
from rewriting.data.appraisals import Role
from rewriting.errors import UserError
from rewriting.runtime.models import named as models

TEXTS_AT_ONCE = 16


class ClassifierAppraiser:
    """A sequence classifier whose labels are the nine names, or some of them, and perhaps none.

    Spelling may differ in case and punctuation. It is not told who speaks.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.model, self.tokenizer = models.load_classifier(name, torch.float32)
        known = {"".join(filter(str.isalpha, label)).lower(): label for label in LABELS}
        self.places: list[int] = []
        for number in range(self.model.config.num_labels):
            called = "".join(filter(str.isalpha, str(self.model.config.id2label[number]))).lower()
            if called not in known:
                raise UserError(f"{name} has a label {called!r}, which is no appraisal of ALOE's.")
            self.places.append(LABELS.index(known[called]))

    @torch.no_grad()
    def probabilities(self, texts: Sequence[str], roles: Sequence[Role]) -> Tensor:
        found = torch.zeros(len(texts), len(LABELS))
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            chunk = list(texts[start : start + TEXTS_AT_ONCE])
            read = self.tokenizer(chunk, padding=True, truncation=True, return_tensors="pt")
            logits = self.model(**read.to(self.model.device)).logits.float().cpu()
            found[start : start + len(chunk), self.places] = logits.softmax(dim=-1)
        return found


def appraiser_by_name(name: str) -> Appraiser:
    """A model of a hub or a folder: a classifier as it is, a language model asked and calibrated.

    ALOE's own is Blablablab/empathy-appraisal-span.
    """
    if models.kind_of(name) == "classifier":
        return ClassifierAppraiser(name)
    appraiser = PromptAppraiser(GapFiller.load(name))
    appraiser.calibrate()
    return appraiser
