"""A generator: a frozen language model with a trained prefix or LoRA adapter that writes responses.

    generator = Generator.create("flan-t5-small")
    encoded = generator.encode(exchanges)                     # once per prompt
    sampled = generator.sample(encoded, seeds)
    again = generator.log_probs(encoded, sampled.tokens)      # the same numbers, with gradients

EmpRL (arXiv 2408.02976) trains one first on human responses, then by PPO (policies/training/ppo)
against what it was before: `freeze_reference` keeps that as a second adapter on the same model.

There is no dropout anywhere: an adapter of some hundred thousand weights does without, and in PPO
it would make the log-probabilities those of another policy than the one that sampled.

Legend: B rows, T tokens of the longest response.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from policies.generating.adapters import Adapters, NoAdapters, PrefixAdapters
from policies.generating.decoding import Sampled, SamplingDistribution, TokenLogProbs, score, write
from policies.generating.models import AnyModel, Encoded, load_model
from policies.generating.prompt import context_tokens, plain_tokens
from policies.generating.settings import FILE, GeneratorSettings, read_settings, write_settings
from policies.generating.value_head import ValueHead
from policies.reading.windows import check_window
from rewriting.errors import UserError
from rewriting.exchange import Exchange, Rewrite
from rewriting.runtime.files.disk import disk_errors
from rewriting.runtime.files.tensors import load_tensors, save_tensors
from rewriting.runtime.models.options import DEFAULT, ModelOptions
from rewriting.runtime.seeds import derive_seed

VALUE_WEIGHTS = "value_head.safetensors"


class Generator:
    """A language model that writes whole responses: a `Policy`, which policies/training/ppo trains.

    seed: for the first weights of the value head. batch_size: responses sampled together.
    """

    def __init__(
        self,
        model: AnyModel,
        settings: GeneratorSettings | None = None,
        *,
        model_name: str = "",
        name: str = "emprl",
        seed: int = 0,
        batch_size: int = 32,
    ) -> None:
        self.model = model
        self.settings = settings = settings or GeneratorSettings()
        self.model_name = model_name
        self.name = name
        self.batch_size = batch_size
        self.shape = SamplingDistribution(settings.temperature, settings.top_p)
        self.roles = ["policy"]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "generator"))
            self.adapters = _adapters(model, settings)
            self.adapters.add("policy")
            self.value_head = ValueHead(model.hidden_size, settings.value_width)
        modules = {"adapters": self.adapters.module, "value_head": self.value_head}
        self.module: nn.Module = nn.ModuleDict(modules).to(model.model.device).eval()
        self._check_length()

    @classmethod
    def create(
        cls,
        model: str = "flan-t5-small",
        *,
        name: str = "emprl",
        seed: int = 0,
        batch_size: int = 32,
        options: ModelOptions = DEFAULT,
        **settings: Any,
    ) -> Generator:
        """A new generator on a model by name; `settings` are those of GeneratorSettings.

        options: how the model is loaded.
        """
        chosen = GeneratorSettings(**settings)
        return cls(
            load_model(model, own=chosen.adapter == "lora", options=options),
            chosen,
            model_name=model,
            name=name,
            seed=seed,
            batch_size=batch_size,
        )

    def _check_length(self) -> None:
        settings, limit = self.settings, self.model.max_length
        needed = settings.max_context_tokens + settings.max_new_tokens
        needed += settings.num_virtual_tokens if settings.adapter == "prefix" else 0
        if limit and needed > limit:
            raise UserError(
                f"the model reads {limit} tokens, and context, response and prefix take {needed}. "
                "Lower max_context_tokens or max_new_tokens."
            )
        if self.model.is_seq2seq:  # the decoder reads no context, and the encoder reads it whole
            needed -= settings.max_context_tokens
        check_window(self.model.model, self.model_name, needed, "max_context_tokens")

    # ---- what it has been and what it becomes

    @property
    def layers(self) -> tuple[str, ...]:
        """The classes of layers that a sharding launcher gathers one by one.

        With a prefix the language model is no part of what is trained, and stays whole.
        """
        return tuple(getattr(self.model.model, "_no_split_modules", None) or ())

    def freeze_reference(self) -> None:
        """From now on the role "reference" is what the policy is at this moment."""
        if "reference" not in self.roles:
            self.adapters.add("reference")
            self.adapters.module.to(self.model.model.device)
            self.roles.append("reference")
        self.adapters.copy("policy", "reference")
        for parameter in self.adapters.parameters("reference"):
            parameter.requires_grad_(False)

    def save(self, folder: str | Path, *, dtype: torch.dtype | None = None) -> None:
        """Write the policy as a folder that `load` takes. float16 halves it and rounds it.

        A reference goes into a folder of its own inside. policy.json comes last: where it stands,
        the rest is complete.
        """
        folder = Path(folder)
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / FILE).unlink(missing_ok=True)
            self.adapters.save("policy", folder, self.model_name, dtype)
            if "reference" in self.roles:
                (folder / "reference").mkdir(exist_ok=True)
                self.adapters.save("reference", folder / "reference", self.model_name, dtype)
            save_tensors(self.value_head.state_dict(), folder / VALUE_WEIGHTS, dtype=dtype)
        write_settings(folder, self.model_name, self.settings)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        model: AnyModel | None = None,
        trainable: bool = False,
        name: str = "",
        batch_size: int = 32,
        options: ModelOptions = DEFAULT,
        **changes: Any,
    ) -> Generator:
        """The generator of a folder; `changes` are other settings than it was saved with.

        model: what to put it on; by default the model of its name, loaded by `options`.
        """
        folder = Path(folder)
        model_name, settings = read_settings(folder)
        settings = replace(settings, **changes)
        own = settings.adapter == "lora"
        model = model or load_model(model_name, own=own, options=options)
        name = name or folder.resolve().name
        generator = cls(model, settings, model_name=model_name, name=name, batch_size=batch_size)
        generator.adapters.load("policy", folder)
        if (folder / "reference").is_dir():
            generator.freeze_reference()
            generator.adapters.load("reference", folder / "reference")
        _fill(generator.value_head, folder / VALUE_WEIGHTS)
        if not trainable:
            generator.module.requires_grad_(False)
        return generator

    # ---- what it reads

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text. What looks like a special token in it is read as plain text."""
        return plain_tokens(self.model.tokenizer, text)

    def context(self, exchange: Exchange) -> list[int]:
        """The tokens of the conversation that a response to this exchange continues."""
        end = self.model.end if self.model.is_seq2seq else ()
        room = self.settings.max_context_tokens - len(end)
        start = self.model.start
        return [*context_tokens(exchange, self.tokens, max_tokens=room, start=start), *end]

    def target(self, response: str) -> list[int]:
        """The tokens of a response with the end, or as many of them as may be written."""
        text = " ".join(response.split())
        tokens = self.tokens(text if self.model.is_seq2seq else f" {text}")
        return [*tokens, self.model.end[0]][: self.settings.max_new_tokens]

    def text(self, tokens: Sequence[int]) -> str:
        """The response that some tokens are."""
        words = self.model.tokenizer.decode(list(tokens), skip_special_tokens=True)
        return " ".join(words.split())

    def encode(self, exchanges: Sequence[Exchange]) -> Encoded:
        """All that can be computed of the contexts for every role, once."""
        return self.model.encode([self.context(exchange) for exchange in exchanges])

    # ---- sampling and log-probabilities

    @torch.no_grad()
    def sample(self, encoded: Encoded, seeds: Sequence[int]) -> Sampled:
        """A response for each row, each with its seed; rows of similar contexts go together."""
        if len(encoded) != len(seeds):
            raise ValueError(f"{len(encoded)} contexts for {len(seeds)} seeds")
        order = sorted(range(len(encoded)), key=lambda row: len(encoded.contexts[row]))
        found: dict[int, tuple[Any, ...]] = {}
        with self.adapters.acting("policy") as prefix:
            for start in range(0, len(order), self.batch_size):
                rows = order[start : start + self.batch_size]
                chosen = encoded.select(rows)
                batch = write(
                    self.model.reading(chosen, prefix),
                    chosen.leads,
                    [seeds[row] for row in rows],
                    end=self.model.end,
                    max_new_tokens=self.settings.max_new_tokens,
                    shape=self.shape,
                    value_head=self.value_head,
                )
                found |= dict(zip(rows, batch.rows(), strict=True))
        return Sampled.of([found[row] for row in range(len(seeds))])

    def log_probs(
        self,
        encoded: Encoded,
        tokens: Sequence[Sequence[int]],
        *,
        role: str = "policy",
        values: bool = False,
        shape: SamplingDistribution | None = None,
    ) -> TokenLogProbs:
        """Teacher forcing, in one batch; with gradients in the role "policy".

        shape: another one than that of the distribution which is sampled from.
        """
        if role not in self.roles:
            raise ValueError(f"there is no role {role!r}: freeze_reference makes the reference")
        frozen = role != "policy"
        with torch.no_grad() if frozen else nullcontext(), self.adapters.acting(role) as prefix:
            return score(
                self.model.reading(encoded, prefix),
                encoded.leads,
                tokens,
                shape=shape or self.shape,
                value_head=self.value_head if values else None,
            )

    def supervised_loss(self, exchanges: Sequence[Exchange]) -> tuple[Tensor, float]:
        """Minus log π of the human responses, summed, and the number of their tokens.

        At temperature 1, whatever is sampled with. A loss for the supervised loop, whose module
        is `generator.module`.
        """
        self.module.eval()  # that loop turns dropout on, and with LoRA the module is the model
        targets = [self.target(exchange.response_post) for exchange in exchanges]
        # The contexts in one batch: processes that share a model must call it equally often.
        encoded = self.model.encode([self.context(row) for row in exchanges], at_once=True)
        found = self.log_probs(encoded, targets, shape=SamplingDistribution())
        return -found.log_prob_BT.sum(), float(found.mask_BT.sum())

    # ---- as a policy

    def respond(self, exchanges: Sequence[Exchange], *, seed: int) -> list[str]:
        """A response to each exchange; the same exchange and seed give the same response."""
        responses: list[str] = []
        for start in range(0, len(exchanges), 4 * self.batch_size):
            batch = exchanges[start : start + 4 * self.batch_size]
            seeds = [derive_seed(seed, "response", *self.context(row)) for row in batch]
            sampled = self.sample(self.encode(batch), seeds)
            responses += [self.text(tokens) for tokens in sampled.tokens]
        return responses

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
        """Rewrites without edits: the response is written anew, whatever the given one is.

        Where nothing was written, the given one stays: a person is not answered with silence.
        """
        pairs = zip(exchanges, self.respond(exchanges, seed=seed), strict=True)
        return [Rewrite(exchange, r or exchange.response_post) for exchange, r in pairs]


def _adapters(model: AnyModel, settings: GeneratorSettings) -> Adapters:
    if settings.adapter == "prefix":
        return PrefixAdapters(model, settings.num_virtual_tokens)
    if settings.adapter == "lora":
        from policies.generating.lora import LoraAdapters

        return LoraAdapters(model, settings.rank)
    return NoAdapters()


@torch.no_grad()
def _fill(head: nn.Module, path: Path) -> None:
    found = load_tensors(path)
    named = dict(head.named_parameters())
    if {k: v.shape for k, v in found.items()} != {k: v.shape for k, v in named.items()}:
        raise UserError(f"{path} does not fit this model: it is of a generator on another one.")
    for key, parameter in named.items():
        parameter.copy_(found[key])
