"""Pure scores for levels and rationales, counted as in EPITOME (arXiv 2009.08441), section 6.

Rationale scores are per example, then averaged. An example without a rationale, and none predicted,
counts 1; an example where only one of the two is empty counts 0.
"""

from collections.abc import Sequence

from rewards.identifiers.rationales import Span, mask_to_runs


def accuracy(gold: Sequence[int], predicted: Sequence[int]) -> float:
    return sum(g == p for g, p in zip(gold, predicted, strict=True)) / len(gold)


def macro_f1(gold: Sequence[int], predicted: Sequence[int], levels: int = 3) -> float:
    """Mean F1 over the levels that occur in `gold` or `predicted`."""
    scores = []
    for level in range(levels):
        hits = sum(g == p == level for g, p in zip(gold, predicted, strict=True))
        total = sum(g == level for g in gold) + sum(p == level for p in predicted)
        if total:
            scores.append(2 * hits / total)
    return sum(scores) / len(scores)


def _harmonic_mean(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def token_f1(gold: Sequence[Sequence[bool]], predicted: Sequence[Sequence[bool]]) -> float:
    """Mean over examples of the F1 between marked words."""

    def one(g: Sequence[bool], p: Sequence[bool]) -> float:
        total = sum(g) + sum(p)
        hits = sum(a and b for a, b in zip(g, p, strict=True))
        return 2 * hits / total if total else 1.0

    return sum(map(one, gold, predicted)) / len(gold)


def iou(a: Span, b: Span) -> float:
    overlap = max(0, min(a[1], b[1]) - max(a[0], b[0]))
    return overlap / (a[1] - a[0] + b[1] - b[0] - overlap)


def iou_f1(
    gold: Sequence[Sequence[bool]], predicted: Sequence[Sequence[bool]], match: float = 0.5
) -> float:
    """Mean over examples of the F1 between contiguous spans, which match at IOU >= `match`."""

    def one(g: Sequence[bool], p: Sequence[bool]) -> float:
        gold_runs, predicted_runs = mask_to_runs(g), mask_to_runs(p)
        if not gold_runs or not predicted_runs:
            return float(not gold_runs and not predicted_runs)
        found = sum(any(iou(a, b) >= match for b in gold_runs) for a in predicted_runs)
        covered = sum(any(iou(a, b) >= match for b in predicted_runs) for a in gold_runs)
        return _harmonic_mean(found / len(predicted_runs), covered / len(gold_runs))

    return sum(map(one, gold, predicted)) / len(gold)


def expected_calibration_error(
    probabilities: Sequence[Sequence[float]], gold: Sequence[int], bins: int = 10
) -> float:
    """Gap between confidence and accuracy of the most likely level, over equal-width bins."""
    rows: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for row, level in zip(probabilities, gold, strict=True):
        confidence = max(row)
        rows[min(int(confidence * bins), bins - 1)].append(
            (confidence, list(row).index(confidence) == level)
        )
    gaps = (abs(sum(c for c, _ in r) - sum(h for _, h in r)) for r in rows)
    return sum(gaps) / len(gold)
