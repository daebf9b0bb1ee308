"""What the output gate stops of labelled sentences, by kind, with Wilson's intervals.

    OMP_NUM_THREADS=1 python benchmarks/output_gate.py FILE --limit 60
    OMP_NUM_THREADS=1 python benchmarks/output_gate.py FILE --no-models

Each line of the file has `text`, `hurts` (true or false) and `kind`. A line with a `seeker_post` is
read as a new sentence of a reply to it, so that the sense model and the rule about invented people
are asked too; without one they have nothing to compare with, and kindness model and rules decide.

Prints, for every kind, how many sentences the gate stops, and how many the rules alone do. Of the
hurtful ones that is what is wanted, of the kind ones a false alarm. Aims: 95 % of the hurtful, each
kind at least 85 %, no more than 3 % of the kind ones.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from policies.gated import Guard
from recipes.shared.gated import Safety
from rewriting import Exchange, Rewrite, UserError
from rewriting.safety import Gate, check_output
from rewriting.statistics.shares import wilson

REPLY = "Thank you for writing."  # of a person; what is new beside it is judged


def read_sentences(path: Path, limit: int | None, seed: int) -> list[dict[str, Any]]:
    """The labelled sentences of a file; of a limit, so many drawn by the seed."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        row = json.loads(line)
        if not isinstance(row.get("text"), str) or not isinstance(row.get("hurts"), bool):
            raise UserError(f"{path}, line {number}: a line has text, hurts (true or false), kind.")
        rows.append(row)
    return rows if limit is None else random.Random(seed).sample(rows, min(limit, len(rows)))


def stopped(guard: Guard, row: dict[str, Any]) -> bool:
    """Whether the gate stops a sentence, as a new one of a reply where its post is known."""
    text, post = row["text"], row.get("seeker_post")
    if not post:
        hurtful = guard.kindness is not None and bool(guard.kindness.hurtful([text]))
        return hurtful or not guard.by_rules(text, "", [text]).clear
    exchange = Exchange(post, row.get("response_post") or REPLY)
    return not guard.check(Rewrite(exchange, f"{text} {exchange.response_post}")).clear


def measure(guard: Guard, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for all hurtful and all kind sentences, then one for each kind of both."""
    judged = [(row, stopped(guard, row), not check_output(row["text"]).clear) for row in rows]
    table = []
    for hurts, name in ((True, "all hurtful"), (False, "all kind")):
        own = [one for one in judged if one[0]["hurts"] is hurts]
        table.append(figures(name, hurts, own))
        for kind in sorted({str(one[0].get("kind", "")) for one in own}):
            same = [one for one in own if str(one[0].get("kind", "")) == kind]
            table.append(figures(kind, hurts, same))
    return table


def figures(name: str, hurts: bool, judged: Sequence[tuple[Any, bool, bool]]) -> dict[str, Any]:
    by_gate, by_rules = sum(one[1] for one in judged), sum(one[2] for one in judged)
    return {
        "kind": name,
        "hurts": hurts,
        "count": len(judged),
        "stopped": by_gate,
        "interval": wilson(by_gate, len(judged)) if judged else None,
        "by_rules": by_rules,
    }


def show(row: dict[str, Any]) -> str:
    if not row["count"]:
        return f"{row['kind']:<24} none"
    low, high = row["interval"]
    return (
        f"{row['kind']:<24} {row['stopped']:>5} of {row['count']:>5}  "
        f"{row['stopped'] / row['count']:6.1%}  ({low:.1%} to {high:.1%})  "
        f"rules alone {row['by_rules'] / row['count']:6.1%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="Lines of JSON with text, hurts and kind.")
    parser.add_argument("--limit", type=int, help="So many sentences only, drawn by the seed.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-models", action="store_true", help="The rules alone.")
    parser.add_argument("--json", type=Path, help="Write the figures here as well.")
    options = parser.parse_args()
    rows = read_sentences(options.file, options.limit, options.seed)
    guard = Guard(Gate()) if options.no_models else Safety().guard()
    table = measure(guard, rows)
    for row in table:
        print(show(row))
    if options.json:
        options.json.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
