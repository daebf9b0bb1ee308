"""Our side in ppo.py, and the bare passes of the model that it is compared with.

    python benchmarks/peers/our_ppo.py ours|bare

Legend: B rows, S tokens of a context, T of a response, D width, L layers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from side_process import TwoClocks, serve
from torch import Tensor
from torch.nn.functional import cross_entropy

sys.path.insert(0, str(Path(__file__).parents[2]))

from policies.generating.generator import Generator
from policies.training.ppo.loop import improve
from policies.training.ppo.rollouts import Rollout, outcomes_of, reference_log_probs, targets_of
from policies.training.ppo.settings import Settings
from rewards.terms.kl import AdaptiveController, KLPenalty
from rewriting.runtime.training.engine import Engine


def ours(settings: dict[str, Any]) -> Callable[[TwoClocks], Any]:
    """The step of policies/training/ppo/loop.py with its defaults, and TRL's KL controller."""
    from accelerate import Accelerator

    from rewriting.exchange import Exchange

    contexts, length = settings["contexts"], settings["response_tokens"]
    options = {"rank": settings["rank"]} if settings["adapter"] == "lora" else {}
    generator = Generator.create(
        settings["model"], adapter=settings["adapter"], max_new_tokens=length, **options
    )
    generator.model.end = ()  # nothing ends a response early
    generator.freeze_reference()
    engine = Engine(generator.module.eval(), Accelerator(cpu=True), learning_rate=1e-5)
    chosen = Settings(
        batch_size=len(contexts),
        minibatch_size=settings["minibatch_size"],
        micro_batch_size=settings["minibatch_size"],
        inner_epochs=settings["inner_epochs"],
    )
    kl = KLPenalty(AdaptiveController(0.2, target=6.0, horizon=10_000))
    exchanges = [Exchange("-", "-") for _ in contexts]  # the contexts are tokens already
    scores = SimpleNamespace(totals=settings["scores"], terms={}, parts={})

    def step(clocks: TwoClocks) -> Any:
        seed = settings["seed"] = settings.get("seed", 0) + 1
        with clocks("sampling"):
            encoded = generator.model.encode(contexts)
            rows = range(seed * len(contexts), (seed + 1) * len(contexts))
            sampled = generator.sample(encoded, rows)
            rollout = Rollout(exchanges, encoded, sampled, [""] * len(contexts))
        with clocks("learning"):
            references = reference_log_probs(generator, rollout, generator.batch_size)
            outcomes = outcomes_of(rollout, scores, references)
            targets, figures = targets_of(outcomes, kl, gamma=1.0, lam=0.95, whiten=True)
            figures |= improve(engine, generator, rollout, targets, 0, chosen, seed)
            kl.update(figures["kl_k1"], len(contexts))
        written = [len(tokens) for tokens in sampled.tokens]
        return {"tokens": sum(written) / len(written), "loss": figures["policy_loss"]}

    return step


def bare(settings: dict[str, Any]) -> Callable[[TwoClocks], Any]:
    """The passes through the model alone that a step cannot do without.

    The encoder once; decoding with a cache; the reference; forward and backward for every epoch,
    back to the embeddings, as far as an adapter in the first layer wants it. No adapter, no
    sampling, no value head, no optimizer. Keys and values of the cross-attention, which stay the
    same, are counted once, with decoding.
    """
    from rewriting.runtime.models.named import load_seq2seq

    model = load_seq2seq(settings["model"])[0].requires_grad_(False).eval()
    passes = BarePasses(model, settings["contexts"], settings["response_tokens"])
    size, rows = settings["minibatch_size"], len(settings["contexts"])

    def step(clocks: TwoClocks) -> Any:
        with torch.no_grad():
            with clocks("encoder"):
                passes.encode()
            with clocks("decoding"):
                passes.decode()
            with clocks("reference"):
                passes.loss(slice(0, rows))
        with clocks("epochs"):
            for _ in range(settings["inner_epochs"]):
                for first in range(0, rows, size):
                    passes.loss(slice(first, first + size)).backward()

    return step


class BarePasses:
    """Of an encoder-decoder, in the words of transformers alone. Which tokens: no matter."""

    def __init__(self, model: Any, contexts: Sequence[Sequence[int]], length: int) -> None:
        self.model = model
        self.ids_BS = torch.tensor(contexts)
        self.mask_BS = torch.ones_like(self.ids_BS)
        self.target_BT = torch.randint(2, model.config.vocab_size, (len(contexts), length))
        start_B1 = torch.full((len(contexts), 1), model.config.decoder_start_token_id)
        self.read_BT = torch.cat([start_B1, self.target_BT[:, :-1]], dim=1)
        self.hidden_BSD = torch.empty(0)
        self.cross_L: list[tuple[Tensor, Tensor]] = []

    def encode(self) -> None:
        encoder = self.model.get_encoder()
        self.hidden_BSD = encoder(input_ids=self.ids_BS, attention_mask=self.mask_BS)[0]

    def decode(self) -> None:
        from transformers import DynamicCache, EncoderDecoderCache

        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        for column_B in self.read_BT.unbind(dim=1):
            output_B1D = self.model.get_decoder()(
                input_ids=column_B[:, None],
                encoder_hidden_states=self.hidden_BSD,
                encoder_attention_mask=self.mask_BS,
                past_key_values=cache,
                use_cache=True,
            )[0]
            self.model.lm_head(output_B1D).argmax(dim=-1)
        layers: Sequence[Any] = cache.cross_attention_cache.layers
        self.cross_L = [(layer.keys, layer.values) for layer in layers]

    def loss(self, rows: slice) -> Tensor:
        """Minus log-likelihood; its gradient goes to the embeddings of what the decoder reads."""
        from transformers import DynamicCache, EncoderDecoderCache

        cross_L = [(keys[rows], values[rows]) for keys, values in self.cross_L]
        embedded_BTD = self.model.get_input_embeddings()(self.read_BT[rows])
        output_BTD = self.model.get_decoder()(
            inputs_embeds=embedded_BTD.requires_grad_(torch.is_grad_enabled()),
            encoder_hidden_states=self.hidden_BSD[rows],
            encoder_attention_mask=self.mask_BS[rows],
            past_key_values=EncoderDecoderCache(DynamicCache(), DynamicCache(cross_L)),
            use_cache=True,
        )[0]
        logits_NV = self.model.lm_head(output_BTD).flatten(0, 1)
        return cross_entropy(logits_NV, self.target_BT[rows].flatten(), reduction="sum")


if __name__ == "__main__":
    serve({"ours": ours, "bare": bare}[sys.argv[1]])
