"""Weak or strong: a linear rule on the rationale, fitted after the networks are trained.

A logistic regression per mechanism on `evidence` (model.py), over the rows that have the
mechanism at all. Weak rows are few, so the rule is held back hard. How hard, and whether further
rows from another source help, is found by cross-validation over seekers; the bar between weak and
strong is set on the answers of the folds that had not seen the row (the rule had not; the networks
learnt gate and rationale from the train rows among them).

Dimensions: N rows, E numbers of evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from rewards.identifiers.epitome.identifier import EpitomeIdentifier
from rewards.identifiers.epitome.model import EmpathyIdentifier, evidence
from rewards.identifiers.epitome.training import Example, batch, make_examples
from rewriting.data.split import normalised
from rewriting.exchange import MECHANISMS, Exchange
from rewriting.statistics.classification import confusion, label_f1

FOLDS = 5
PENALTIES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)  # scikit-learn's C: smaller holds back more
BATCH = 32


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows of one mechanism that have it: their evidence twice, and which are strong."""

    found_NE: np.ndarray
    """Under the network's own rationales, as the rule will be used."""
    annotated_NE: np.ndarray
    """Under the annotated rationales."""
    strong_N: np.ndarray
    seekers_N: np.ndarray

    def __getitem__(self, chosen: np.ndarray) -> Rows:
        columns = (self.found_NE, self.annotated_NE, self.strong_N, self.seekers_N)
        return Rows(*(column[chosen] for column in columns))

    def __add__(self, other: Rows) -> Rows:
        return Rows(
            np.concatenate([self.found_NE, other.found_NE]),
            np.concatenate([self.annotated_NE, other.annotated_NE]),
            np.concatenate([self.strong_N, other.strong_N]),
            np.concatenate([self.seekers_N, other.seekers_N]),
        )


def fit_strength(
    identifier: EpitomeIdentifier, exchanges: Sequence[Exchange], extra: Sequence[Exchange] = ()
) -> None:
    """Set the strength rule of every mechanism, in place, from labelled exchanges.

    extra: exchanges that are used for a mechanism where that helps on the others. A mechanism with
    few rows of a strength is left without a rule: what passes its gate is called by what is more
    frequent.
    """
    both = [rows_of(identifier, part) for part in (exchanges, extra)]
    for network in identifier.networks:
        for m, mechanism in enumerate(network.mechanisms):
            weight, bias, bar = fit_rule(both[0][mechanism], both[1].get(mechanism))
            network.strength_weight[m] = torch.from_numpy(weight)
            network.strength_bias[m] = bias
            network.strength_bar[m] = bar


def rows_of(identifier: EpitomeIdentifier, exchanges: Sequence[Exchange]) -> dict[str, Rows]:
    """For each mechanism the rows that have it; nothing where there are no exchanges."""
    if not exchanges:
        return {}
    most = identifier.architecture
    examples = make_examples(
        exchanges, identifier.tokenizer, most.max_seeker_tokens, most.max_response_tokens
    )
    seekers_N = np.array([normalised(exchange.seeker_post) for exchange in exchanges])
    levels_NM = np.array([example.levels_M.tolist() for example in examples])
    rows = {}
    for network in identifier.networks:
        found, annotated = evidence_of(network, examples)
        for m, mechanism in enumerate(network.mechanisms):
            levels_N = levels_NM[:, MECHANISMS.index(mechanism)]
            everything = Rows(found[:, m], annotated[:, m], levels_N == 2, seekers_N)
            rows[mechanism] = everything[levels_N > 0]
    return rows


@torch.inference_mode()
def evidence_of(
    network: EmpathyIdentifier, examples: Sequence[Example]
) -> tuple[np.ndarray, np.ndarray]:
    """The evidence under the network's own rationales and under the annotated ones, [N, M, E]."""
    device = next(network.parameters()).device
    places = [MECHANISMS.index(mechanism) for mechanism in network.mechanisms]
    order = sorted(range(len(examples)), key=lambda row: len(examples[row].response_ids))
    found, annotated = [], []
    for start in range(0, len(examples), BATCH):
        rows = [examples[row] for row in order[start : start + BATCH]]
        seeker_ids, seeker_mask = batch([row.seeker_ids for row in rows], device)
        response_ids, response_mask = batch([row.response_ids for row in rows], device)
        encoded = network.encode_response(response_ids, response_mask)
        seeker = network.encode_seeker(seeker_ids, seeker_mask)
        found.append(network.score_encoded(seeker, seeker_mask, encoded, response_mask).evidence)
        marks = [row.marks_MT[places].T.float() for row in rows]
        marks_BMT = torch.nn.utils.rnn.pad_sequence(marks, batch_first=True).mT.to(device)
        annotated.append(evidence(encoded[..., network.hidden_size :], marks_BMT))
    back = torch.tensor(order).argsort()  # to the order of the examples
    return torch.cat(found)[back].cpu().numpy(), torch.cat(annotated)[back].cpu().numpy()


def fit_rule(rows: Rows, extra: Rows | None = None) -> tuple[np.ndarray, float, float]:
    """Weight [E], bias, and the bar on the logit above which a row is called strong.

    The rule learns each row under both markings, so that it fits what annotators mark and what the
    network will mark. It is judged by the network's marking of `rows` alone.
    """
    fewest = min(rows.strong_N.sum(), len(rows.strong_N) - rows.strong_N.sum())
    if fewest < 2 * FOLDS:
        mostly_strong = 2 * rows.strong_N.sum() > len(rows.strong_N)
        return np.zeros(rows.found_NE.shape[1]), 4.0 if mostly_strong else -4.0, 0.0
    choices = [(penalty, more) for penalty in PENALTIES for more in dict.fromkeys((None, extra))]
    held_out = {choice: _held_out_logits(rows, *choice) for choice in choices}
    best = min(choices, key=lambda choice: log_loss(held_out[choice], rows.strong_N))
    penalty, more = best
    weight, bias = _logistic(rows + more if more else rows, penalty)
    return weight, bias, best_bar(held_out[best], rows.strong_N)


def log_loss(logits_N: np.ndarray, strong_N: np.ndarray) -> float:
    return float(np.mean(np.logaddexp(0, np.where(strong_N, -logits_N, logits_N))))


def _held_out_logits(rows: Rows, penalty: float, extra: Rows | None) -> np.ndarray:
    from sklearn.model_selection import StratifiedGroupKFold

    logits_N = np.zeros(len(rows.strong_N))
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=0)
    for rest, held in folds.split(rows.found_NE, rows.strong_N, rows.seekers_N):
        weight, bias = _logistic(rows[rest] + extra if extra else rows[rest], penalty)
        logits_N[held] = rows.found_NE[held] @ weight + bias
    return logits_N


def _logistic(rows: Rows, penalty: float) -> tuple[np.ndarray, float]:
    """Logistic regression on standardised columns, as weights on the columns as they are."""
    from sklearn.linear_model import LogisticRegression

    evidence_NE = np.concatenate([rows.found_NE, rows.annotated_NE])
    mean, scale = evidence_NE.mean(0), evidence_NE.std(0) + 1e-6
    model = LogisticRegression(C=penalty, max_iter=2000)
    model.fit((evidence_NE - mean) / scale, np.tile(rows.strong_N, 2))
    weight = model.coef_[0] / scale
    return weight, float(model.intercept_[0] - weight @ mean)


def best_bar(logits: np.ndarray, strong: np.ndarray) -> float:
    """The bar with the best mean F1 of weak and strong plus accuracy.

    Of a hill of near-equal bars the middle is taken: the single best one is luck.
    """
    bars = np.quantile(logits, np.linspace(0.01, 0.99, 99))
    called = [logits > bar for bar in bars]
    f1 = [label_f1(confusion(strong, one, 2)).mean() for one in called]
    scores = np.array(f1) + [np.mean(one == strong) for one in called]
    smooth = np.convolve(np.pad(scores, 4, mode="edge"), np.ones(9) / 9, mode="valid")
    return float(bars[smooth.argmax()])
