"""The reader's loss over a block, as a sum to be divided by the number of answers.

Four parts, each a cross-entropy:

    post → sentence    the answer of a post among all sentences of the block, decoys included
    sentence → post    the post of an answer among all posts of the block
    form               the levels of sentences whose levels are known
    need               posts of people in trouble against calm ones

Legend: A answers, S sentences (answers, then decoys, then misfits), M mechanisms, D width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from rewards.reading.blocks import Block, Levels
from rewards.reading.reader import SentenceReader
from rewriting.exchange import MECHANISMS

FORM_WEIGHT = 2.0  # of the loss of form, beside the two of fit
FAR = -1e4  # the logit of a sentence that does not stand for choice


class BlockLoss:
    """Blocks → the sum of their losses, weighted by their answers, and the number of answers."""

    def __init__(self, reader: SentenceReader) -> None:
        self.reader = reader

    def __call__(self, blocks: Sequence[Block]) -> tuple[Tensor, float]:
        losses = [self._loss(block) * len(block.answers) for block in blocks]
        return torch.stack(losses).sum(), float(sum(len(block.answers) for block in blocks))

    def _loss(self, block: Block) -> Tensor:
        reader = self.reader
        answers = block.answers
        misfits = [(row, text) for row, one in enumerate(answers) for text in one.misfits]
        texts = [one.sentence for one in answers]
        texts += [text for text, _ in block.decoys] + [text for _, text in misfits]
        posts_PD = reader.encode([*(one.post for one in answers), *block.calm_posts])
        sentences_SD = reader.encode(texts)
        fits_AS = reader.fits(posts_PD[: len(answers)], sentences_SD)
        choice_AS = fits_AS + reader.worth(sentences_SD)[:, 0]
        choice_AS = choice_AS + closed(len(answers), len(texts), [row for row, _ in misfits]).to(
            choice_AS.device
        )
        right_A = torch.arange(len(answers), device=choice_AS.device)
        known: list[tuple[int, Levels]] = [
            (place, one.levels) for place, one in enumerate(answers) if one.levels is not None
        ]
        known += [(len(answers) + i, levels) for i, (_, levels) in enumerate(block.decoys)]
        need_P = reader.need(posts_PD)[:, 0]
        needy_P = (torch.arange(len(need_P), device=need_P.device) < len(answers)).float()
        return (
            cross_entropy(choice_AS, right_A)
            + cross_entropy(fits_AS[:, : len(answers)].T, right_A)
            + FORM_WEIGHT * form_loss(reader.form(sentences_SD), known)
            + binary_cross_entropy_with_logits(need_P, needy_P)
        )


def closed(answers: int, sentences: int, owners: Sequence[int]) -> Tensor:
    """[A, S]: 0 where a sentence stands for choice, far below where it does not. The last
    sentences are misfits, each a choice for the post of its owner alone."""
    mask_AS = torch.zeros(answers, sentences)
    first = sentences - len(owners)
    mask_AS[:, first:] = FAR
    for place, owner in enumerate(owners):
        mask_AS[owner, first + place] = 0.0
    return mask_AS


def form_loss(form_SF: Tensor, known: Sequence[tuple[int, Levels]]) -> Tensor:
    """Cross-entropy of some against none, and of strong against weak where there is some."""
    places = torch.tensor([place for place, _ in known], device=form_SF.device)
    levels_NM = torch.tensor([levels for _, levels in known], device=form_SF.device)
    some_NM, strong_NM = (levels_NM > 0).float(), (levels_NM > 1).float()
    form_NF = form_SF[places]
    count = len(MECHANISMS)
    some = binary_cross_entropy_with_logits(form_NF[:, :count], some_NM)
    strong_NM = binary_cross_entropy_with_logits(form_NF[:, count:], strong_NM, reduction="none")
    return some + (strong_NM * some_NM).sum() / some_NM.sum().clamp(min=1)
