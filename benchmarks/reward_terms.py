"""How many rewrites a second does each reward term score, and the default sum beside the former?

    python benchmarks/reward_terms.py [--rows 96] [--repetitions 5] [--json OUT.json]
    python benchmarks/reward_terms.py --terms contrast,fluency

All on the same rewrites, in one run, in turn, with the models loaded before:
- bare: an encoder's passes over the whole rewritten replies, in batches of similar length, without
  any head; minilm-l6, and mpnet-base where it is installed;
- every built-in term alone, with its default options;
- default sum: what `train.py partner` rewards;
- former sum: what it rewarded, with the identifier `epitome`, before `contrast` took its place.
Prints seconds per rewrite, rewrites per second and the ratio to the bare minilm-l6; the ratio of
the two sums stands below.

A rewrite is a reply of the bundled sample with one sentence of the counterfactuals put into it.
Every post has four of them, as an agent samples them, so a term may read a post and its original
reply once for the four. Nothing else is remembered: every repetition has new rewrites, and before
each measurement all memories of texts in this process are emptied. In training an original that
comes back in a later step costs less than here.

Left out: `judge` and `hf:MODEL`, which are as fast as the model that a user names.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, zip_longest
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

sys.path.insert(0, str(Path(__file__).parent.parent))

from stopwatch import seconds

from recipes.shared.settings import PARTNER_REWARDS
from rewards.named import BUILT_INS, Models, build_rewards
from rewards.reading.blocks import sentences_by_kind
from rewards.reward_sum import RewardSum
from rewriting.data import load_exchanges
from rewriting.edits import Edit, apply_edits
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange
from rewriting.new_sentences import new_sentences
from rewriting.runtime.batches import batches_by_length
from rewriting.runtime.cache import ScoreCache
from rewriting.runtime.language_models.backbone import Backbone
from rewriting.runtime.language_models.tuned_encoder import CPU_BATCH_TOKENS, GPU_BATCH_TOKENS
from rewriting.runtime.models.named import load_encoder, status
from rewriting.sentences import split_sentences

FORMER_REWARDS = (
    "{empathy_change: 1.0, fluency: 25.0, coherence: 1.0, "
    "mutual_information: {weight: 2.0, forward_weight: 0.0}, "
    "repetition: 1.0, edit_size: 0, specificity: 0}"
)
"""The default of `train.py partner` before commit caa0e5b."""
FORMER_IDENTIFIER = "epitome"

REFERENCE, DEFAULT, FORMER = "bare minilm-l6", "default sum", "former sum"
TERMS = tuple(name for name in BUILT_INS if name != "judge")
CANDIDATES = 4  # rewrites of one post
WARM_UP_ROWS = 16
COLUMNS = ("seeker_post", "response_post", *MECHANISMS)

Columns = dict[str, Any]  # name → a list of values
Work = Callable[[Columns], Any]


@dataclass(frozen=True, slots=True)
class Speed:
    """The medians of one piece of work over the repetitions, and each repetition's seconds."""

    seconds_per_row: float
    rows_per_second: float
    times_bare: float
    repetitions: list[float]


def make_blocks(rows: int, repetitions: int, seed: int = 0) -> list[Columns]:
    """Rewrites to warm up on, and others for each repetition. No rewrite comes twice."""
    if min(rows, repetitions) < 1:
        raise UserError(f"--rows and --repetitions are 1 or more, not {rows} and {repetitions}.")
    generator = random.Random(seed)
    exchanges, sentences = sample_exchanges(generator), sample_sentences(generator)
    sizes = [min(rows, WARM_UP_ROWS), *[rows] * repetitions]
    posts = [-(-size // CANDIDATES) for size in sizes]  # rounded up
    if sum(posts) > len(exchanges) or sum(sizes) > len(sentences):
        raise UserError(
            f"the sample has {len(exchanges)} exchanges and {len(sentences)} sentences, too few "
            f"for {repetitions} × {rows} rewrites: choose less with --rows or --repetitions."
        )
    fresh_exchanges, fresh_sentences = iter(exchanges), iter(sentences)
    return [
        rewrites(list(islice(fresh_exchanges, count)), islice(fresh_sentences, size), generator)
        for count, size in zip(posts, sizes, strict=True)
    ]


def sample_exchanges(generator: random.Random) -> list[Exchange]:
    """The sample's exchanges: one of every post, then a second one of every post, and so on."""
    by_post: dict[str, list[Exchange]] = {}
    for exchange in load_exchanges("sample:train"):
        by_post.setdefault(exchange.seeker_post, []).append(exchange)
    groups = list(by_post.values())
    generator.shuffle(groups)
    return [one for turn in zip_longest(*groups) for one in turn if one is not None]


def sample_sentences(generator: random.Random) -> list[str]:
    """Sentences of all kinds, each with a capital letter and an end, so that they split well."""
    exchanges = load_exchanges("sample:counterfactuals_train")
    texts = dict.fromkeys(text for one in exchanges for text in sentences_by_kind(one).values())
    whole = [text for text in texts if text[0].isupper() and text[-1] in ".!?"]
    generator.shuffle(whole)
    return whole


def rewrites(
    exchanges: Sequence[Exchange], sentences: Iterator[str], generator: random.Random
) -> Columns:
    """The columns of a reward: each sentence put somewhere into its exchange's reply."""
    columns: Columns = {name: [] for name in ("completions", "sentence", *COLUMNS)}
    for number, sentence in enumerate(sentences):
        row = exchanges[number // CANDIDATES].row()
        completion = with_sentence(row["response_post"], sentence, generator)
        for name, value in (row | {"completions": completion, "sentence": sentence}).items():
            if name in columns:
                columns[name].append(value)
    return columns


def with_sentence(reply: str, sentence: str, generator: random.Random) -> str:
    """The reply with the sentence at a random place where a splitter finds it again."""
    places = range(len(split_sentences(reply)) + 1)
    texts = [apply_edits(reply, [Edit.insert(place, sentence)]) for place in places]
    return generator.choice([text for text in texts if new_sentences(text, reply, sentence)])


class BareEncoder:
    """An encoder's passes over rewritten replies; what comes out does not matter here."""

    def __init__(self, name: str) -> None:
        self.encoder, self.tokenizer = load_encoder(name, torch.float32)

    @torch.inference_mode()
    def __call__(self, columns: Columns) -> None:
        replies, device = columns["completions"], self.encoder.device
        ids = [torch.tensor(self.tokenizer(text, truncation=True)["input_ids"]) for text in replies]
        most = CPU_BATCH_TOKENS if device.type == "cpu" else GPU_BATCH_TOKENS
        for rows in batches_by_length([len(row) for row in ids], most):
            padded = pad_sequence([ids[row] for row in rows], batch_first=True)
            mask = pad_sequence([torch.ones_like(ids[row]) for row in rows], batch_first=True)
            states = self.encoder(input_ids=padded.to(device), attention_mask=mask.to(device))
            states.last_hidden_state.cpu()  # a GPU is waited for


def load_work(terms: Sequence[str], batch_size: int | None = None) -> dict[str, Work]:
    """Everything that is measured, by name, with its models loaded."""
    models = Models(batch_size=batch_size)
    # Mutual information puts an adapter on its language model: the others keep one without.
    former = Models(
        identifier=FORMER_IDENTIFIER, language_model=Backbone.load(), batch_size=batch_size
    )
    rewards = {
        name: build_rewards({name: 1.0}, former if name == "mutual_information" else models)
        for name in terms
    }
    rewards[DEFAULT] = build_rewards(PARTNER_REWARDS, models)
    rewards[FORMER] = build_rewards(FORMER_REWARDS, former)
    work: dict[str, Work] = {REFERENCE: BareEncoder("minilm-l6")}
    if any(model["installed"] for model in status() if model["name"] == "mpnet-base"):
        work["bare mpnet-base"] = BareEncoder("mpnet-base")
    return work | {name: scoring(reward) for name, reward in rewards.items()}


def scoring(reward: RewardSum) -> Work:
    return lambda columns: reward.score(**columns)


def forget() -> None:
    """Empty all memories of texts in this process.

    Terms share models, and models remember: without this, what is measured first would pay for
    what is measured after it. Fresh texts alone would not do, since the sample has 84 posts.
    """
    split_sentences.cache_clear()
    for thing in gc.get_objects():
        if type(thing) is ScoreCache:
            thing.forget()


def measure(work: Mapping[str, Work], blocks: Sequence[Columns]) -> dict[str, list[float]]:
    """Seconds per row, a list over the repetitions. The first block is to warm up on."""
    warm_up, *repetitions = blocks
    for run in work.values():
        run(warm_up)
    times: dict[str, list[float]] = {name: [] for name in work}
    for columns in repetitions:  # in turn, so that a busy moment hits all alike
        for name, run in work.items():
            forget()
            start = seconds()
            run(columns)
            times[name].append((seconds() - start) / len(columns["completions"]))
    return times


def speeds(times: Mapping[str, list[float]]) -> dict[str, Speed]:
    medians = {name: median(values) for name, values in times.items()}
    return {
        name: Speed(value, 1 / value, value / medians[REFERENCE], times[name])
        for name, value in medians.items()
    }


def chosen_terms(text: str) -> list[str]:
    """The names in a text, separated by commas; all terms where it is blank."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in TERMS:
            raise UserError(f"--terms: {name!r} is not measured here; there is {', '.join(TERMS)}.")
    return names or list(TERMS)


def print_speeds(measured: Mapping[str, Speed]) -> None:
    print(f"{'':<26}{'s/rewrite':>12}{'rewrites/s':>13}{'× ' + REFERENCE:>18}")
    for name, speed in measured.items():
        print(f"{name:<26}{speed.seconds_per_row:12.6f}{speed.rows_per_second:13.1f}", end="")
        print(f"{speed.times_bare:18.3f}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=96, help="rewrites of a repetition")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--terms", default="", help="separated by commas; all unless given")
    parser.add_argument("--batch-size", type=int, help="texts that a model reads at once")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    terms = chosen_terms(options.terms)
    blocks = make_blocks(options.rows, options.repetitions)
    measured = speeds(measure(load_work(terms, options.batch_size), blocks))
    ratio = measured[DEFAULT].rows_per_second / measured[FORMER].rows_per_second
    threads = torch.get_num_threads()
    print(f"{options.rows} rewrites, {CANDIDATES} of a post; ", end="")
    print(f"medians of {options.repetitions} repetition(s); {threads} thread(s)")
    print_speeds(measured)
    print(f"The default sum scores {ratio:.2f} × as many rewrites a second as the former sum.")
    if options.json:
        figures = {
            "rows": options.rows,
            "candidates": CANDIDATES,
            "batch_size": options.batch_size,
            "repetitions": options.repetitions,
            "threads": threads,
            "default_rewards": PARTNER_REWARDS,
            "former_rewards": FORMER_REWARDS,
            "speeds": {name: asdict(speed) for name, speed in measured.items()},
            "default_to_former": ratio,
        }
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"error: {error}")
