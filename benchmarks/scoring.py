"""How fast does the shipped identifier score, beside the papers' arrangement and the limit?

    python benchmarks/scoring.py [--pairs 600] [--repeats 3] [--json OUT.json]

All on the same encoder, machine and texts, in one run, in turn:
- shared: the shipped identifier, rationales included;
- papers one by one: three pairs of separate encoders, one pair of posts at a time;
- papers batched: the same, in our batches of similar length;
- limit: the bare encoder over the same tokens, in the same batches, without any head.
Prints pairs per second and the ratios. Every text is different, so that nothing is saved by
encoding equal ones once.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

from stopwatch import seconds

from rewards.identifiers.epitome.identifier import EpitomeIdentifier, batches, tokenise
from rewards.identifiers.named import load_identifier
from rewriting.data import load_exchanges

Pairs = Sequence[tuple[str, str]]


def unique_pairs(count: int) -> list[tuple[str, str]]:
    """Pairs of the sample, numbered so that no two texts are alike."""
    exchanges = list(load_exchanges("sample"))
    chosen = (exchanges[i % len(exchanges)] for i in range(count))
    return [(f"{e.seeker_post} {i}", f"{e.response_post} {i}") for i, e in enumerate(chosen)]


def papers_arrangement(shared: EpitomeIdentifier) -> EpitomeIdentifier:
    """Six separate encoders of the same kind. Untrained: speed does not depend on the weights."""
    architecture = replace(shared.architecture, arrangement="independent")
    networks, tokenizer = architecture.build()
    for part in networks.modules():
        if hasattr(part, "merge") and hasattr(part, "lora_A"):
            part.merge()
    return EpitomeIdentifier(architecture, networks, tokenizer, "papers")


def assess(identifier: EpitomeIdentifier, pairs: Pairs, at_once: int) -> None:
    for start in range(0, len(pairs), at_once):
        seekers, responses = zip(*pairs[start : start + at_once], strict=True)
        identifier.assess(seekers, responses)


@torch.inference_mode()
def bare_encoder(identifier: EpitomeIdentifier, pairs: Pairs) -> None:
    architecture, network = identifier.architecture, identifier.networks[0]
    keys = [(seeker, architecture.max_seeker_tokens) for seeker, _ in pairs]
    keys += [(response, architecture.max_response_tokens) for _, response in pairs]
    ids = [torch.tensor(tokenise(identifier.tokenizer, *key)[0]) for key in keys]
    for rows in batches([len(row) for row in ids]):
        padded = torch.nn.utils.rnn.pad_sequence([ids[row] for row in rows], batch_first=True)
        ones = [torch.ones_like(ids[row]) for row in rows]
        mask = torch.nn.utils.rnn.pad_sequence(ones, batch_first=True)
        network.encoder(input_ids=padded, attention_mask=mask)


def pairs_per_second(work: Callable[[], None], count: int) -> float:
    start = seconds()
    work()
    return count / (seconds() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--pairs", type=int, default=600)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--model", default="epitome")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    shared = load_identifier(options.model)
    assert isinstance(shared, EpitomeIdentifier)
    papers, pairs = papers_arrangement(shared), unique_pairs(options.pairs)
    few = pairs[: max(20, options.pairs // 10)]  # one by one is slow
    work: dict[str, tuple[Callable[[], None], int]] = {
        "shared": (lambda: assess(shared, pairs, len(pairs)), len(pairs)),
        "papers one by one": (lambda: assess(papers, few, 1), len(few)),
        "papers batched": (lambda: assess(papers, pairs, len(pairs)), len(pairs)),
        "limit": (lambda: bare_encoder(shared, pairs), len(pairs)),
    }
    assess(shared, few, len(few))  # warm up
    speeds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(options.repeats):  # in turn, so that a busy moment hits all alike
        for name, (run, count) in work.items():
            speeds[name].append(pairs_per_second(run, count))
    medians = {name: sorted(values)[len(values) // 2] for name, values in speeds.items()}
    for name, value in medians.items():
        print(f"{name:<20}{value:10.1f} pairs/s   shared is {medians['shared'] / value:6.2f} ×")
    if options.json:
        options.json.write_text(json.dumps({"pairs_per_second": medians}, indent=2) + "\n")


if __name__ == "__main__":
    main()
