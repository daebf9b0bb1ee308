"""Mutual information: does the rewritten response belong to this seeker post, and to no other?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewards.option_kinds import SHARE
from rewards.protocol import texts
from rewriting.runtime.files.policy_files import ADAPTER
from rewriting.runtime.language_models.backbone import Backbone
from rewriting.runtime.models.hub import found_folder

SHIPPED = Path(__file__).parent.parent / "shipped" / "reverse_lm"
REVERSE_ROLE = "reverse_lm"
# Text ends in a line break before what is scored, so that the scored text starts as any line does.
FORWARD_PREFIX = "Someone wrote:\n{}\n\nA peer answered:\n"
BACKWARD_PREFIX = "A peer answered:\n{}\n\nThis is what someone had written:\n"


class MutualInformation:
    """How well reply and post predict each other: λ · log p→(rewritten | S) +
    (1 − λ) · log p←(S | rewritten), with S the seeker post.

    PARTNER's specificity term (arXiv 2101.07714), after maximum mutual information in dialogue
    (arXiv 1510.03055, 1911.00536). The backward half is the one that tells: a sentence that fits
    everybody says nothing about who wrote what, so it makes no seeker post more likely.

    Each log-probability is divided by its number of tokens. The paper's sums (`normalise=False`)
    mostly measure length: a seeker post of 200 tokens weighs ten times one of 20, and a rewrite
    gains most by being short. Per token, rows compare, and the weight of the term keeps its
    meaning from one data set to the next.

    The forward model is the bare backbone, or its role `forward_role`. The backward model is the
    role `backward_role`, an adapter that `train.py reverse_lm` trains: `adapter`, by folder or hub
    id, or what the backbone has in that role, or the shipped one.
    """

    def __init__(
        self,
        backbone: Backbone | None = None,
        *,
        forward_weight: float = 0.5,
        normalise: bool = True,
        forward_role: str | None = None,
        backward_role: str = REVERSE_ROLE,
        adapter: str | Path | None = None,
        name: str = "mutual_information",
    ) -> None:
        SHARE.check("forward_weight", forward_weight)
        self.backbone = backbone or Backbone.shared()
        if adapter is not None or backward_role not in self.backbone.roles:
            self.backbone.attach(backward_role, found_folder(adapter or SHIPPED, ADAPTER))
        self.forward_weight = forward_weight
        self.normalise = normalise
        self.forward_role = forward_role
        self.backward_role = backward_role
        self.__name__ = name

    def __call__(
        self, completions: Sequence[Any], seeker_post: Sequence[str], **_: Any
    ) -> list[float]:
        rewritten = [text.strip() for text in texts(completions)]
        posts = [post.strip() for post in seeker_post]
        # A half without weight is not computed.
        weight, forward, backward = self.forward_weight, [0.0] * len(posts), [0.0] * len(posts)
        if weight:
            forward = self._log_probs(forward_prefixes(posts), rewritten, self.forward_role)
        if weight < 1:
            backward = self._log_probs(backward_prefixes(rewritten), posts, self.backward_role)
        return [
            weight * there + (1 - weight) * back
            for there, back in zip(forward, backward, strict=True)
        ]

    def _log_probs(
        self, prefixes: Sequence[str], continuations: Sequence[str], role: str | None
    ) -> list[float]:
        scores = self.backbone.scores(prefixes, continuations, role)
        return [score.mean if self.normalise else score.total for score in scores]


def forward_prefixes(seeker_posts: Sequence[str]) -> list[str]:
    return [FORWARD_PREFIX.format(post.strip()) for post in seeker_posts]


def backward_prefixes(responses: Sequence[str]) -> list[str]:
    return [BACKWARD_PREFIX.format(response.strip()) for response in responses]
