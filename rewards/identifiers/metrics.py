"""Pure scores for rationales, counted as in EPITOME (arXiv 2009.08441), section 6.

They are per example, then averaged. An example without a rationale, and none predicted,
counts 1; an example where only one of the two is empty counts 0.
"""

from collections.abc import Sequence

from rewards.identifiers.rationales import Span, mask_to_runs


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
