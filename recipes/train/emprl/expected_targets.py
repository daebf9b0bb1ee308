"""Expected targets: the levels that people show in conversations like this one.

The level of one human response is a draw: to the same post another person would have asked, or not.
A reward on that draw is mostly noise. Its expectation, given the conversation, is not, and in the
mean both pull the same way (Rao-Blackwell). So the probability of each level is estimated from the
conversation, by logistic regression on sentence embeddings of its first and its last turn. Each
exchange is predicted by a model that saw no exchange of the same conversation.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rewriting.errors import UserError
from rewriting.exchange import LEVELS, MECHANISMS, Exchange
from rewriting.runtime.processes import share_work

logger = logging.getLogger(__name__)
FOLDS = 5
STRENGTH = 0.3  # scikit-learn's C: some hundred features, some thousand rows
CHUNK = 256  # texts that are encoded together


def with_expected_targets(exchanges: Sequence[Exchange], encoder: Any) -> list[Exchange]:
    """Labelled exchanges with three probabilities for each mechanism instead of a level.

    encoder: `encode(texts)` gives their embeddings, as sentence-transformers' models do. Several
    processes share the texts and the regressions: all must call it with the same exchanges, and
    what comes out does not depend on how many they are.
    """
    groups = conversations(exchanges)
    features = _features(exchanges, encoder)
    levels = {m: np.array([one.labels[m].level for one in exchanges]) for m in MECHANISMS}

    def predicted(mechanisms: Sequence[str]) -> list[np.ndarray]:
        return [_probabilities(features, levels[m], groups) for m in mechanisms]

    found = dict(zip(MECHANISMS, share_work(MECHANISMS, predicted), strict=True))
    for mechanism, probabilities in found.items():
        own = levels[mechanism]
        shares = np.eye(len(LEVELS))[own].mean(axis=0)
        logger.info(
            "expected targets of %s: log loss %.3f; with the mean shares of the levels: %.3f",
            mechanism,
            _log_loss(probabilities, own),
            _log_loss(np.tile(shares, (len(own), 1)), own),
        )
    return [
        replace(one, labels={}, extra={**one.extra, **{m: found[m][row].tolist() for m in found}})
        for row, one in enumerate(exchanges)
    ]


def conversations(exchanges: Sequence[Exchange]) -> list[int]:
    """The number of each exchange's conversation, which is known by its first turn."""
    names = _first_turns(exchanges)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    if len(numbers) < 2 * FOLDS:
        raise UserError(
            f"expected_targets needs {2 * FOLDS} conversations or more, not {len(numbers)}. "
            "Train on more data, or turn it off."
        )
    return [numbers[name] for name in names]


def _first_turns(exchanges: Sequence[Exchange]) -> list[str]:
    return [one.history[0] if one.history else one.seeker_post for one in exchanges]


def _features(exchanges: Sequence[Exchange], encoder: Any) -> np.ndarray:
    first = _first_turns(exchanges)
    texts = list(dict.fromkeys([*first, *(one.seeker_post for one in exchanges)]))
    # Whole chunks are shared out: a vector's last bits depend on what it is encoded with.
    chunks = [texts[start : start + CHUNK] for start in range(0, len(texts), CHUNK)]
    vectors = share_work(chunks, lambda own: _encoded(own, encoder))
    rows = dict(zip(texts, np.concatenate(vectors), strict=True))
    turns = [[not one.history, len(one.history) > 2, "?" in one.seeker_post] for one in exchanges]
    last = [rows[one.seeker_post] for one in exchanges]
    return np.hstack([last, [rows[text] for text in first], np.array(turns, dtype=float)])


def _encoded(chunks: Sequence[Sequence[str]], encoder: Any) -> list[np.ndarray]:
    """[texts, width] of each chunk."""
    from rewriting.runtime.progress import progress_of_first

    found = []
    with progress_of_first("reading conversations", sum(map(len, chunks))) as on:
        for chunk in chunks:
            found.append(np.asarray(encoder.encode(list(chunk), show_progress_bar=False)))
            on(len(chunk))
    return found


def _probabilities(features: np.ndarray, levels: np.ndarray, groups: list[int]) -> np.ndarray:
    """[rows, levels], each row by a model that saw nothing of its group."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold

    found = np.zeros((len(levels), len(LEVELS)))
    for others, fold in GroupKFold(FOLDS).split(features, levels, groups):
        known = np.unique(levels[others])
        if len(known) == 1:  # nothing to tell apart
            found[fold, known[0]] = 1.0
            continue
        model = LogisticRegression(C=STRENGTH, max_iter=1000).fit(features[others], levels[others])
        found[np.ix_(fold, known)] = model.predict_proba(features[fold])
    return found


def _log_loss(probabilities: np.ndarray, levels: np.ndarray) -> float:
    chosen = probabilities[np.arange(len(levels)), levels]
    return float(-np.log(np.maximum(chosen, 1e-6)).mean())
