"""Fit, on rows that the networks were not trained on, what stands between logits and answers.

Three separate things, each a number or two per mechanism: scale and bias of the gate (honest
probabilities, by likelihood), the bar the gate must reach (macro-F1 and accuracy of the levels),
and the rationale threshold (token-F1 plus IOU-F1). Weak or strong is fitted in strength.py.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from rewards.identifiers import metrics
from rewards.identifiers.epitome.identifier import EpitomeIdentifier
from rewards.identifiers.evaluation import word_mask
from rewards.identifiers.rationales import choose_words
from rewriting.exchange import LEVELS, MECHANISMS, Exchange
from rewriting.statistics.classification import accuracy, confusion, label_f1, macro_f1


def fit_scale(logits: Tensor, some: Tensor) -> tuple[float, float]:
    """Scale and bias that minimise the cross-entropy of gate logits (N,) on `some` (N,), 0 or 1."""
    log_scale = torch.zeros((), requires_grad=True)
    bias = torch.zeros((), requires_grad=True)
    optimizer = torch.optim.LBFGS([log_scale, bias], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        scaled = logits * log_scale.exp() + bias
        # Few or separable rows would drive both to infinity.
        pull = bias.square() + log_scale.square()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scaled, some) + 1e-4 * pull
        loss.backward()
        return loss

    optimizer.step(closure)
    return log_scale.exp().item(), bias.item()


def fit_gate_bar(logits: np.ndarray, strong: np.ndarray, gold: np.ndarray) -> float:
    """The bar on the calibrated gate logits with the best macro-F1 + accuracy of the levels.

    strong: which rows would be called strong. The score is smoothed over neighbouring bars: with
    few rows of a level the single best bar is luck, a broad hill is not.
    """
    bars = np.arange(-1.5, 1.51, 0.1)
    scores = []
    for bar in bars:
        called, levels = ((logits > bar) * (1 + strong)).tolist(), gold.tolist()
        scores.append(macro_f1(levels, called) + accuracy(levels, called))
    smooth = np.convolve(np.pad(scores, 3, mode="edge"), np.ones(7) / 7, mode="valid")
    return float(bars[smooth.argmax()])


def fit_decision_offsets(
    log_probabilities: np.ndarray,
    gold: np.ndarray,
    *,
    accuracy_weight: float = 1.0,
    grid: Sequence[float] = tuple(np.arange(-1.5, 1.51, 0.1)),
) -> tuple[np.ndarray, float]:
    """Offsets (3,) for levels 1 and 2 that maximise macro-F1 + accuracy_weight · accuracy.

    The score is smoothed over neighbouring grid points: with some ninety rows of a rare level the
    single best point is luck, a broad hill is not.
    """
    scores = np.zeros((len(grid), len(grid)))
    for i, first in enumerate(grid):
        for j, second in enumerate(grid):
            guess = (log_probabilities + np.array([0.0, first, second])).argmax(1)
            per_level = label_f1(confusion(gold, guess, len(LEVELS)))
            scores[i, j] = np.mean(per_level) + accuracy_weight * np.mean(guess == gold)
    kernel = np.array([0.5, 0.8, 1.0, 0.8, 0.5])
    padded = np.pad(scores, 2, mode="edge")
    smooth = sum(
        kernel[a] * kernel[b] * padded[a : a + len(grid), b : b + len(grid)]
        for a in range(5)
        for b in range(5)
    )
    i, j = np.unravel_index(smooth.argmax(), smooth.shape)
    return np.array([0.0, grid[i], grid[j]]), float(scores[i, j])


def fit_rationale_threshold(
    words: Sequence[Sequence[float]],
    gold_words: Sequence[Sequence[bool]],
    levels: Sequence[int],
    *,
    thresholds: Sequence[float] = (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5),
    gaps: Sequence[int] = (0, 1, 2, 4, 6),
) -> tuple[float, int, float]:
    """(threshold, longest gap, score) with the best token-F1 + IOU-F1, given the decided levels."""
    best = (0.5, 1, -1.0)
    for threshold in thresholds:
        for gap in gaps:
            marks = [
                choose_words(w, threshold, level=level, longest_gap=gap)
                for w, level in zip(words, levels, strict=True)
            ]
            score = metrics.token_f1(gold_words, marks) + metrics.iou_f1(gold_words, marks)
            if score > best[2]:
                best = (threshold, gap, score)
    return best


def calibrate(identifier: EpitomeIdentifier, exchanges: Sequence[Exchange]) -> EpitomeIdentifier:
    """Fit everything on labelled exchanges that took no part in training; the identifier with it.

    Expects an identifier whose gate is not calibrated yet, and whose strength is fitted.
    """
    pairs = [(exchange.seeker_post, exchange.response_post) for exchange in exchanges]
    gaps = dict(zip(MECHANISMS, identifier.architecture.longest_gap, strict=True))
    with torch.inference_mode():
        answers = [dict(identifier.answers(network, pairs)) for network in identifier.networks]
    for network, rows in zip(identifier.networks, answers, strict=True):
        for m, mechanism in enumerate(network.mechanisms):
            labels = [exchange.labels[mechanism] for exchange in exchanges]
            found = [rows[row][m] for row in range(len(exchanges))]
            levels_N = torch.tensor([label.level for label in labels])
            gate_N, strength_N = torch.tensor([answer.logits for answer in found]).T
            scale, bias = fit_scale(gate_N, (levels_N > 0).float())
            strong_N = (strength_N > network.strength_bar[m].item()).long()
            gate_N = gate_N * scale + bias
            bar = fit_gate_bar(gate_N.numpy(), strong_N.numpy(), levels_N.numpy())
            levels = ((gate_N > bar) * (1 + strong_N)).tolist()
            threshold, gaps[mechanism], _ = fit_rationale_threshold(
                [answer.word_values() for answer in found],
                [
                    word_mask(label.rationales, answer.response_post)
                    for label, answer in zip(labels, found, strict=True)
                ],
                levels,
            )
            network.gate_scale[m] = scale
            network.gate_bias[m] = bias
            network.gate_bar[m] = bar
            network.rationale_threshold[m] = threshold
    longest_gap = (gaps[MECHANISMS[0]], gaps[MECHANISMS[1]], gaps[MECHANISMS[2]])
    architecture = replace(identifier.architecture, longest_gap=longest_gap)
    return EpitomeIdentifier(
        architecture, identifier.networks, identifier.tokenizer, identifier.name
    )
