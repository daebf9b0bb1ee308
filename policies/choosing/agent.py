"""An edit policy that lends: where to edit, and which sentence of the bank to say there.

    agent = ChoosingAgent(encoder, Bank.load(), ChoosingSettings())
    actions, log_probs = agent.sample(states, seeds)
    again = agent.log_probs(states, actions)     # the same numbers, with gradients

PARTNER's two actions (arXiv 2101.07714), with one difference: the sentence is not written token by
token, it is one of some that kind people said to somebody in a similar place (bank.py). So whatever
the policy does is good English and kind, and what is left to learn is whether a sentence fits this
person and this reply, where it belongs, and when to leave a reply alone. A sentence is one token:
its number in the bank. The encoder is frozen and reads every sentence together with the post; what
is trained are the heads (heads.py).

Left out: gradients into the encoder, which would have to read every choice again at each step.

Legend: B actions, C closed positions, N sentences of a span, K sentences to choose from, D width of
a vector.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from policies.choosing.bank import Bank, Near
from policies.choosing.heads import ChoosingHeads, entropies, place_of
from policies.choosing.leaning import leant_on
from policies.choosing.mood import suits
from policies.choosing.settings import ChoosingSettings, read_settings, write_settings
from policies.choosing.voice import in_voice
from policies.editing.actions import Action, LogProbs
from policies.editing.several import rewrites_together, state_seed
from policies.reading.sampling import draw, nucleus, uniforms
from rewriting.data.split import normalised
from rewriting.edits import Edit, keep_position
from rewriting.errors import UserError
from rewriting.exchange import Exchange, Rewrite
from rewriting.loop import EditState
from rewriting.runtime.cache import BatchedScores
from rewriting.runtime.files.disk import disk_errors
from rewriting.runtime.files.policy_files import FILE
from rewriting.runtime.files.tensors import load_tensors, save_tensors
from rewriting.runtime.language_models.pair_encoder import PairEncoder
from rewriting.runtime.language_models.tuned_encoder import load_trained, ready, trained_tensors
from rewriting.runtime.seeds import derive_seed

ENCODER_WEIGHTS, HEAD_WEIGHTS = "encoder.safetensors", "heads.safetensors"
DEFAULT_ENCODER = "mpnet-base"


class ChoosingAgent:
    """An `Agent` to be trained, an `EditPolicy` for rewriting/loop.py, and a `Policy` by name.

    lora: the tensors of the encoder's LoRA matrices; None: the encoder as it was pretrained.
    verdicts: weight and bias of the encoder's own linear reading of a sentence (heads.py).
    """

    def __init__(
        self,
        settings: ChoosingSettings,
        *,
        bank: Bank | None = None,
        encoder: str = DEFAULT_ENCODER,
        lora: dict[str, Tensor] | None = None,
        verdicts: dict[str, Tensor] | None = None,
        name: str = "bank",
        seed: int = 0,
    ) -> None:
        self.settings, self.encoder_name, self.name, self.lora = settings, encoder, name, lora
        self.bank = bank or Bank.load()
        self.encode = encoder_of(encoder, settings, lora)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "choosing policy"))
            heads = ChoosingHeads(self.encode.width, settings.width).eval()
        if verdicts:
            heads.read.load_state_dict({name: one.float() for name, one in verdicts.items()})
        self.module: nn.Module = heads
        self.layers: Sequence[str] = ()
        self._heads: dict[str, Any] = {"policy": self.module}
        self._vectors: BatchedScores[tuple[str, str], Tensor] = BatchedScores(
            self._read, length=lambda pair: len(pair[0]), group=lambda pair: pair[0],
            batch_size=16, remember_all=True,
        )  # fmt: skip

    # ---- what it has been, and how it is kept

    def freeze_reference(self) -> None:
        """From now on the role "reference" is what the policy is at this moment."""
        self._heads["reference"] = copy.deepcopy(self.module).requires_grad_(False)

    def save(self, folder: str | Path, *, dtype: torch.dtype | None = None) -> None:
        """Write the policy as a folder that `load` takes. policy.json comes last."""
        folder = Path(folder)
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / FILE).unlink(missing_ok=True)
            state = self.module.state_dict()
            save_tensors({k: v.detach().to("cpu", dtype or v.dtype) for k, v in state.items()},
                         folder / HEAD_WEIGHTS)  # fmt: skip
            if self.lora:
                save_tensors(self.lora, folder / ENCODER_WEIGHTS)
        write_settings(folder, self.encoder_name, self.settings)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        bank: Bank | None = None,
        trainable: bool = False,
        name: str = "",
        **changes: Any,
    ) -> ChoosingAgent:
        """The policy of a folder; `changes` are other settings than it was saved with.

        bank: the sentences to choose from; None: those that are bundled.
        """
        folder = Path(folder)
        encoder, settings = read_settings(folder)
        lora = load_tensors(folder / ENCODER_WEIGHTS) if settings.rank else None
        name = name or folder.resolve().name
        changed = replace(settings, **changes)
        agent = cls(changed, bank=bank, encoder=encoder, lora=lora, name=name)
        tensors = {k: v.float() for k, v in load_tensors(folder / HEAD_WEIGHTS).items()}
        try:
            agent.module.load_state_dict(tensors)
        except RuntimeError as error:
            raise UserError(f"{folder / HEAD_WEIGHTS} does not fit its {FILE}.") from error
        if not trainable:
            agent.module.requires_grad_(False)
        return agent

    # ---- log-probabilities

    def log_probs(
        self, states: Sequence[EditState], actions: Sequence[Action], *, role: str = "policy"
    ) -> LogProbs:
        """Of the positions, and of the sentences at them, differentiable."""
        if role not in self._heads:
            raise ValueError(f"there is no role {role!r}: freeze_reference makes the reference")
        self._read_ahead(states)
        positions, tokens, all_logits = [], [], []
        for state, action in zip(states, actions, strict=True):
            near = self.choices(state)
            logits_P, scores_KL = self.scores(state, near, role)
            all_logits.append(logits_P)
            positions.append(logits_P.log_softmax(0)[action.position])
            tokens.append(logits_P.new_zeros(0))
            if action.tokens:
                said_K = self._said(scores_KL, action.position, len(state.span)).log_softmax(0)
                numbers = [one.number for one in near]
                tokens[-1] = said_K[numbers.index(action.tokens[0])][None]
        position_B = torch.stack(positions) if positions else torch.zeros(0)
        return LogProbs(position_B, tokens, entropies(all_logits))

    def scores(
        self, state: EditState, near: Sequence[Near], role: str = "policy"
    ) -> tuple[Tensor, Tensor]:
        """[P] and [K, L]: the shaped logits of the positions, and the scores of the sentences."""
        sentences = [self.bank.sentences[one.number] for one in near]
        count, cosines = len(state.span), [one.cosine for one in near]
        closed = [count + 1 + place for place in leant_on(state.span)]  # not to be replaced
        return self.scores_of(state, sentences, cosines, role, closed=closed)

    def scores_of(
        self,
        state: EditState,
        sentences: Sequence[str],
        cosines: Sequence[float],
        role: str = "policy",
        *,
        closed: Sequence[int] = (),
    ) -> tuple[Tensor, Tensor]:
        """As `scores`, for any sentences to choose from and the similarity of their posts.

        closed: positions that are never chosen.
        """
        count, heads = len(state.span), self._heads[role]
        vectors = self._vectors_of(_pairs(state, sentences))
        cosines_K = torch.tensor(cosines, device=vectors.device)
        logits_P, scores_KL = heads(vectors[:count], vectors[count:], cosines_K, state.turn)
        closed_C = torch.tensor(closed, dtype=torch.long, device=vectors.device)
        logits_P = logits_P.index_fill(0, closed_C, -torch.inf)
        return self._shaped(logits_P), scores_KL

    def _said(self, scores_KL: Tensor, position: int, count: int) -> Tensor:
        """[K]: the shaped logits of the sentences at a position."""
        return self._shaped(scores_KL[:, place_of(position, count)])

    def _shaped(self, logits: Tensor) -> Tensor:
        logits = logits.float() / self.settings.temperature
        return nucleus(logits[None], self.settings.top_p)[0]

    def choices(self, state: EditState) -> list[Near]:
        """What there is to choose from in a state; without a choice, the reply stays as it is."""
        near, bar = self.similar(state), self.settings.least_welcome
        if bar:
            welcome = self.welcome(state, [self.bank.sentences[one.number] for one in near])
            # In whole percents: last bits differ with what is read together.
            rows = sorted(zip(welcome, near, strict=True), key=lambda row: -round(row[0], 2))
            near = [one for probability, one in rows if probability >= bar]
        return near[: self.settings.choices]

    def similar(self, state: EditState) -> list[Near]:
        """Sentences of similar posts, nearest first, without what the reply says already."""
        exchange, settings = state.exchange, self.settings
        there = normalised(" ".join((exchange.response_post, *state.span)))
        count = settings.pool if settings.least_welcome else settings.choices
        (near,) = self.bank.nearest([exchange.seeker_post], count)
        return [
            one
            for one in near
            if one.cosine >= settings.least_cosine
            and normalised(self.bank.sentences[one.number]) not in there
            and suits(self.bank.sentences[one.number], exchange.response_post)
        ]

    @torch.no_grad()
    def welcome(self, state: EditState, sentences: Sequence[str]) -> list[float]:
        """For each sentence the probability, as the encoder reads it, that it makes sense under
        the post, is true of this person, and hurts nobody."""
        if not sentences:
            return []
        post = state.exchange.seeker_post
        vectors_KD = self._vectors_of([(post, " ".join(text.split())) for text in sentences])
        found: list[float] = self._heads["policy"].verdicts(vectors_KD).sum(-1).exp().tolist()
        return found

    def _vectors_of(self, pairs: Sequence[tuple[str, str]]) -> Tensor:
        """[N, D]: of sentences under their posts."""
        device = next(self.module.parameters()).device
        if not pairs:
            return torch.zeros(0, self.encode.width, device=device)
        return torch.stack(self._vectors(pairs)).to(device)

    def read_ahead(self, rows: Iterable[tuple[EditState, Sequence[str]]]) -> None:
        """Read the sentences of many states together, which takes less time than one by one."""
        self._vectors([pair for state, sentences in rows for pair in _pairs(state, sentences)])

    def _read_ahead(self, states: Sequence[EditState]) -> None:
        said = [[self.bank.sentences[one.number] for one in self.similar(s)] for s in states]
        self.read_ahead(zip(states, said, strict=True))

    @torch.no_grad()
    def _read(self, pairs: list[tuple[str, str]]) -> list[Tensor]:
        """The vectors of sentences under their posts; one reading of each post."""
        rows: dict[str, list[str]] = {}
        for post, text in pairs:
            rows.setdefault(post, []).append(text)
        vectors = iter(self.encode(list(rows.items())).cpu())
        known = {(post, text): next(vectors) for post, own in rows.items() for text in own}
        return [known[pair] for pair in pairs]

    # ---- sampling

    @torch.no_grad()
    def sample(
        self,
        states: Sequence[EditState],
        seeds: Sequence[int],
        position_seeds: Sequence[int] | None = None,
    ) -> tuple[list[Action], LogProbs]:
        """One action per state. Row i depends on its state and seeds alone."""
        if len(states) != len(seeds):
            raise ValueError(f"{len(states)} states for {len(seeds)} seeds")
        self._read_ahead(states)
        actions, positions, tokens, all_logits = [], [], [], []
        for state, seed, at in zip(states, seeds, position_seeds or seeds, strict=True):
            near, count = self.choices(state), len(state.span)
            logits_P, scores_KL = self.scores(state, near)
            position, log_prob = _drawn(logits_P, derive_seed(at, "position"))
            said: tuple[int, ...] = ()
            text, log_probs = "", logits_P.new_zeros(0)
            if position != keep_position(count):
                choice, said_log_prob = _drawn(
                    self._said(scores_KL, position, count), derive_seed(seed, "sentence")
                )
                said, log_probs = (near[choice].number,), said_log_prob[None]
                lent = self.bank.sentences[near[choice].number]
                text = in_voice(lent, state.exchange.response_post)
            actions.append(Action(position, said, text))
            positions.append(log_prob)
            tokens.append(log_probs)
            all_logits.append(logits_P)
        position_B = torch.stack(positions) if positions else torch.zeros(0)
        return actions, LogProbs(position_B, tokens, entropies(all_logits))

    # ---- a policy

    def propose(self, states: Sequence[EditState], *, seed: int) -> list[Edit]:
        actions, _ = self.sample(states, [state_seed(state, seed) for state in states])
        return [action.edit(len(state.span)) for action, state in zip(actions, states, strict=True)]

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
        return self.rewrites(exchanges, [seed])[0]

    def rewrites(self, exchanges: Sequence[Exchange], seeds: Sequence[int]) -> list[list[Rewrite]]:
        """Rewrite every exchange once for each seed."""
        length, edits = self.settings.span_length, self.settings.max_edits
        return rewrites_together(self.sample, exchanges, seeds, span_length=length, max_edits=edits)


def encoder_of(
    name: str, settings: ChoosingSettings, lora: dict[str, Tensor] | None
) -> PairEncoder:
    """The frozen encoder, its LoRA matrices merged into it."""
    encoder = PairEncoder(
        name,
        settings.rank if lora else 0,
        settings.max_tokens,
        settings.layers,
        settings.frozen_layers,
    )
    if lora:
        if misfit := load_trained(_Held(encoder), lora):
            raise UserError(f"{ENCODER_WEIGHTS} does not fit {name}: {misfit}.")
        encoder.merge()
    return ready(_Held(encoder)).encode


def lora_of(encoder: nn.Module) -> dict[str, Tensor]:
    """The tensors of an encoder's LoRA matrices, as `ChoosingAgent` takes them."""
    return trained_tensors(_Held(encoder))


class _Held(nn.Module):
    """An encoder under the name that the functions of tuned_encoder.py look for."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encode: Any = encoder


def _drawn(logits: Tensor, seed: int) -> tuple[int, Tensor]:
    """A place of softmax(logits), and its log-probability."""
    chosen, log_prob, _ = draw(logits[None], uniforms([seed], 1, logits.device)[:, 0])
    return int(chosen[0]), log_prob[0]


def _pairs(state: EditState, sentences: Sequence[str]) -> list[tuple[str, str]]:
    """What is read in a state: the sentences of its span and others, under the post."""
    post = state.exchange.seeker_post
    return [(post, " ".join(text.split())) for text in (*state.span, *sentences)]
