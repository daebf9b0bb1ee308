"""Does a judge order pairs of replies as people do, and does it mind which one stands first?

    python benchmarks/judge_agreement.py --pairs pairs.jsonl --judge qwen2.5-coder-1.5b
    python benchmarks/judge_agreement.py --pairs pairs.jsonl --methods compare,grade \\
        --judge '{model: NAME, endpoint: URL, api_key_env: VARIABLE, cache: answers.sqlite}'

Each line of the pairs has `seeker_post`, `better` and `worse`: two whole replies to the post, of
which people prefer the first. `response_post`, the reply before it was rewritten, may stand beside
them and is not needed: a judge sees the two replies alone. With a field `kind`, every kind gets
lines of its own.

Printed per method: the share of pairs in which the better reply comes out ahead (a tie counts
half), its 95 % interval (Wilson), the share that is right in both orders and the position bias (of
compare alone), the mean margin, and the seconds per pair.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from recipes.shared.tables import print_table
from rewards.judge.methods import Change, Row
from rewards.judge.named import judge_options
from rewards.judge.rubric import METHODS
from rewards.terms.judge import JudgeTerm, position_bias
from rewriting.errors import UserError

ALL = "all"


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well a method orders pairs; shares from 0 to 1."""

    n: int
    accuracy: float
    interval: tuple[float, float]
    right_in_both_orders: float | None
    position_bias: float | None
    margin: float
    seconds_per_pair: float


def read_pairs(path: Path, limit: int = 0) -> list[tuple[str, Row]]:
    """The kind of each pair, and the row (post, worse, better)."""
    pairs: list[tuple[str, Row]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            texts = [row[name] for name in ("seeker_post", "worse", "better")]
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path}, line {number}: no pair ({error!r}).") from error
        if not all(isinstance(text, str) for text in texts):
            raise UserError(f"{path}, line {number}: seeker_post, better and worse are texts.")
        pairs.append((str(row.get("kind", ALL)), (texts[0], texts[1], texts[2])))
    if not pairs:
        raise UserError(f"{path} holds no pair.")
    return pairs[: limit or None]


def agreement(changes: Sequence[Change], seconds: float) -> Agreement:
    """The figures of one method. A change above 0 says that the better reply is better."""
    n = len(changes)
    accuracy = sum(0.5 + 0.5 * _sign(one.value) for one in changes) / n
    both = [one.orders[0] > 0.5 > one.orders[1] for one in changes if one.orders]
    return Agreement(
        n,
        accuracy,
        wilson(accuracy, n),
        sum(both) / len(both) if both else None,
        position_bias(changes),
        math.fsum(one.value for one in changes) / n,
        seconds / n,
    )


def wilson(share: float, n: int) -> tuple[float, float]:
    """The 95 % interval of a share of n (Wilson 1927)."""
    z = 1.959964
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def measured(term: JudgeTerm, pairs: Sequence[tuple[str, Row]]) -> dict[str, Agreement]:
    """The figures of a method over all pairs, and by kind where there are several."""
    start = time.perf_counter()
    changes = term.method.changes([row for _, row in pairs])
    seconds = time.perf_counter() - start
    kinds = list(dict.fromkeys(kind for kind, _ in pairs))
    found = {ALL: agreement(changes, seconds)}
    for kind in kinds if len(kinds) > 1 else []:
        own = [change for (name, _), change in zip(pairs, changes, strict=True) if name == kind]
        found[kind] = agreement(own, seconds * len(own) / len(changes))
    return found


def cells(method: str, kind: str, found: Agreement) -> list[str]:
    low, high = found.interval
    both, bias = found.right_in_both_orders, found.position_bias
    return [
        method,
        kind,
        str(found.n),
        f"{100 * found.accuracy:.1f} ({100 * low:.0f}…{100 * high:.0f})",
        "–" if both is None else f"{100 * both:.1f}",
        "–" if bias is None else f"{bias:+.3f}",
        f"{found.margin:+.3f}",
        f"{found.seconds_per_pair:.2f}",
    ]


HEADER = ["method", "pairs", "n", "% right", "% both orders", "bias", "margin", "s/pair"]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--pairs", type=Path, required=True, help="a .jsonl file")
    parser.add_argument("--judge", required=True, help="a model's name, or options as YAML")
    parser.add_argument("--methods", default=",".join(METHODS), help="separated by commas")
    parser.add_argument(
        "--rubric", action="append", default=[], metavar="METHOD=FILE", help="may be repeated"
    )
    parser.add_argument("--limit", type=int, default=0, help="the first so many pairs; 0: all")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    pairs = read_pairs(options.pairs, options.limit)
    rubrics = dict(one.split("=", 1) for one in options.rubric)
    judge = judge_options(options.judge, JudgeTerm)
    found = {}
    for method in options.methods.split(","):
        chosen = {"method": method, "rubric": rubrics.get(method, "")}
        found[method] = measured(JudgeTerm(**judge | chosen), pairs)
    title = f"{options.pairs.name}, judged by {judge.get('model')}"
    lines = [cells(m, kind, one) for m, by_kind in found.items() for kind, one in by_kind.items()]
    print_table(title, HEADER, lines)
    if options.json:
        figures = {m: {k: asdict(one) for k, one in kinds.items()} for m, kinds in found.items()}
        options.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"error: {error}")
