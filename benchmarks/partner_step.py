"""How long is a step of PARTNER, and how much memory does it take, beside the released code's way?

    python benchmarks/partner_step.py [--exchanges 4] [--samples 4] [--steps 3] [--json OUT.json]

Time. Ours is the step of policies/training/reinforce/loop.py with the defaults of
recipes/train/partner/recipe.py, on a new policy. Then the very samples that it drew go the way of
the code released with the paper (arXiv 2101.07714), on the same model:
- sampling and scoring one sample at a time; the update in padded batches, as there, and so the
  reference, which the released code lacks;
- generation without a key-value cache: every new token reads the whole text again;
- the unchanged original is scored again for every sample;
- a model each for policy, reference, fluency, the forward and the backward language model, and six
  encoders for empathy;
- the whole model is trained; with --adapter an adapter like ours, so that only the running differs.
It is spared what it does worse still: it goes on writing after the first sentence, up to 1,000
tokens.
No exchange comes twice, so that ours is not helped by originals it has scored before.

Memory. The peak of a process that samples and updates, and of one that does the whole step, with
all rewards and the reference.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent / "peers"))

from released_partner import Released, any_advantages
from stopwatch import Stopwatch

from policies.training.objective import leave_one_out
from policies.training.reinforce.loop import improve, penalised_rewards
from policies.training.reinforce.rollouts import (
    Episode,
    kl_figures,
    outcomes_of,
    reward_columns,
    sample_episodes,
)
from policies.training.reinforce.settings import Settings
from recipes.shared.settings import kl_penalty
from recipes.shared.sources import drawn
from recipes.train.partner.recipe import Config, start_agent
from rewriting.data import load_exchanges
from rewriting.data.columns import column_names
from rewriting.exchange import Exchange
from rewriting.runtime.settings import given
from rewriting.runtime.training.engine import Engine

PARTS = ("sampling", "rewards", "reference", "update")
MARKS = {"rewards": 6, "step": 8}
"""How many times as fast as the released way ours ought to be at least."""


class Ours:
    """Our step. bare: without rewards and without the reference."""

    def __init__(self, config: Config, *, bare: bool = False) -> None:
        from accelerate import Accelerator

        self.config, self.accelerator = config, Accelerator()
        self.agent = start_agent(config)
        self.reward: Any = None
        self.kl: Any = None
        if not bare:
            from rewards.named import Models, build_rewards

            self.agent.freeze_reference()
            models = Models(identifier=config.identifier, language_model=self.agent.backbone)
            self.reward, self.kl = build_rewards(config.rewards, models), kl_penalty(config)
        self.settings = given(Settings, config)
        self.engine = Engine(
            self.agent.module.eval(),
            self.accelerator,
            learning_rate=config.learning_rate,
            max_grad_norm=config.max_grad_norm,
            layers=self.agent.layers,
        )

    def step(self, number: int, exchanges: Sequence[Exchange], clock: Stopwatch) -> list[Episode]:
        config, samples = self.config, self.config.num_samples
        with clock("sampling"):
            episodes = sample_episodes(
                self.agent,
                exchanges,
                num_samples=samples,
                seed=config.seed,
                step=number,
                span_length=config.span_length,
                max_edits=config.max_edits,
            )
        advantages = any_advantages(len(episodes))
        if self.reward is not None:
            with clock("rewards"):
                columns = reward_columns(episodes, column_names(exchanges))
                scores = self.reward.score(update=True, **columns)
            with clock("reference"):
                kl_E = None
                if self.kl is not None:
                    kl_E = kl_figures(self.agent, episodes, self.kl, config.micro_batch_size)
            rewards_NG = penalised_rewards(outcomes_of(episodes, scores, kl_E)).view(-1, samples)
            advantages = leave_one_out(rewards_NG).flatten().tolist()
        with clock("update"):
            turns = [(t, a, a) for e, a in zip(episodes, advantages, strict=True) for t in e.turns]
            improve(self.engine, self.agent, turns, len(episodes), self.settings, number)
        return episodes


def chosen_exchanges(config: Config, steps: int) -> list[list[Exchange]]:
    """New exchanges of the sample for every step."""
    sample, size = list(load_exchanges("sample")), config.batch_size
    if steps * size > len(sample):
        raise SystemExit(f"error: the sample has {len(sample)} exchanges, not {steps} × {size}.")
    rows = drawn(sample, steps * size, config.seed)
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def seconds(config: Config, steps: int, adapter: bool) -> dict[str, dict[str, float]]:
    """Seconds of a step by part, both ways; in turn, so that a busy moment hits both."""
    ours = Ours(config)
    released = Released(config, ours.agent, adapter=adapter)
    warm_up, *batches = chosen_exchanges(config, steps + 1)
    released.step(ours.step(0, warm_up, Stopwatch())[:1], Stopwatch())
    sums = {way: dict.fromkeys(PARTS, 0.0) for way in ("ours", "released")}
    for number, exchanges in enumerate(batches, start=1):
        clocks = {"ours": Stopwatch(), "released": Stopwatch()}
        released.step(ours.step(number, exchanges, clocks["ours"]), clocks["released"])
        for way, clock in clocks.items():
            for part in PARTS:
                sums[way][part] += clock.seconds[f"seconds_{part}"] / steps
    return {way: parts | {"step": sum(parts.values())} for way, parts in sums.items()}


def peak(config: Config, steps: int, bare: bool) -> float:
    """The peak memory of this process after some steps, in MB."""
    ours = Ours(config, bare=bare)
    for number, exchanges in enumerate(chosen_exchanges(config, steps)):
        ours.step(number, exchanges, Stopwatch())
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def peak_of_process(config: Config, steps: int, kind: str) -> float:
    """The same in a process of its own. To be called before this one loads a model: on Linux a
    new process counts what its parent held when it began."""
    arguments = ["--peak", kind, "--steps", str(steps), "--settings", json.dumps(asdict(config))]
    command = [sys.executable, __file__, *arguments]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return float(output.split()[-1])


def main() -> None:
    defaults = Config(from_policy="", warm_steps=1)  # a new policy; the warm start is not run
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", default=defaults.model)
    parser.add_argument("--rewards", default=defaults.rewards, help="as in train.py partner")
    parser.add_argument("--exchanges", type=int, default=defaults.batch_size, help="of a step")
    parser.add_argument("--samples", type=int, default=defaults.num_samples, help="of an exchange")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--adapter", action="store_true", help="the released way trains a LoRA too")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--peak", choices=("bare", "full"), help=argparse.SUPPRESS)
    parser.add_argument("--settings", type=json.loads, default={}, help=argparse.SUPPRESS)
    options = parser.parse_args()
    given = {"model": options.model, "rewards": options.rewards, "num_samples": options.samples}
    config = Config(**(asdict(defaults) | given | {"batch_size": options.exchanges}))
    if options.peak:
        print(peak(Config(**options.settings), options.steps, options.peak == "bare"))
        return
    megabytes = {kind: peak_of_process(config, options.steps, kind) for kind in ("bare", "full")}
    times = seconds(config, options.steps, options.adapter)
    ratios = {part: times["released"][part] / times["ours"][part] for part in (*PARTS, "step")}
    print(f"{'seconds of a step':<20}{'ours':>10}{'released':>10}{'ratio':>10}")
    for part, ratio in ratios.items():
        mark = f"  (mark: {MARKS[part]})" if part in MARKS else ""
        ours, released = times["ours"][part], times["released"][part]
        print(f"{part:<20}{ours:10.2f}{released:10.2f}{ratio:8.1f} ×{mark}")
    memory_ratio = megabytes["full"] / megabytes["bare"]
    print(f"peak memory: bare update {megabytes['bare']:.0f} MB, ", end="")
    print(f"whole step {megabytes['full']:.0f} MB, {memory_ratio:.2f} ×")
    if options.json:
        figures = {
            "model": config.model,
            "exchanges": config.batch_size,
            "samples": config.num_samples,
            "steps": options.steps,
            "seconds": times,
            "ratios": ratios,
            "peak_megabytes": megabytes,
            "memory_ratio": memory_ratio,
        }
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
