"""Appraisals by prompt: a language model fills the gap in "This sentence is about …".

A cloze whose filler names the label beat plain fine-tuned encoders in ALOE (arXiv 2405.00948). Any
causal, seq2seq or masked language model can be asked: as it is, with a few examples in the
prompt, or fine-tuned through LoRA. The answer is read at the gap, over the first tokens of the ten
fillers, in one pass; the answers a model prefers whatever it is asked are divided out (contextual
calibration, arXiv 2102.09690).

Legend: N prompts, T tokens, D width, V vocabulary, L = 10 labels, R = 2 roles.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from rewards.appraisals.appraiser import SETTINGS, WEIGHTS, read_settings
from rewards.appraisals.units import LABELS, Unit
from rewriting.data.appraisals import NO_APPRAISAL, ROLES, Role
from rewriting.errors import UserError
from rewriting.runtime.files.model_files import (
    one_line_where_unfit,
    write_model_settings,
)
from rewriting.runtime.files.tensors import load_tensors, save_tensors
from rewriting.runtime.language_models.log_probs import has_plain_head
from rewriting.runtime.language_models.lora import add_lora
from rewriting.runtime.models import named as models

FILLERS = {
    "Pleasantness": "feelings",
    "Anticipated Effort": "effort",
    "Attentional Activity": "attention",
    "Certainty": "doubt",
    "Objective Experience": "events",
    "Self-Other Agency": "responsibility",
    "Situational Control": "control",
    "Advice": "advice",
    "Trope": "comfort",
    NO_APPRAISAL: "nothing",
}
"""What fills the gap for each label."""

SPEAKERS = {"target": "A person in distress wrote", "observer": "A peer answered"}
QUESTION = '{speaker}: "{text}"\nThis sentence is about'
CONTENT_FREE = ("N/A", "...", "something")  # says nothing, so the answer shows the model's leaning
SENTINEL = "<extra_id_0>"  # T5's gap
MAX_WORDS = 96
PROMPTS_AT_ONCE = 16


def prompt_of(text: str, role: Role) -> str:
    """The question about one sentence; the filler comes next."""
    words = " ".join(text.split()[:MAX_WORDS])
    return QUESTION.format(speaker=SPEAKERS[role], text=words)


def few_shot(units: Sequence[Unit], per_label: int, fillers: Mapping[str, str], seed: int) -> str:
    """Answered questions to stand before a prompt: so many of every label, mixed, all short."""
    generator = random.Random(seed)
    chosen: list[Unit] = []
    for label in LABELS:
        own = sorted((u for u in units if u.label == label), key=lambda u: len(u.text.split()))
        chosen += generator.sample(own[: max(per_label, len(own) // 2)], min(per_label, len(own)))
    generator.shuffle(chosen)
    return "".join(f"{prompt_of(u.text, u.role)} {fillers[u.label]}.\n\n" for u in chosen)


class GapFiller(nn.Module):
    """A language model that is asked for the filler: prompts → logits of the labels, [N, L].

    rank: of LoRA matrices on its linear layers, to be trained; 0 leaves it frozen.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        kind: str,
        *,
        name: str = "",
        fillers: Mapping[str, str] = FILLERS,
        rank: int = 0,
    ) -> None:
        super().__init__()
        self.model = model.requires_grad_(False)
        self.tokenizer = tokenizer
        self.kind = kind
        self.name = name
        self.rank = rank
        self.fillers = dict(fillers)
        self.plain_head = kind == "causal" and has_plain_head(model)
        self.shared, self.filler_ids = first_tokens(tokenizer, list(self.fillers.values()))
        self.most_tokens = most_tokens(model, tokenizer)
        if rank:
            output = self.model.get_output_embeddings()
            add_lora(self.model, rank, alpha=2 * rank, leave_out=output)

    @classmethod
    def load(cls, name: str, *, fillers: Mapping[str, str] = FILLERS, rank: int = 0) -> Self:
        kind = models.kind_of(name)
        loaders = {
            "causal": models.load_causal,
            "seq2seq": models.load_seq2seq,
            "masked": models.load_masked,
        }
        if kind not in loaders:
            raise UserError(f"{name} has no language-model head: it cannot fill a gap.")
        model, tokenizer = loaders[kind](name, torch.float32)
        return cls(model, tokenizer, kind, name=name, fillers=fillers, rank=rank)

    def forward(self, prompts: Sequence[str]) -> Tensor:
        gap = {"causal": "", "seq2seq": f" {SENTINEL}.", "masked": " {}."}[self.kind]
        if self.kind == "masked":
            gap = gap.format(self.tokenizer.mask_token)
        read = self.tokenizer(
            [prompt + gap for prompt in prompts],
            padding=True,
            padding_side="right",
            return_tensors="pt",
            return_token_type_ids=False,
        ).to(self.model.device)
        length = read["input_ids"].shape[1] + len(self.shared)
        if length > self.most_tokens:
            raise UserError(
                f"a prompt is {length} tokens long, and {self.name or 'the model'} reads "
                f"{self.most_tokens:.0f}: take fewer --shots."
            )
        logits_NV = getattr(self, f"_{self.kind}")(read["input_ids"], read["attention_mask"])
        return logits_NV[:, self.filler_ids].float()

    def _causal(self, ids_NT: Tensor, mask_NT: Tensor) -> Tensor:
        ends_N = mask_NT.sum(dim=1) - 1
        if self.shared:
            ids_NT, mask_NT, ends_N = with_tokens(ids_NT, mask_NT, self.shared)
        rows_N = torch.arange(len(ids_NT), device=ids_NT.device)
        if not self.plain_head:
            found = self.model(input_ids=ids_NT, attention_mask=mask_NT, use_cache=False)
            return found.logits[rows_N, ends_N]
        hidden_NTD = self.model.get_decoder()(
            input_ids=ids_NT, attention_mask=mask_NT, use_cache=False
        ).last_hidden_state
        return self.model.get_output_embeddings()(hidden_NTD[rows_N, ends_N])

    def _seq2seq(self, ids_NT: Tensor, mask_NT: Tensor) -> Tensor:
        start = [self.model.config.decoder_start_token_id]
        vocabulary = self.tokenizer.get_vocab()
        begun = [*start, vocabulary[SENTINEL]] if SENTINEL in vocabulary else start
        decoder_NT = torch.tensor([[*begun, *self.shared]] * len(ids_NT), device=ids_NT.device)
        found = self.model(
            input_ids=ids_NT, attention_mask=mask_NT, decoder_input_ids=decoder_NT, use_cache=False
        )
        return found.logits[:, -1]

    def _masked(self, ids_NT: Tensor, mask_NT: Tensor) -> Tensor:
        logits_NTV = self.model(input_ids=ids_NT, attention_mask=mask_NT).logits
        gaps_NT = ids_NT == self.tokenizer.mask_token_id
        last_N = gaps_NT.shape[1] - 1 - gaps_NT.int().flip(1).argmax(dim=1)
        return logits_NTV[torch.arange(len(ids_NT), device=ids_NT.device), last_N]


def most_tokens(model: Any, tokenizer: Any) -> float:
    """How long a text may be. Relative positions, such as T5's, have no end."""
    positions = getattr(model.config, "max_position_embeddings", None)
    # RoBERTa counts its positions from 2 on; its tokenizer knows how many are left.
    return min(positions, tokenizer.model_max_length) if positions else float("inf")


def first_tokens(tokenizer: Any, fillers: Sequence[str]) -> tuple[list[int], list[int]]:
    """What every filler begins with, if anything, and the token in which they differ.

    Where all begin alike (a token for the white space, say) it belongs to the prompt.
    """

    def tokens(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    begin = tokens("is about")
    rows = [tokens(f"is about {filler}")[len(begin) :] for filler in fillers]
    shared: list[int] = []
    while all(len(row) > 1 for row in rows) and len({row[0] for row in rows}) == 1:
        shared.append(rows[0][0])
        rows = [row[1:] for row in rows]
    firsts = [row[0] if row else -1 for row in rows]
    if len(set(firsts)) < len(fillers) or -1 in firsts:
        raise UserError(
            "the fillers of two labels begin with the same token of this model; name others: "
            + ", ".join(fillers)
        )
    return shared, firsts


def with_tokens(
    ids_NT: Tensor, mask_NT: Tensor, tokens: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor]:
    """Rows padded on the right with tokens put after each row's end; ids, mask, last places."""
    ends_N = mask_NT.sum(dim=1)
    rows = torch.arange(len(ids_NT), device=ids_NT.device)
    ids_NT = nn.functional.pad(ids_NT, (0, len(tokens)))
    mask_NT = nn.functional.pad(mask_NT, (0, len(tokens)))
    for place, token in enumerate(tokens):
        ids_NT[rows, ends_N + place] = token
        mask_NT[rows, ends_N + place] = 1
    return ids_NT, mask_NT, mask_NT.sum(dim=1) - 1


class PromptAppraiser:
    """The appraiser behind a prompt.

    examples: answered questions that stand before each one. bias: [R, L], added to the log
    probabilities of a role; `calibrate` sets it. temperature divides the logits.
    """

    def __init__(self, filler: GapFiller, *, examples: str = "", temperature: float = 1.0) -> None:
        self.filler = filler
        self.examples = examples
        self.temperature = temperature
        self.bias = torch.zeros(len(ROLES), len(LABELS))
        self.name = filler.name

    @torch.no_grad()
    def logits(self, texts: Sequence[str], roles: Sequence[Role]) -> Tensor:
        """[N, L] before calibration, on the CPU. Prompts of similar length share a batch."""
        training = self.filler.training
        self.filler.eval()
        prompts = [self.examples + prompt_of(*row) for row in zip(texts, roles, strict=True)]
        order = sorted(range(len(prompts)), key=lambda place: len(prompts[place]))
        found = torch.zeros(len(prompts), len(LABELS))
        for start in range(0, len(order), PROMPTS_AT_ONCE):
            places = order[start : start + PROMPTS_AT_ONCE]
            found[places] = self.filler([prompts[place] for place in places]).cpu()
        self.filler.train(training)
        return found

    def probabilities(self, texts: Sequence[str], roles: Sequence[Role]) -> Tensor:
        logits_NL = (
            self.logits(texts, roles).log_softmax(dim=-1)
            + self.bias[[ROLES.index(role) for role in roles]]
        )
        return (logits_NL / self.temperature).softmax(dim=-1)

    def calibrate(self) -> None:
        """Divide by what the model answers where nothing is said (contextual calibration)."""
        for number, role in enumerate(ROLES):
            probabilities = self.logits(CONTENT_FREE, [role] * len(CONTENT_FREE)).softmax(dim=-1)
            self.bias[number] = -probabilities.mean(dim=0).log()

    def save(self, folder: str | Path) -> None:
        """Write the adapter, if there is one, and how to ask; the model by name only."""
        folder = Path(folder)
        trained = {n: p for n, p in self.filler.named_parameters() if p.requires_grad}
        save_tensors({**trained, "bias": self.bias}, folder / WEIGHTS)
        settings = {
            "kind": "prompt",
            "model": self.filler.name,
            "rank": self.filler.rank,
            "fillers": self.filler.fillers,
            "examples": self.examples,
            "temperature": self.temperature,
        }
        write_model_settings(folder, SETTINGS, settings, weights=WEIGHTS)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        folder = Path(folder)
        settings = read_settings(folder, checked=True)
        weights = load_tensors(folder / WEIGHTS)
        with one_line_where_unfit(folder / SETTINGS):
            filler = GapFiller.load(
                settings["model"], fillers=settings["fillers"], rank=settings["rank"]
            )
            examples, temperature = settings["examples"], settings["temperature"]
            appraiser = cls(filler, examples=examples, temperature=temperature)
            appraiser.bias = weights.pop("bias")
            unknown = filler.load_state_dict(weights, strict=False).unexpected_keys
        if unknown:
            raise UserError(f"{folder} does not fit {settings['model']}: {unknown[0]}.")
        return appraiser
