"""PARTNER's edit policy (arXiv 2101.07714): a causal language model with a head for positions.

    agent = EditAgent(Backbone.shared("smollm2-135m"), EditSettings(rank=8))
    actions, log_probs = agent.sample(states, seeds)
    again = agent.log_probs(states, actions)     # the same numbers, with gradients

Action 1 is a position in the span, from a pointer (position_head.py). Action 2 is the sentence,
generated with the seeker post, the span and the chosen position before it (prompt.py), up to
the token that ends it (sentence_writer.py). The log-probability of an action is that of both, under
the distribution it was drawn from: temperature, top_p and the ban on an empty sentence included.

By default the policy is a LoRA adapter in a role of the backbone. With rank 0 it is the model
itself, trained whole: it then needs a backbone of its own.

Legend: B actions, U different prompts, P positions.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from policies.editing import roles
from policies.editing.actions import Action, LogProbs
from policies.editing.position_head import PositionHead, chosen_log_probs, entropy, sample_positions
from policies.editing.prompt import (
    Prompt,
    ending_tokens,
    instruction,
    prompt_length,
    sentence_text,
    sentence_tokens,
    state_prompt,
)
from policies.editing.recomputing import Rest, read_at_once, recomputing
from policies.editing.sentence_writer import SentenceWriter
from policies.editing.settings import FILE, EditSettings, read_settings, write_settings
from policies.editing.several import rewrites_together, state_seed
from policies.reading.cached_reading import Reading
from rewriting.edits import Edit, num_positions
from rewriting.exchange import Exchange, Rewrite
from rewriting.loop import EditState
from rewriting.runtime.files.disk import disk_errors
from rewriting.runtime.language_models.backbone import Backbone
from rewriting.runtime.models.options import DEFAULT, ModelOptions
from rewriting.runtime.seeds import derive_seed


class EditAgent:
    """An `Agent` to be trained, an `EditPolicy` for rewriting/loop.py, and a `Policy` by name.

    seed: of the weights that are not the model's. batch_size: rows that are sampled together.
    gradient_checkpointing: an attribute; activations are computed again instead of kept.
    """

    def __init__(
        self,
        backbone: Backbone,
        settings: EditSettings | None = None,
        *,
        name: str = "partner",
        seed: int = 0,
        batch_size: int = 32,
    ) -> None:
        self.backbone = backbone
        self.settings = settings = settings or EditSettings()
        self.name = name
        self.batch_size = batch_size
        self.gradient_checkpointing = False
        model = backbone.model
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "edit policy"))
            head = PositionHead(model.config.get_text_config().hidden_size, settings.head_width)
            role = roles.add_role(backbone, "policy", settings)
        self._roles: dict[str, tuple[Any, str | None, PositionHead]] = {
            "policy": (model, role, head.to(model.device))
        }
        self.module: nn.Module = nn.ModuleDict({"model": model, "position_head": head}).eval()
        self.layers: Sequence[str] = getattr(model, "_no_split_modules", None) or ()
        endings_V = ending_tokens(backbone.tokenizer, model.get_output_embeddings().weight.shape[0])
        self.writer = SentenceWriter(
            endings_V.to(model.device),
            max_new_tokens=settings.max_new_tokens,
            temperature=settings.temperature,
            top_p=settings.top_p,
        )
        self.max_prompt_tokens = prompt_length(backbone, settings)

    # ---- what it has been and what it becomes

    def freeze_reference(self) -> None:
        """From now on the role "reference" is what the policy is at this moment."""
        model, role, head = self._roles["policy"]
        head = copy.deepcopy(head).requires_grad_(False)
        if role is None:
            reference = copy.deepcopy(model).requires_grad_(False).eval()
            self._roles["reference"] = (reference, None, head)
            self.module.add_module("reference", reference)  # so that it is sharded with the rest
            return
        name = self._roles["reference"][1] if "reference" in self._roles else None
        name = name or roles.add_role(self.backbone, "reference", self.settings)
        assert name is not None  # a LoRA
        roles.copy_adapter(self.backbone, role, name)
        roles.freeze(self.backbone, name)
        self._roles["reference"] = (model, name, head)

    def save(self, folder: str | Path, *, dtype: torch.dtype | None = None) -> None:
        """Write the policy as a folder that `load` takes. float16 halves it and rounds it.

        policy.json comes last: where it stands, the rest is complete.
        """
        folder = Path(folder)
        model, role, head = self._roles["policy"]
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / FILE).unlink(missing_ok=True)
            if role is None:
                state = {k: v.to(dtype or v.dtype) for k, v in model.state_dict().items()}
                model.save_pretrained(folder / "model", state_dict=state)
                self.backbone.tokenizer.save_pretrained(folder / "model")
            else:
                self.backbone.save(role, folder, dtype=dtype)
            roles.save_head(head, folder, dtype)
        write_settings(folder, self.backbone.name, self.settings)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        backbone: Backbone | None = None,
        *,
        trainable: bool = False,
        name: str = "",
        options: ModelOptions = DEFAULT,
        **changes: Any,
    ) -> EditAgent:
        """The policy of a folder; `changes` are other settings than it was saved with.

        backbone: what to put it on; by default the shared one of its name, or, for a policy that
        is a whole model, one of its own, loaded by `options`.
        """
        folder = Path(folder)
        backbone_name, settings = read_settings(folder)
        if not settings.rank:
            dtype = torch.float32 if trainable else None
            options.check(whole_model=trainable)
            backbone = Backbone.load(str(folder / "model"), dtype=dtype, options=options)
            backbone.name = backbone_name
        settings = replace(settings, **changes)
        name = name or folder.resolve().name
        backbone = backbone or Backbone.shared(backbone_name, options=options)
        agent = cls(backbone, settings, name=name)
        _, role, head = agent._roles["policy"]
        if role is not None:
            roles.load_adapter(agent.backbone, role, folder)
        roles.load_head(head, folder)
        if not trainable:
            head.requires_grad_(False)
            roles.freeze(agent.backbone, role)
        return agent

    # ---- log-probabilities

    def log_probs(
        self,
        states: Sequence[EditState],
        actions: Sequence[Action],
        *,
        role: str = "policy",
        dropout: bool = False,
    ) -> LogProbs:
        """Teacher forcing. A prompt that several actions share is read once.

        dropout: if the module is in training mode. By default there is none, so that these are the
        log-probabilities of what was sampled.
        """
        prompts = [self.prompt(state) for state in states]
        writing = [row for row, action in enumerate(actions) if action.tokens]
        if self.gradient_checkpointing and role == "policy" and torch.is_grad_enabled():
            return self._recomputed(prompts, actions, writing, dropout)
        with self._acting(role, dropout) as (reading, head):
            logits_BP = self._read(reading, head, prompts)
            position_B = chosen_log_probs(logits_BP, [action.position for action in actions])
            tokens = [position_B.new_zeros(0) for _ in actions]
            if writing:
                reading.select(writing)
                leads = [self._lead(prompts[row], actions[row].position) for row in writing]
                sentences = [actions[row].tokens for row in writing]
                found = self.writer.log_probs(reading, leads, sentences)
                for row, log_probs in zip(writing, found, strict=True):
                    tokens[row] = log_probs
            elif torch.is_grad_enabled():
                # Processes that share a model must call it equally often, whatever they write.
                reading.select([0])
                piece = reading.read([self._lead(prompts[0], 0)])
                position_B = position_B + 0.0 * piece.logits([0], [0]).sum()
        return LogProbs(position_B, tokens, entropy(logits_BP))

    def _recomputed(
        self,
        prompts: Sequence[Prompt],
        actions: Sequence[Action],
        writing: Sequence[int],
        dropout: bool,
    ) -> LogProbs:
        """The same, with activations that are computed again in the backward pass."""
        leads = {row: self._lead(prompts[row], actions[row].position) for row in writing}
        rows = [
            [*prompt.tokens, *leads.get(row, ()), *actions[row].tokens[:-1]]
            for row, prompt in enumerate(prompts)
        ]
        model, adapter, head = self._roles["policy"]
        with (
            self._acting("policy", dropout),
            recomputing(model, lambda: self.backbone.role(adapter)),
        ):
            piece = read_at_once(model, rows, plain_head=self.backbone.plain_head)
            logits_BP = self.writer.shaped(head(piece.hidden_BSD, prompts))
            position_B = chosen_log_probs(logits_BP, [action.position for action in actions])
            tokens = [position_B.new_zeros(0) for _ in actions]
            if writing:
                rest: Any = Rest(piece, writing, [len(prompts[row].tokens) for row in writing])
                sentences = [actions[row].tokens for row in writing]
                found = self.writer.log_probs(rest, list(leads.values()), sentences)
                for row, log_probs in zip(writing, found, strict=True):
                    tokens[row] = log_probs
        return LogProbs(position_B, tokens, entropy(logits_BP))

    @contextmanager
    def _acting(self, role: str, dropout: bool = False) -> Iterator[tuple[Reading, PositionHead]]:
        """A new reading by the model in a role, and its head."""
        if role not in self._roles:
            raise ValueError(f"there is no role {role!r}: freeze_reference makes the reference")
        model, adapter, head = self._roles[role]
        frozen = role == "reference"
        was_training = self.module.training
        self.module.train(was_training and dropout and not frozen)
        try:
            with self.backbone.role(adapter), torch.no_grad() if frozen else nullcontext():
                yield Reading(model, plain_head=self.backbone.plain_head), head
        finally:
            self.module.train(was_training)

    def _read(self, reading: Reading, head: PositionHead, prompts: Sequence[Prompt]) -> Tensor:
        """[B, P], the shaped logits of the positions; equal prompts are read once."""
        different = list(dict.fromkeys(prompts))
        number = {prompt: row for row, prompt in enumerate(different)}
        piece = reading.read([prompt.tokens for prompt in different])
        logits_UP = self.writer.shaped(head(piece.hidden_BSD, different))
        rows = [number[prompt] for prompt in prompts]
        reading.select(rows)
        return logits_UP[rows]

    # ---- sampling

    @torch.no_grad()
    def sample(
        self,
        states: Sequence[EditState],
        seeds: Sequence[int],
        position_seeds: Sequence[int] | None = None,
    ) -> tuple[list[Action], LogProbs]:
        """One action per state; rows of similar length are sampled together."""
        if len(states) != len(seeds):
            raise ValueError(f"{len(states)} states for {len(seeds)} seeds")
        both = list(zip(seeds, position_seeds or seeds, strict=True))
        prompts = [self.prompt(state) for state in states]
        order = sorted(range(len(prompts)), key=lambda row: len(prompts[row].tokens))
        found: dict[int, tuple[Action, Tensor, Tensor, Tensor]] = {}
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            batch = self._sample([prompts[row] for row in rows], [both[row] for row in rows])
            found |= dict(zip(rows, batch, strict=True))
        ordered = [found[row] for row in range(len(states))]
        zero = torch.zeros(0)  # so that no states give empty tensors
        return [action for action, *_ in ordered], LogProbs(
            position_B=torch.stack([row[1] for row in ordered]) if ordered else zero,
            tokens=[row[2] for row in ordered],
            entropy_B=torch.stack([row[3] for row in ordered]) if ordered else zero,
        )

    def _sample(
        self, prompts: Sequence[Prompt], seeds: Sequence[tuple[int, int]]
    ) -> list[tuple[Action, Tensor, Tensor, Tensor]]:
        """Actions, and their log-probabilities: position, tokens, entropy.

        seeds: of the sentence and of the position.
        """
        written: dict[int, tuple[list[int], list[Tensor]]] = {}
        with self._acting("policy") as (reading, head):
            logits_BP = self._read(reading, head, prompts)
            counts = [num_positions(len(prompt.ends)) for prompt in prompts]
            row_seeds = [derive_seed(seed, "position") for _, seed in seeds]
            positions = sample_positions(logits_BP, row_seeds)
            writing = [row for row, count in enumerate(counts) if positions[row] < count - 1]
            if writing:
                reading.select(writing)
                leads = [self._lead(prompts[row], positions[row]) for row in writing]
                row_seeds = [derive_seed(seeds[row][0], "sentence") for row in writing]
                sentences = self.writer.write(reading, leads, row_seeds)
                written = dict(zip(writing, sentences, strict=True))
        log_probs_BP, entropy_B = logits_BP.log_softmax(dim=-1), entropy(logits_BP)
        found = []
        for row, position in enumerate(positions):
            tokens, values = written.get(row, ([], []))
            log_probs = torch.stack(values) if values else entropy_B.new_zeros(0)
            action = self._action(position, tokens)
            found.append((action, log_probs_BP[row, position], log_probs, entropy_B[row]))
        return found

    # ---- states and actions

    def prompt(self, state: EditState) -> Prompt:
        tokens, start = self.backbone.tokens, self.backbone.start_token
        return state_prompt(state, tokens, start_token=start, max_tokens=self.max_prompt_tokens)

    def _lead(self, prompt: Prompt, position: int) -> list[int]:
        return self.backbone.tokens(instruction(position, len(prompt.ends)))

    def action(self, position: int, sentence: str = "") -> Action:
        """The action that writes this sentence: what supervision trains towards."""
        tokens = sentence_tokens(sentence, self.backbone, self.writer.endings_V)
        return self._action(position, tokens[: self.settings.max_new_tokens])

    def _action(self, position: int, tokens: Sequence[int]) -> Action:
        text = sentence_text(tokens, self.backbone.tokenizer, self.writer.endings_V)
        return Action(position, tuple(tokens), text)

    # ---- a policy

    def propose(self, states: Sequence[EditState], *, seed: int) -> list[Edit]:
        actions, _ = self.sample(states, [state_seed(state, seed) for state in states])
        return [action.edit(len(state.span)) for action, state in zip(actions, states, strict=True)]

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
        return self.rewrites(exchanges, [seed])[0]

    def rewrites(self, exchanges: Sequence[Exchange], seeds: Sequence[int]) -> list[list[Rewrite]]:
        """The rewrites of every seed, all sampled together."""
        length, edits = self.settings.span_length, self.settings.max_edits
        return rewrites_together(self.sample, exchanges, seeds, span_length=length, max_edits=edits)
