"""How likely a language model finds a reply after what stands before it, per token.

A question here is a template that ends in the reply. Its one number is the mean log-probability of
the reply's tokens. Two such questions, one with the post and one with a neutral context, give the
pointwise mutual information of post and reply (`methods.Likelihood`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

from rewards.judge.local import default_batch_size, identity
from rewards.judge.question import Numbers, Question
from rewriting.runtime.language_models.backbone import Backbone


class LikelihoodReader:
    """A causal language model that reads replies as they stand; no chat template, no adapter.

    Where post and reply do not fit the model, the context loses its beginning.
    """

    def __init__(self, backbone: Backbone, *, batch_size: int = 0) -> None:
        self.backbone = backbone
        self.batch_size = batch_size or default_batch_size(backbone)
        self.name = backbone.name
        self.identity = f"likelihood {identity(backbone)}"

    @classmethod
    def load(cls, name: str, *, batch_size: int = 0) -> Self:
        return cls(Backbone.shared(name), batch_size=batch_size)

    def answers(self, questions: Sequence[Question]) -> Iterator[tuple[int, Numbers]]:
        """The mean log-probability of each reply, the last piece of its question."""
        by_length = sorted(range(len(questions)), key=lambda i: len(questions[i].prompt))
        for start in range(0, len(by_length), self.batch_size):
            batch = by_length[start : start + self.batch_size]
            pieces = [[text for _, text in questions[place].pieces] for place in batch]
            contexts = ["".join(texts[:-1]) for texts in pieces]
            with self.backbone.role(None):
                rows = self.backbone.token_log_probs(contexts, [texts[-1] for texts in pieces])
            for place, row in zip(batch, rows, strict=True):
                yield place, (float(row.double().mean()),)
