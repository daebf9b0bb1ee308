"""Which share of a decoding step does drawing a token cost, with a large vocabulary?

    OMP_NUM_THREADS=1 python benchmarks/sampling_noise.py [--rows 32] [--vocabulary 151936]

A model of random weights in the shape of Qwen2.5-0.5B reads a prompt and then decodes token by
token. Every step is timed once; on its logits a token is then drawn both ways: by Gumbel noise for
every word and row, drawn on the CPU (what the edit agent did before), and by one uniform number per
row (policies/reading/sampling.py). Both draw from the same distribution and give the token's
log-probability. In turn, so that a busy moment hits both.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent.parent))

from stopwatch import Stopwatch

from policies.reading.cached_reading import Reading
from policies.reading.sampling import draw, uniforms
from rewriting.runtime.language_models.log_probs import target_log_probs
from rewriting.runtime.models.attention import share_keys

PROMPT_TOKENS = 96


def random_model(vocabulary: int, layers: int, width: int) -> Any:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=4864 * width // 896,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        num_key_value_heads=max(1, width // 448),
        max_position_embeddings=1024,
        tie_word_embeddings=True,
    )
    model = Qwen2ForCausalLM(config).eval().requires_grad_(False)
    share_keys(model)
    return model


def gumbel_draw(logits_RV: Tensor, generators: Sequence[torch.Generator]) -> tuple[Tensor, Tensor]:
    """A token per row and its log-probability, as the argmax of logits plus Gumbel noise."""
    size = logits_RV.shape[-1]
    uniform_RV = torch.stack([torch.rand(size, generator=one) for one in generators])
    tiny = torch.finfo(uniform_RV.dtype).tiny
    noise_RV = -torch.log(-torch.log(uniform_RV.clamp(min=tiny, max=1 - 1e-7)))
    chosen_R = (logits_RV + noise_RV.to(logits_RV.device)).argmax(dim=-1)
    return chosen_R, target_log_probs(logits_RV, chosen_R)


@torch.no_grad()
def seconds(model: Any, rows: int, tokens: int) -> dict[str, float]:
    """Of a decoding step: reading a token and its logits, and both ways of drawing."""
    seeds = range(rows)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    uniform_RT = uniforms(seeds, tokens + 1, model.device)
    reading = Reading(model)
    pieces = torch.randint(model.config.vocab_size, (rows, PROMPT_TOKENS)).tolist()
    sums = dict.fromkeys(("reading", "gumbel", "uniform"), 0.0)
    for step in range(tokens + 1):  # the first one reads the prompt, and warms everything up
        clock = Stopwatch()
        with clock("reading"):
            piece = reading.read(pieces)
            logits_RV = piece.logits(range(rows), [len(row) - 1 for row in pieces]).float()
        with clock("gumbel"):
            gumbel_draw(logits_RV, generators)
        with clock("uniform"):
            chosen_R, _, _ = draw(logits_RV, uniform_RT[:, step])
        pieces = chosen_R[:, None].tolist()
        if step:
            for part in sums:
                sums[part] += clock.seconds[f"seconds_{part}"] / tokens
    return sums


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--vocabulary", type=int, default=151_936)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--width", type=int, default=896, help="a multiple of 64")
    parser.add_argument("--rows", type=int, default=32, help="decoded together")
    parser.add_argument("--tokens", type=int, default=12, help="steps that are timed")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    model = random_model(options.vocabulary, options.layers, options.width)
    spent = seconds(model, options.rows, options.tokens)
    print(f"{options.rows} rows, {options.vocabulary:,} words, {torch.get_num_threads()} thread(s)")
    print(f"reading a token and its logits {1000 * spent['reading']:8.1f} ms")
    shares = {way: spent[way] / (spent["reading"] + spent[way]) for way in ("gumbel", "uniform")}
    for way, share in shares.items():
        print(f"drawing it, {way:<19}{1000 * spent[way]:8.1f} ms, {share:6.1%} of a step")
    if options.json:
        figures = {"seconds": spent, "shares": shares} | {
            name: getattr(options, name) for name in ("vocabulary", "layers", "width", "rows")
        }
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
