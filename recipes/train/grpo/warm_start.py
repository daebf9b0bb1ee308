"""A short supervised start for `train.py grpo --actions edits`, so that answers can be read.

TRL's SFTTrainer shows the model replies with the edits that a kind person made, said in the
grammar. What it learns is an adapter in OUTPUT/warm_start, from which reinforcement learning goes
on, and to which its KL is measured. A run that is started again keeps a finished warm start.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared.accelerator import share_of
from recipes.train.grpo.trainer import (
    device_arguments,
    explained,
    load_chat_model,
    lora,
    no_telemetry,
    save_adapter,
)
from rewriting.edits import Edit, apply_edits
from rewriting.errors import UserError
from rewriting.exchange import Exchange
from rewriting.runtime.processes import num_processes
from rewriting.runtime.settings import given, setting
from rewriting.sentences import split_sentences

if TYPE_CHECKING:
    from recipes.train.grpo.recipe import Config

logger = logging.getLogger(__name__)
RESULTS = "results.json"
WARM_STEPS = 40


@dataclass(frozen=True, kw_only=True)
class WarmSettings:
    """What the warm start depends on: other choices of `train.py grpo` do not undo it."""

    model: str = setting("smollm2-135m", "Causal chat model: a short name, a folder or a hub id.")
    rank: int = setting(16, "Rank of the LoRA matrices.", least=1)
    alpha: int = setting(32, "LoRA alpha: the update is scaled by alpha / rank.", least=1)
    lora_layers: str = setting(
        "all-linear",
        "Layers that get LoRA matrices, separated by commas; all-linear: every linear layer but "
        "the output layer.",
    )
    max_prompt_tokens: int = setting(
        384, "Maximum length of a prompt, in tokens; longer posts are cut to fit.", least=1
    )
    max_new_tokens: int = setting(64, "Maximum length of an answer, in tokens.", least=1)
    keep_crisis: bool = setting(False, "Also train on posts that the safety gate calls a crisis.")
    warm_steps: int = setting(
        WARM_STEPS,
        f"With actions edits: supervised steps of the warm start; {WARM_STEPS} unless given, 0: "
        "none.",
        least=0,
    )
    warm_data: str = setting(
        "sample:rewrites_train",
        "With actions edits: exchanges with a column `edits`, which the warm start learns from.",
    )
    warm_batch_size: int = setting(
        4, "With actions edits: examples per step of the warm start, over all processes.", least=1
    )
    warm_learning_rate: float = setting(
        1e-3, "With actions edits: peak learning rate of the warm start.", least=0
    )
    seed: int = setting(0, "The same seed gives the same order of the data and the same samples.")


def warm_up(config: Config) -> Path | None:
    """The folder of the adapter to start from; None where there are no warm steps."""
    if not config.warm_steps:
        return None
    folder = Path(config.output) / "warm_start"
    settings = asdict(given(WarmSettings, config))
    if finished(folder, settings):
        logger.info("%s: the warm start is finished already; going on from it", folder)
        return folder
    supervise(config, folder, settings)
    return folder


def examples_at_once(config: Config) -> int:
    """The examples of one process in a supervised step."""
    return share_of("warm_batch_size", config.warm_batch_size, num_processes())


def finished(folder: Path, settings: dict[str, Any]) -> bool:
    """Whether a warm start with these settings has been written, its results last."""
    try:
        found = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
        return bool(found["settings"] == settings)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def warm_figures(folder: Path | None) -> dict[str, Any]:
    """What the card of the run says of its warm start."""
    if folder is None:
        return {}
    found = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
    return {"warm_start": found["figures"]}


def supervise(config: Config, folder: Path, settings: dict[str, Any]) -> None:
    """Train on the edits, and write the adapter and its figures."""
    import trl
    from datasets import Dataset

    from rewriting.runtime.files.disk import disk_errors, write_json

    exchanges = edited_exchanges(config.warm_data, config.keep_crisis)
    steps = config.warm_steps or 0
    with explained():
        arguments = trl.SFTConfig(
            output_dir=str(folder),
            max_steps=steps,
            per_device_train_batch_size=examples_at_once(config),
            learning_rate=config.warm_learning_rate,
            warmup_steps=max(1, steps // 10),
            max_length=None,
            gradient_checkpointing=config.gradient_checkpointing,
            logging_steps=max(1, steps // 10),
            save_strategy="no",
            report_to="none",
            seed=config.seed,
            **device_arguments(),
        )
    model, tokenizer = load_chat_model(config.model)
    rows = supervision(exchanges, tokenizer, config.max_prompt_tokens, config.max_new_tokens)
    no_telemetry()
    with explained():
        trainer = trl.SFTTrainer(
            model=model,
            processing_class=tokenizer,
            args=arguments,
            train_dataset=Dataset.from_list(rows),
            peft_config=lora(config),
        )
    trainer.train()
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    if not losses or not math.isfinite(losses[-1]):
        raise UserError("the warm start diverged: lower warm_learning_rate.")
    with disk_errors(folder):
        save_adapter(trainer, folder, config.model)
    if trainer.accelerator.is_main_process:
        figures = {"rows": len(rows), "first_loss": losses[0], "last_loss": losses[-1]}
        write_json(folder / RESULTS, {"settings": settings, "figures": figures})
    trainer.accelerator.wait_for_everyone()


def edited_exchanges(data: str, keep_crisis: bool) -> list[Exchange]:
    """The exchanges of the sources that say which edits were made, the train part of each.

    A name such as sample:rewrites_train is one part, and taken whole.
    """
    from recipes.shared.sources import SPLIT_ALREADY, parts_of, sources_of, without_crises
    from rewriting.data import load_exchanges

    found: list[Exchange] = []
    for source in sources_of(data):
        if source.startswith("sample:") and source not in SPLIT_ALREADY:
            rows = list(load_exchanges(source))
        else:
            rows = parts_of(source)["train"]
        if not keep_crisis:
            rows = without_crises({"train": rows}, source)["train"]
        found += [exchange for exchange in rows if "edits" in exchange.extra]
    if not found:
        raise UserError(
            f"{data}: no row has `edits`, which the warm start learns from. Name "
            "sample:rewrites_train or an output of `rewriting rewrite`, or set warm_steps to 0."
        )
    return found


def supervision(
    exchanges: Sequence[Exchange], tokenizer: Any, max_prompt_tokens: int, max_new_tokens: int
) -> list[dict[str, str]]:
    """Requests, and the answers that say the edits of each exchange.

    Left out are answers longer than the model may write, and those that would be read as something
    else than was meant: the last sentence has no stop, and is taken for cut off.
    """
    from policies.chat.edit_prompt import EditPrompt
    from policies.chat.grammar import rewrite_of, write_edits
    from recipes.train.grpo.requests import request_texts

    prompt = EditPrompt(tokenizer, max_prompt_tokens)
    kept: list[tuple[Exchange, str]] = []
    for exchange in exchanges:
        edits = edits_of(exchange)
        answer = write_edits(edits, len(split_sentences(exchange.response_post)))
        rewrite, _ = rewrite_of(exchange, answer)
        meant = apply_edits(exchange.response_post, edits)
        short = len(prompt.tokens(answer)) < max_new_tokens
        if short and rewrite.rewritten_response == meant:
            kept.append((exchange, answer))
    if not kept:
        raise UserError("no edits of warm_data fit into max_new_tokens: raise it.")
    texts = request_texts([exchange for exchange, _ in kept], prompt)
    answers = [answer for _, answer in kept]
    pairs = zip(texts, answers, strict=True)
    return [{"prompt": text, "completion": answer} for text, answer in pairs]


def edits_of(exchange: Exchange) -> list[Edit]:
    """The edits that a row says were made to its reply."""
    try:
        edits = [Edit(**edit) for edit in exchange.extra["edits"] or ()]
        apply_edits(exchange.response_post, edits)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"warm_data: the edits of row {exchange.id!r} cannot be applied to its reply ({error})."
        ) from error
    return edits
