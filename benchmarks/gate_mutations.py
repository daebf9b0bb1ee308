"""Spelling tricks against the rules of the crisis gate: which share gets past them?

    OMP_NUM_THREADS=1 python benchmarks/gate_mutations.py
    OMP_NUM_THREADS=1 python benchmarks/gate_mutations.py --mutations 1000 --seed 7 --show 5

Takes crisis messages of the train part of the corpus that the rules find explicit or coded as they
stand, and mutates the words that gave them away by one to three tricks: of spelling, of shape, of
looks (tests/rewriting/safety/spelling_tricks.py). A mutation passes where the rules then call the
message clear. Messages of which the rules find only that they are not English are left out.

Prints the share that passes with Wilson's interval, and the processor milliseconds that the rules
take for a message. Aims: 0.05 % and 3 ms.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewriting.data.load import SAMPLE
from rewriting.safety.rules.check import check_rules
from rewriting.statistics.shares import wilson
from tests.rewriting.safety.spelling_tricks import mutated

SEED = 20_261
NAMED = re.compile(r'(?:explicit|coded): "([^"]+)"')
LONGEST_WORD = 3  # the tricks change a letter in the middle of the longest word


def telling_words(text: str) -> str | None:
    """The words that the rules name, as they stand in a message; None where none stand openly."""
    for reason in check_rules(text).reasons:
        if found := NAMED.match(reason):
            words = r"\W+".join(map(re.escape, found[1].split()))
            if match := re.search(rf"(?<!\w){words}(?!\w)", text, re.IGNORECASE):
                long_enough = max(map(len, match[0].split())) > LONGEST_WORD
                return match[0] if long_enough and match[0].isascii() else None
    return None


def sources() -> list[tuple[str, str]]:
    """Crisis messages of the train part, each with the words that gave it away to the rules."""
    lines = (SAMPLE / "crisis_train.jsonl").read_text(encoding="utf-8").splitlines()
    crises = [row["text"] for row in map(json.loads, lines) if row["label"] == "crisis"]
    return [(text, words) for text in crises if (words := telling_words(text))]


def mutation(text: str, words: str, dice: random.Random) -> str:
    """The message with its telling words mutated, wherever they stand."""
    trick = mutated(words.lower(), dice)
    return text.replace(words, trick)


def measure(found: Sequence[tuple[str, str]], mutations: int, seed: int) -> dict[str, Any]:
    """How many mutations pass, which, and the processor time that the rules took for one."""
    passed: list[str] = []
    seconds = 0.0
    for number in range(mutations):
        post = mutation(*found[number % len(found)], random.Random(f"{seed} {number}"))
        start = time.process_time()
        verdict = check_rules(post)
        seconds += time.process_time() - start
        if verdict.clear:
            passed.append(post)
    return {
        "messages": len(found),
        "mutations": mutations,
        "seed": seed,
        "passed": passed,
        "share": len(passed) / mutations,
        "interval": list(wilson(len(passed), mutations)),
        "milliseconds": 1000 * seconds / mutations,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutations", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--show", type=int, default=10, help="Show so many that pass.")
    parser.add_argument("--json", type=Path, help="Write the figures here as well.")
    options = parser.parse_args()
    found = measure(sources(), options.mutations, options.seed)
    low, high = found["interval"]
    print(
        f"{found['mutations']:,} mutations of {found['messages']:,} messages: "
        f"{len(found['passed']):,} pass, {found['share']:.3%} ({low:.3%} to {high:.3%}); "
        f"{found['milliseconds']:.2f} ms a message"
    )
    for post in found["passed"][: options.show]:
        print("   ", ascii(post))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
