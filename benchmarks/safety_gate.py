"""How long the safety gate takes for a message, by its rules alone and with the learned reader.

    OMP_NUM_THREADS=1 python benchmarks/safety_gate.py

Prints milliseconds a message on one core, over the dev part of the crisis corpus: the median of
several passes, none of which remembers a text of the pass before. Aims: 3 ms for the rules, 30 ms
with the reader.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence

from rewriting.data.load import SAMPLE
from rewriting.safety import Gate

PASSES = 3


def milliseconds(gate: Gate, texts: Sequence[str]) -> float:
    """The median over passes of the mean time of a message."""
    gate.check_post("Warm up: the first message compiles the phrases.")
    for text in texts:  # phrases are compiled when a text needs them first
        Gate().check_post(text)
    passes = []
    for number in range(PASSES):
        start = time.perf_counter()
        for text in texts:
            gate.check_post(f"{text} {number}")
        passes.append(1000 * (time.perf_counter() - start) / len(texts))
    return statistics.median(passes)


def main() -> None:
    import torch

    torch.set_num_threads(1)
    lines = (SAMPLE / "crisis_dev.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    rules = milliseconds(Gate(), texts)
    both = milliseconds(Gate.load(), texts)
    print(f"{len(texts)} messages, one core: rules {rules:.2f} ms, with the reader {both:.2f} ms")
    print(f"the reader takes {both / rules:.1f} times as long")


if __name__ == "__main__":
    main()
