"""The reader's heads of form, worth and need, fitted to the end after the encoder's training.

In the few hundred steps that the encoder needs, a head that stands on it does not converge. The
heads are linear, so they are fitted again on the final vectors, by logistic regression.

Legend: N sentences, M mechanisms, D width of a vector.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rewards.reading.blocks import Levels
from rewards.reading.reader import SentenceReader
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS
from rewriting.runtime.language_models.tuned_encoder import TunedEncoder

if TYPE_CHECKING:
    from numpy.typing import NDArray

AT_ONCE = 256
# Of the weights, for vectors of length √D; chosen on dev.
INVERSE_PENALTY, INVERSE_PENALTY_OF_WORTH = 0.01, 0.01
Sentence = tuple[str, Levels, float]
"""A sentence, its levels, and how much it counts."""


@torch.no_grad()
def fit_form(reader: SentenceReader, sentences: Sequence[Sentence]) -> None:
    """Fit, for each mechanism, some against none, and strong against weak where there is some."""
    vectors_ND = _vectors(reader, [text for text, _, _ in sentences])
    levels_NM = np.array([levels for _, levels, _ in sentences])
    weights_N = np.array([weight for _, _, weight in sentences])
    head: Any = reader.form[-1]
    for m in range(len(MECHANISMS)):
        has_N = levels_NM[:, m] > 0
        rules = {
            m: _fitted(vectors_ND, has_N, weights_N),
            m + len(MECHANISMS): _fitted(
                vectors_ND[has_N], levels_NM[has_N, m] > 1, weights_N[has_N]
            ),
        }
        for row, (weights_D, bias) in rules.items():
            head.weight[row] = torch.tensor(weights_D)
            head.bias[row] = bias


@torch.no_grad()
def fit_worth(
    reader: SentenceReader, answers: Sequence[str], decoys: Sequence[tuple[float, Sequence[str]]]
) -> None:
    """Fit how likely a sentence is a person's answer rather than a decoy.

    decoys: groups of sentences, each with the share that it has of all decoys together, which
    weigh as much as all answers. Where there is a second opinion, the rule weighs its vectors too.
    """
    reader.eval()
    texts = [*answers, *(text for _, group in decoys for text in group)]
    weights = [1.0] * len(answers)
    for share, group in decoys:
        weights += [share * len(answers) / len(group)] * len(group)
    real_N = np.arange(len(texts)) < len(answers)
    encoders = [reader.encode, *([reader.second.encode] if reader.second is not None else [])]
    # Each encoder's unit vectors are stretched by its own width, for the penalty to mean the same.
    stretches = [math.sqrt(encode.width) for encode in encoders]
    parts = [
        _encoded(encode, texts) * stretch
        for encode, stretch in zip(encoders, stretches, strict=True)
    ]
    weights_D, bias = _logistic(
        np.concatenate(parts, axis=1), real_N, np.array(weights), INVERSE_PENALTY_OF_WORTH
    )
    own_D, second_D = np.split(weights_D, [reader.encode.width])
    reader.worth.weight[0] = torch.tensor(own_D * stretches[0])
    reader.worth.bias[0] = bias
    if reader.second is not None:
        reader.second.worth.weight[0] = torch.tensor(second_D * stretches[1])


@torch.no_grad()
def fit_need(reader: SentenceReader, support: Sequence[str], calm: Sequence[str]) -> None:
    """Fit whether a post tells of trouble; both sides weigh alike."""
    vectors_ND = _vectors(reader, [*support, *calm])
    needs_N = np.arange(len(vectors_ND)) < len(support)
    weights_N = np.where(needs_N, 1.0, len(support) / len(calm))
    weights_D, bias = _fitted(vectors_ND, needs_N, weights_N)
    reader.need.weight[0] = torch.tensor(weights_D)
    reader.need.bias[0] = bias


def _vectors(reader: SentenceReader, texts: Sequence[str]) -> NDArray[Any]:
    reader.eval()
    return _encoded(reader.encode, texts)


def _encoded(encode: TunedEncoder, texts: Sequence[str]) -> NDArray[Any]:
    parts = [encode(texts[i : i + AT_ONCE]) for i in range(0, len(texts), AT_ONCE)]
    vectors_ND: NDArray[Any] = torch.cat(parts).double().cpu().numpy()
    return vectors_ND


def _fitted(
    vectors_ND: NDArray[Any], labels_N: NDArray[Any], weights_N: NDArray[Any]
) -> tuple[NDArray[Any], float]:
    """Weights [D] and bias of a logistic rule. Unit vectors are stretched to length √D for the
    penalty to mean the same whatever D is."""
    stretch = math.sqrt(vectors_ND.shape[1])
    weights_D, bias = _logistic(vectors_ND * stretch, labels_N, weights_N, INVERSE_PENALTY)
    return weights_D * stretch, bias


def _logistic(
    features_NF: NDArray[Any],
    labels_N: NDArray[Any],
    weights_N: NDArray[Any],
    inverse_penalty: float,
) -> tuple[NDArray[Any], float]:
    from sklearn.linear_model import LogisticRegression

    if len(np.unique(labels_N)) < 2:
        raise UserError("a head needs sentences of both sides, such as weak and strong ones.")
    model = LogisticRegression(C=inverse_penalty, max_iter=1000)
    model.fit(features_NF, labels_N, sample_weight=weights_N)
    return model.coef_[0], float(model.intercept_[0])
