"""How fast is a step of PPO on a T5, and how much memory does it take, beside TRL 0.11.4?

    python benchmarks/ppo.py [--steps 2] [--adapter lora] [--json OUT.json]

TRL 0.11.4 is the last one with PPO for encoder-decoders; EmpRL (arXiv 2408.02976) was trained with
an earlier one of the same design. It is installed once, in an environment of its own in the cache
folder, with the same build of torch.

Three processes take steps in turn, on the CPU, with the same model, the same prompts, lengths,
batch, minibatches and inner epochs, and a reward that costs nothing:
- ours, with a prefix;
- TRL's, which tunes the whole model: its prefix-tuning fails on flan-t5-small, on a shape. With
  `--adapter lora` both train a LoRA adapter, so that only the running differs;
- the bare passes through the model that no PPO can do without (our_ppo.py says which).
All responses have the full length. The first step of each warms up and is not counted.

Two clocks: processor time, which other work on the machine hardly changes, and time on the wall.
Memory is the peak of a whole process, libraries included.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent / "peers"))

from peer_environment import TRL, python_with
from side_process import SideProcess

PEERS = Path(__file__).parent / "peers"
SIDES = ("ours", "trl", "bare")
Figures = dict[str, dict[str, Any]]


def prompts(options: argparse.Namespace) -> dict[str, Any]:
    """What all sides are told. To be called in a process of its own: it loads libraries."""
    from policies.generating.generator import Generator
    from rewriting.data import load_exchanges
    from rewriting.runtime.models.named import cache_folder, resolve

    generator = Generator.create(options.model, max_context_tokens=options.prompt_tokens)
    contexts = [generator.context(exchange) for exchange in load_exchanges("sample")]
    full = [context for context in contexts if len(context) == options.prompt_tokens]
    if len(full) < options.batch:
        raise SystemExit(f"error: only {len(full)} prompts of the sample are that long.")
    return {
        "contexts": full[: options.batch],
        "folder": resolve(options.model),
        "cache": str(cache_folder()),
    }


def measure(settings: Mapping[str, Any], python: Path, steps: int, threads: int) -> Figures:
    """Means over the steps of the seconds by part, and the peak, of each side."""
    commands = {
        "ours": [sys.executable, str(PEERS / "our_ppo.py"), "ours"],
        "trl": [str(python), str(PEERS / "trl_ppo.py")],
        "bare": [sys.executable, str(PEERS / "our_ppo.py"), "bare"],
    }
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    with ExitStack() as stack:
        sides = {s: stack.enter_context(SideProcess(commands[s], threads)) for s in SIDES}
        for side in SIDES:
            sides[side].ask(settings)
        for number in range(steps + 1):
            for side in SIDES:
                answer = sides[side].ask({})
                seconds = f"{sum(answer['cpu'].values()):.1f} s CPU"
                name = f"step {number}" if number else "warm-up"
                print(f"{name}: {side} {seconds} {answer['answer'] or ''}", file=sys.stderr)
                found[side].append(answer)
    return {side: summary(answers) for side, answers in found.items()}


def summary(answers: list[dict[str, Any]]) -> dict[str, Any]:
    _, *counted = answers
    means: dict[str, Any] = {"peak": counted[-1]["peak"]}
    for clock in ("cpu", "wall"):
        parts = {p: sum(a[clock][p] for a in counted) / len(counted) for p in counted[0][clock]}
        means[clock] = parts | {"step": sum(parts.values())}
    return means


def report(figures: Figures, batch: int) -> dict[str, float]:
    """Print the tables; the figures that have a mark."""
    ours, trl, bare = (figures[side] for side in SIDES)
    print(f"{'':<36}{'ours':>10}{'TRL 0.11.4':>12}{'ratio':>10}")
    for clock, name in (("cpu", "of the processor"), ("wall", "on the wall")):
        for part in ("sampling", "learning", "step"):
            row = (f"{part}, seconds {name}", ours[clock][part], trl[clock][part])
            print(f"{row[0]:<36}{row[1]:10.2f}{row[2]:12.2f}{row[2] / row[1]:8.1f} ×")
        rates = [batch / side[clock]["step"] for side in (ours, trl)]
        name = f"samples per second {name}"
        print(f"{name:<36}{rates[0]:10.2f}{rates[1]:12.2f}{rates[0] / rates[1]:8.1f} ×")
    memory = trl["peak"] / ours["peak"]
    print(f"{'peak memory, MB':<36}{ours['peak']:10.0f}{trl['peak']:12.0f}{memory:8.1f} ×")
    parts = ", ".join(f"{p} {s:.2f}" for p, s in bare["cpu"].items() if p != "step")
    print(f"bare passes, seconds of the processor: {bare['cpu']['step']:.2f} ({parts})")
    marks = {
        "times_trl": trl["cpu"]["step"] / ours["cpu"]["step"],
        "times_trl_on_the_wall": trl["wall"]["step"] / ours["wall"]["step"],
        "memory_of_trl": ours["peak"] / trl["peak"],
        "times_bare": ours["cpu"]["step"] / bare["cpu"]["step"],
    }
    print(f"samples per second: {marks['times_trl']:.1f} × TRL (mark: at least 3)")
    print(f"memory: {marks['memory_of_trl']:.2f} × TRL (mark: at most 1)")
    print(f"our step: {marks['times_bare']:.2f} × the bare passes (mark: at most 1.3)")
    return marks


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", default="flan-t5-small", help="an encoder-decoder by name")
    parser.add_argument("--adapter", choices=("prefix", "lora"), default="prefix", help="of ours")
    parser.add_argument("--rank", type=int, default=16, help="of LoRA")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--minibatch", type=int, default=8)
    parser.add_argument("--inner-epochs", type=int, default=4)
    parser.add_argument("--prompt-tokens", type=int, default=40)
    parser.add_argument("--response-tokens", type=int, default=24)
    parser.add_argument("--steps", type=int, default=2, help="that are counted, after a warm-up")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--prompts", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    options = parsed()
    if options.prompts:
        print(json.dumps(prompts(options)))
        return
    command = [sys.executable, __file__, *sys.argv[1:], "--prompts"]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    told = json.loads(output.splitlines()[-1])
    settings = {
        "model": options.model,
        "adapter": options.adapter,
        "rank": options.rank,
        "minibatch_size": options.minibatch,
        "inner_epochs": options.inner_epochs,
        "response_tokens": options.response_tokens,
        "scores": [float(row % 5) for row in range(options.batch)],
    }
    python = python_with(Path(told["cache"]) / TRL[0].replace("==", "-"), TRL)
    figures = measure({**settings, **told}, python, options.steps, options.threads)
    marks = report(figures, options.batch)
    if options.json:
        kept = {key: value for key, value in settings.items() if key != "scores"}
        kept |= {"batch": options.batch, "steps": options.steps, "threads": options.threads}
        options.json.write_text(json.dumps(kept | {"figures": figures} | marks, indent=2) + "\n")


if __name__ == "__main__":
    main()
