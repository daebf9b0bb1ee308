"""What does a step cost when it gets 4 and 16 times as much to do, of PARTNER and of PPO?

    OMP_NUM_THREADS=1 python benchmarks/scaling.py [--only samples,tokens] [--json OUT.json]

One size grows at a time, from a small step:
- of PARTNER (partner_step.py, from the shipped start): samples of an exchange, exchanges, and
  sentences of a response, which the policy sees four at a time, so that there are more edits too;
- of PPO (our_ppo.py, with a prefix): responses of a batch, in minibatches of the same size, and
  tokens of a response.

Printed for every part of a step: its seconds at 1 ×, how many times as many it takes at 4 × and at
16 ×, and from 4 × to 16 ×. The same is printed of the tokens that the policy wrote: it may leave a
reply as it is, and a step in which it often does costs little. Its learning rate is 0, lest it does
so more and more. The smallest step is taken twice and the quicker one counts, since the first one
warms up. No exchange comes twice, so that no score is remembered. What grows faster than its size,
by more than a tenth, is marked with an exclamation mark.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent / "peers"))

from our_ppo import ours as ppo_step
from partner_step import Ours
from side_process import TwoClocks
from stopwatch import Stopwatch, is_of_the_processor

from recipes.train.partner.recipe import Config
from rewriting.data import load_exchanges
from rewriting.exchange import Exchange
from rewriting.sentences import split_sentences

FACTORS = (1, 4, 16)
PAIRS = {"4 : 1": (4, 1), "16 : 1": (16, 1), "16 : 4": (16, 4)}
SLACK = 1.1
PARTNER = {"samples": 2, "exchanges": 2, "sentences": 2}
PPO = {"responses": 4, "tokens": 8}
WRITTEN = "tokens written"
Parts = dict[str, float]
"""Seconds by part of a step, all of it as `step`; and the tokens that were written."""


class PartnerSteps:
    """Steps of PARTNER of any size, each on exchanges that no other one had."""

    def __init__(self, config: Config) -> None:
        self.ours = Ours(config)
        self.number = 0
        self.rows: dict[int, Iterator[Exchange]] = {}

    def __call__(self, *, samples: int, exchanges: int, sentences: int) -> Parts:
        rows = self.rows.setdefault(sentences, responses_of(sentences))
        self.ours.config = replace(self.ours.config, num_samples=samples)
        self.number += 1
        clock = Stopwatch()
        episodes = self.ours.step(self.number, [next(rows) for _ in range(exchanges)], clock)
        parts = {name.removeprefix("seconds_"): spent for name, spent in clock.seconds.items()}
        written = sum(len(turn.action.tokens) for episode in episodes for turn in episode.turns)
        return with_sum(parts, written)


def responses_of(length: int) -> Iterator[Exchange]:
    """Exchanges of the sample with responses of so many sentences; no sentence comes twice."""
    left: list[str] = []
    for exchange in load_exchanges("sample"):
        left += split_sentences(exchange.response_post).texts
        if len(left) >= length:
            yield Exchange(exchange.seeker_post, " ".join(left[:length]))
            left = left[length:]


class PPOSteps:
    """Steps of PPO of any size, each the first one of a new generator."""

    def __init__(self, model: str) -> None:
        from policies.generating.generator import Generator

        self.settings = {"model": model, "adapter": "prefix", "inner_epochs": 2}
        generator = Generator.create(model, max_context_tokens=64)
        self.contexts = [generator.context(exchange) for exchange in load_exchanges("sample")]

    def __call__(self, *, responses: int, tokens: int) -> Parts:
        sizes: dict[str, Any] = {"minibatch_size": 4, "response_tokens": tokens, "rank": 0}
        sizes["contexts"] = self.contexts[:responses]
        sizes["scores"] = [float(row % 5) for row in range(responses)]
        clocks = TwoClocks()
        ppo_step(self.settings | sizes)(clocks)
        return with_sum(clocks.cpu if is_of_the_processor() else clocks.wall, responses * tokens)


def with_sum(seconds: Parts, written: int) -> Parts:
    return {**seconds, "step": sum(seconds.values()), WRITTEN: float(written)}


def grown(step: Callable[..., Parts], base: Mapping[str, int], name: str) -> dict[int, Parts]:
    """Factor → seconds by part, with one size so many times as large."""
    found: dict[int, Parts] = {}
    for factor in FACTORS:
        sizes = {**base, name: factor * base[name]}
        tries = [step(**sizes) for _ in range(2 if factor == 1 else 1)]
        found[factor] = min(tries, key=lambda parts: parts["step"])
        print(f"{name} {sizes[name]}: {found[factor]['step']:.1f} s", file=sys.stderr, flush=True)
    return found


def growth(found: Mapping[int, Parts], part: str) -> dict[str, float]:
    """How many times as long a part takes at one factor as at another."""
    return {
        name: found[more][part] / max(found[less][part], 1e-9)
        for name, (more, less) in PAIRS.items()
    }


def is_worse_than_linear(ratios: Mapping[str, float]) -> bool:
    return any(ratios[name] > SLACK * more / less for name, (more, less) in PAIRS.items())


def report(name: str, base: int, found: Mapping[int, Parts]) -> dict[str, dict[str, float]]:
    """Print the growth of every part, and return it."""
    title = f"{name} {', '.join(str(base * factor) for factor in FACTORS)}"
    print(f"{title:<28}{'at 1 ×':>16}" + "".join(f"{name:>10}" for name in PAIRS))
    ratios = {part: growth(found, part) for part in found[1]}
    for part, values in ratios.items():
        mark = " !" if is_worse_than_linear(values) else ""
        cells = "".join(f"{value:10.2f}" for value in values.values())
        print(f"  {part:<26}{found[1][part]:16.2f}{cells}{mark}", flush=True)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    names = [*PARTNER, *PPO]
    parser.add_argument("--only", default=",".join(names), help="sizes to grow, by commas")
    parser.add_argument("--set", type=json.loads, default={}, help="settings of partner, as JSON")
    parser.add_argument("--ppo-model", default="flan-t5-small")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    chosen = [name.strip() for name in options.only.split(",")]
    if unknown := set(chosen) - set(names):
        raise SystemExit(f"error: there is no size {unknown.pop()!r}; use {', '.join(names)}.")
    figures: dict[str, Any] = {}
    still = {"learning_rate": 0.0}
    kinds: list[tuple[Mapping[str, int], Callable[[], Callable[..., Parts]]]] = [
        (PARTNER, lambda: PartnerSteps(Config(**(asdict(Config()) | still | options.set)))),
        (PPO, lambda: PPOSteps(options.ppo_model)),
    ]
    for base, make in kinds:
        wanted = [name for name in base if name in chosen]
        step = make() if wanted else None
        for name in wanted:
            found = grown(step, base, name)
            ratios = report(name, base[name], found)
            figures[name] = {"base": base, "seconds": found, "growth": ratios}
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
