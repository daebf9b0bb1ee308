"""The EPITOME identifier, ready to use: from texts to assessments, and to a folder and back.

    identifier = EpitomeIdentifier.load("rewards/shipped/identifier")
    (assessment,) = identifier.assess(["I failed again."], ["I'm so sorry. What happened?"])

The shared arrangement encodes every different text of a call once, whatever its role and however
often it comes; `independent` (the paper's, arXiv 2009.08441) needs six encoders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from rewards.identifiers.assessment import Assessment, Judgement
from rewards.identifiers.epitome.model import EmpathyIdentifier, shipped_state
from rewards.identifiers.rationales import (
    choose_words,
    token_to_word_values,
    word_spans,
    words_to_text_spans,
)
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS
from rewriting.runtime.files.model_files import (
    one_line_where_unfit,
    read_model_settings,
    write_model_settings,
)
from rewriting.runtime.files.tensors import load_tensors, save_tensors
from rewriting.runtime.language_models.lora import add_lora
from rewriting.runtime.models.hub import found_folder
from rewriting.runtime.models.named import load_encoder

SETTINGS, WEIGHTS = "identifier.json", "identifier.safetensors"
PAIRS_AT_ONCE = 512  # bounds the memory of encoded texts
TOKENS_AT_ONCE = 1024  # in one pass of the encoder: on a CPU more do not stay in its caches
GPU_TOKENS_AT_ONCE = 8192


@dataclass(frozen=True, slots=True)
class Architecture:
    """What has to be known to build the network that weights belong to.

    encoder: a model by name. arrangement: `shared`, one encoder for both roles and all mechanisms,
    or `independent`, two for each mechanism. rank: of the LoRA matrices on every linear layer of
    an encoder; 0 trains the encoder in full but for its embeddings.
    """

    encoder: str = "minilm-l6"
    arrangement: str = "shared"
    rank: int = 32
    dropout: float = 0.2
    max_seeker_tokens: int = 128
    max_response_tokens: int = 256
    longest_gap: tuple[int, int, int] = (1, 1, 1)

    def build(self) -> tuple[Any, Any]:
        """The networks, one per group of mechanisms that share encoders, and the tokenizer."""
        if self.arrangement not in ("shared", "independent"):
            raise UserError(f"arrangement is shared or independent, not {self.arrangement!r}.")
        shared = self.arrangement == "shared"
        groups = [MECHANISMS] if shared else [(mechanism,) for mechanism in MECHANISMS]
        networks = nn.ModuleList()
        for group in groups:
            # Heads are float32, and a score outside autocast must not meet another kind.
            encoder, tokenizer = load_encoder(self.encoder, torch.float32)
            second = None if shared else load_encoder(self.encoder, torch.float32)[0]
            for part in filter(None, (encoder, second)):
                self._make_trainable(part)
            networks.append(
                EmpathyIdentifier(
                    encoder,
                    group,
                    seeker_encoder=second,
                    dropout=self.dropout,
                    # The shared encoder learns enough from the response, and a step costs less.
                    seeker_gradient=not shared,
                ).to(encoder.device)
            )
        return networks, tokenizer

    def _make_trainable(self, encoder: Any) -> None:
        if self.rank:
            encoder.requires_grad_(False)
            add_lora(encoder, self.rank, alpha=2 * self.rank)
        else:
            encoder.get_input_embeddings().requires_grad_(False)


class EpitomeIdentifier:
    """Assesses pairs with one network (shared) or three (independent)."""

    def __init__(
        self, architecture: Architecture, networks: Any, tokenizer: Any, name: str
    ) -> None:
        self.architecture = architecture
        self.networks = networks.eval()  # a ModuleList of EmpathyIdentifier
        self.tokenizer = tokenizer
        self.name = name

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Load what `save` has written, by folder or hub id; LoRA matrices are merged, so they cost
        nothing."""
        path = found_folder(folder, SETTINGS)
        settings = read_model_settings(path, SETTINGS, weights=WEIGHTS, called="identifier")
        with one_line_where_unfit(path / SETTINGS):
            settings["longest_gap"] = tuple(settings["longest_gap"])
            architecture = Architecture(**settings)
            networks, tokenizer = architecture.build()
        weights = load_tensors(path / WEIGHTS, dtype=torch.float32)
        with one_line_where_unfit(path / SETTINGS):
            unknown = networks.load_state_dict(weights, strict=False).unexpected_keys
        if unknown:
            raise UserError(f"{path} does not fit its own {SETTINGS}: {unknown[0]} is not in it.")
        for part in networks.modules():
            if hasattr(part, "merge") and hasattr(part, "lora_A"):
                part.merge()
        return cls(architecture, networks, tokenizer, name=path.name)

    def save(self, folder: Path, dtype: torch.dtype = torch.float16) -> None:
        """Write what differs from the pretrained encoder, and how to build the rest."""
        weights = {
            f"{place}.{name}": tensor
            for place, network in enumerate(self.networks)
            for name, tensor in shipped_state(network, dtype).items()
        }
        save_tensors(weights, folder / WEIGHTS)
        write_model_settings(folder, SETTINGS, asdict(self.architecture), weights=WEIGHTS)

    def assess(
        self,
        seeker_posts: Sequence[str],
        response_posts: Sequence[str],
        *,
        rationales: bool = True,
    ) -> list[Assessment]:
        """Assess pairs of posts; rationales cost little and can be left out."""
        pairs = list(zip(seeker_posts, response_posts, strict=True))
        found = []
        for start in range(0, len(pairs), PAIRS_AT_ONCE):
            found += self._assess(pairs[start : start + PAIRS_AT_ONCE], rationales)
        return found

    @torch.inference_mode()
    def _assess(self, pairs: list[Pair], rationales: bool) -> list[Assessment]:
        judgements: list[dict[str, Judgement]] = [{} for _ in pairs]
        for network in self.networks:
            for row, answers in self.answers(network, pairs):
                for mechanism, answer in zip(network.mechanisms, answers, strict=True):
                    texts = self._rationales(mechanism, answer) if rationales else ()
                    level, probabilities = answer.level, answer.probabilities
                    judgements[row][mechanism] = Judgement(level, probabilities, texts)
        return [Assessment({m: found[m] for m in MECHANISMS}) for found in judgements]

    def answers(
        self, network: EmpathyIdentifier, pairs: list[Pair]
    ) -> Iterator[tuple[int, list[Answer]]]:
        """Each row's answers, one per mechanism of the network. Rows come sorted by length."""
        seekers = [(seeker, self.architecture.max_seeker_tokens) for seeker, _ in pairs]
        responses = [(response, self.architecture.max_response_tokens) for _, response in pairs]
        if network.seeker_encoder is None:
            encoded = self._encode([*seekers, *responses], network.encode_response)
            roles = (encoded, encoded)
        else:
            encoded_seekers = self._encode(seekers, network.encode_seeker)
            roles = (encoded_seekers, self._encode(responses, network.encode_response))
        lengths = [len(roles[1][key].states_TD) for key in responses]
        for rows in batches(lengths, self._tokens_at_once()):
            batch = [(roles[0][seekers[row]], roles[1][responses[row]]) for row in rows]
            output = network.score_encoded(
                *padded([seeker.states_TD for seeker, _ in batch]),
                *padded([response.states_TD for _, response in batch]),
            )
            levels_BM = network.decide_levels(output).tolist()
            probabilities_BML = network.level_probabilities(output).tolist()
            logits_BM2 = torch.stack(network.calibrated(output), dim=-1).tolist()
            marks_BMT = output.rationale_logits.sigmoid()
            for place, row in enumerate(rows):
                response = batch[place][1]
                yield (
                    row,
                    [
                        Answer(
                            pairs[row][1],
                            response.offsets,
                            levels_BM[place][m],
                            tuple(probabilities_BML[place][m]),
                            tuple(logits_BM2[place][m]),
                            marks_BMT[place, m, : len(response.offsets)],
                            float(network.rationale_threshold[m]),
                        )
                        for m in range(len(network.mechanisms))
                    ],
                )

    def _encode(self, keys: Sequence[Key], encode: Encode) -> dict[Key, Encoded]:
        """Every different text once, in batches of similar length, without its padding again."""
        unique = list(dict.fromkeys(keys))
        tokens = [tokenise(self.tokenizer, text, most) for text, most in unique]
        device = next(self.networks.parameters()).device
        found: dict[Key, Encoded] = {}
        for rows in batches([len(ids) for ids, _ in tokens], self._tokens_at_once()):
            ids = [torch.tensor(tokens[row][0]) for row in rows]
            ids_BT = nn.utils.rnn.pad_sequence(ids, batch_first=True).to(device)
            mask_BT = nn.utils.rnn.pad_sequence([torch.ones_like(i) for i in ids], batch_first=True)
            states_BTD = encode(ids_BT, mask_BT.to(device))
            for place, row in enumerate(rows):
                offsets = tokens[row][1]
                found[unique[row]] = Encoded(states_BTD[place, : len(offsets)], offsets)
        return found

    def _tokens_at_once(self) -> int:
        on_cpu = next(self.networks.parameters()).device.type == "cpu"
        return TOKENS_AT_ONCE if on_cpu else GPU_TOKENS_AT_ONCE

    def _rationales(self, mechanism: str, answer: Answer) -> tuple[str, ...]:
        """The parts of the response that carry its level, as exact substrings."""
        if not answer.level:
            return ()
        gap = self.architecture.longest_gap[MECHANISMS.index(mechanism)]
        mask = choose_words(
            answer.word_values(), answer.threshold, level=answer.level, longest_gap=gap
        )
        spans = words_to_text_spans(mask, word_spans(answer.response_post))
        return tuple(answer.response_post[start:end] for start, end in spans)


Pair = tuple[str, str]
Key = tuple[str, int]
"""A text, and how many of its tokens are read."""
Encode = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Encoded:
    """The states of a text's tokens, and where in the text the tokens stand."""

    states_TD: Tensor
    offsets: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a network says of one mechanism in one response, before it is put into words."""

    response_post: str
    offsets: list[tuple[int, int]]
    level: int
    probabilities: tuple[float, float, float]
    logits: tuple[float, float]  # some against none, strong against weak
    marks_T: Tensor
    threshold: float

    def word_values(self) -> list[float]:
        """How much each word of the response carries, 0 to 1."""
        words = word_spans(self.response_post)
        return token_to_word_values(self.offsets, self.marks_T.tolist(), words)


def tokenise(tokenizer: Any, text: str, most: int) -> tuple[list[int], list[tuple[int, int]]]:
    """The ids of a text's first tokens, and where they stand in it. An empty text is one blank."""
    found = tokenizer(text, truncation=True, max_length=most, return_offsets_mapping=True)
    return found["input_ids"] or [tokenizer.pad_token_id or 0], found["offset_mapping"] or [(0, 0)]


def batches(lengths: Sequence[int], most: int | None = None) -> Iterator[list[int]]:
    """Rows of similar length together, as many as the budget of tokens, padding included, holds."""
    most = most or TOKENS_AT_ONCE
    rows: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: lengths[row]):
        if rows and lengths[row] * (len(rows) + 1) > most:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def padded(states: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """States of different lengths as one tensor [B, T, D], and its mask [B, T]."""
    states_BTD = nn.utils.rnn.pad_sequence(list(states), batch_first=True)
    lengths_B = torch.tensor([len(one) for one in states], device=states_BTD.device)
    places_T = torch.arange(states_BTD.shape[1], device=states_BTD.device)
    return states_BTD, (places_T < lengths_B[:, None]).long()
