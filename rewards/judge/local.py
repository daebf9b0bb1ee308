"""A judge that runs here: a causal language model, read by the likelihoods of its answers.

The model never writes anything. Its probability of each allowed answer as the next token is read
off instead, which is exact, cheaper than generating, and never has to be parsed.

Questions of one rubric begin alike. Read one by one, they share the keys and values of that
beginning, about half of a question. Left out: the same in batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

import torch
from torch import Tensor

from rewards.judge.question import Numbers, Question
from rewriting.errors import UserError
from rewriting.runtime.batches import batches_by_length
from rewriting.runtime.cache import ScoreCache
from rewriting.runtime.language_models.backbone import Backbone
from rewriting.runtime.language_models.log_probs import (
    log_probs_after,
    next_token_log_probs,
    read_prefix,
)

CONTENT: Final = "\ue000"  # stands for the question while the chat template is read
PLAIN_ENDING: Final = "\n\nAnswer:"  # after a question to a model without a chat template
SPACE_MARKS: Final = "Ġ▁ "  # how vocabularies write a space before a word
KEPT_PREFIXES: Final = 8  # beginnings of questions whose keys and values are held
KEPT_OF_POST: Final = 64
"""Tokens of a seeker post that stay when something has to be cut, before replies are cut too."""


class LocalJudge:
    """A causal language model as a judge, bare: no adapter of the backbone takes part.

    batch_size: how many questions are read at once. By default one on a CPU, where that is as fast
    and where the numbers then never depend on what else was asked, and 16 on a GPU.
    """

    def __init__(self, backbone: Backbone, *, batch_size: int = 0) -> None:
        self.backbone = backbone
        self.batch_size = batch_size or default_batch_size(backbone)
        self.name = backbone.name
        self.identity = identity(backbone)
        self._prefixes = ScoreCache(self._read_prefixes, size=KEPT_PREFIXES)

    @classmethod
    def load(cls, name: str, *, batch_size: int = 0) -> Self:
        """The judge of a model name; a term that uses the same model shares its weights."""
        return cls(Backbone.shared(name), batch_size=batch_size)

    def answers(self, questions: Sequence[Question]) -> Iterator[tuple[int, Numbers]]:
        """The probability of each allowed answer as the next token, per question."""
        answer_ids = [[self.answer_tokens(a) for a in one.answers] for one in questions]
        prompts = [self.prompt_tokens(one) for one in questions]
        read = self._one_by_one if self.batch_size == 1 else self._in_batches
        for place, log_probs_V in read(questions, prompts):
            probabilities_V = log_probs_V.double().exp()
            yield place, tuple(float(probabilities_V[ids].sum()) for ids in answer_ids[place])

    def _one_by_one(
        self, questions: Sequence[Question], prompts: Sequence[list[int]]
    ) -> Iterator[tuple[int, Tensor]]:
        for place, (question, prompt) in enumerate(zip(questions, prompts, strict=True)):
            beginning = min(self._beginning(question), len(prompt) - 1)
            with self._reading() as model:
                (prefix,) = self._prefixes([tuple(prompt[:beginning])])
                options = {"plain_head": self.backbone.plain_head}
                found = log_probs_after(model, prefix, prompt[beginning:], **options)
            yield place, found.cpu()

    def _in_batches(
        self, questions: Sequence[Question], prompts: Sequence[list[int]]
    ) -> Iterator[tuple[int, Tensor]]:
        lengths = [len(prompt) for prompt in prompts]
        for group in batches_by_length(lengths, self.backbone.max_batch_tokens):
            for start in range(0, len(group), self.batch_size):
                batch = group[start : start + self.batch_size]
                chosen = [prompts[place] for place in batch]
                options = {"plain_head": self.backbone.plain_head}
                with self._reading() as model:
                    log_probs_BV = next_token_log_probs(model, chosen, **options).cpu()
                yield from zip(batch, log_probs_BV, strict=True)

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        """The bare model without dropout, also in the middle of a training step."""
        model, training = self.backbone.model, self.backbone.model.training
        model.eval()
        try:
            with torch.no_grad(), self.backbone.role(None):
                yield model
        finally:
            model.train(training)

    def _read_prefixes(self, prefixes: list[tuple[int, ...]]) -> list[Any]:
        return [read_prefix(self.backbone.model, prefix) for prefix in prefixes]

    def _beginning(self, question: Question) -> int:
        """How many tokens stand before the first text, the same in all questions of a rubric."""
        place, literal = question.pieces[0]
        return len(self._frame[0]) + (0 if place else len(self.backbone.tokens(literal)))

    def prompt_tokens(self, question: Question) -> list[int]:
        """The question as the model reads it, in its chat template, if it has one."""
        before, after = self._frame
        pieces = [(place, self.backbone.tokens(text)) for place, text in question.pieces]
        room = self.backbone.max_length - len(before) - len(after)
        if sum(len(tokens) for place, tokens in pieces if not place) > room:
            raise UserError(
                f"the rubric alone is longer than the {self.backbone.max_length} tokens that "
                f"{self.name} can read: shorten it, or use another model."
            )
        return [*before, *(t for tokens in fitted(pieces, room) for t in tokens), *after]

    def answer_tokens(self, answer: str) -> list[int]:
        """The tokens that say an answer, with or without a space before it."""
        found = self._characters.get(answer)
        if not found:
            raise UserError(
                f"the tokenizer of {self.name} has no token for the answer {answer!r}: write "
                "another scale into the rubric, or use another model."
            )
        return found

    @cached_property
    def _characters(self) -> dict[str, list[int]]:
        """Every token that is one character, by that character."""
        found: dict[str, list[int]] = {}
        for token, number in self.backbone.tokenizer.get_vocab().items():
            if len(character := token.lstrip(SPACE_MARKS)) == 1:
                found.setdefault(character, []).append(number)
        return {character: sorted(numbers) for character, numbers in found.items()}

    @cached_property
    def _frame(self) -> tuple[list[int], list[int]]:
        """The tokens before and after a question."""
        tokenizer = self.backbone.tokenizer
        if not tokenizer.chat_template:
            return [self.backbone.start_token], self.backbone.tokens(PLAIN_ENDING)
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": CONTENT}],
            tokenize=False,
            add_generation_prompt=True,
            enable_thinking=False,  # Qwen3 and its kin would think aloud before they answer
        )
        if CONTENT not in text:
            raise UserError(f"the chat template of {self.name} leaves out what the user says.")
        before, _, after = text.partition(CONTENT)
        return self._marked_tokens(before), self._marked_tokens(after)

    def _marked_tokens(self, text: str) -> list[int]:
        """Tokens of a part of the chat template, whose turn markers are special tokens."""
        return list(self.backbone.tokenizer(text, add_special_tokens=False)["input_ids"])


def default_batch_size(backbone: Backbone) -> int:
    return 1 if backbone.model.device.type == "cpu" else 16


def identity(backbone: Backbone) -> str:
    """The name of a model and what tells its weights from those of another day, for caches."""
    model: Any = backbone.model
    source = Path(str(getattr(model, "name_or_path", "") or "."))
    files = sorted(source.glob("*.safetensors")) if source != Path(".") else []
    stamps = [f"{file.name}:{file.stat().st_size}:{file.stat().st_mtime_ns}" for file in files]
    commit = getattr(model.config, "_commit_hash", None) or ""
    return " ".join([backbone.name, str(model.dtype), commit, *stamps])


def fitted(pieces: Sequence[tuple[str, list[int]]], room: int) -> list[list[int]]:
    """The tokens of the pieces, cut so that all fit; the template ("") stays whole.

    The seeker post loses its beginning, up to KEPT_OF_POST tokens at its end. Then the replies lose
    their ends, the longest first, so that two long replies are cut to the same length.
    """
    excess = sum(len(tokens) for _, tokens in pieces) - room
    kept = []
    for place, tokens in pieces:
        cut = min(excess, len(tokens) - KEPT_OF_POST) if place == "seeker_post" else 0
        kept.append(tokens[max(cut, 0) :])
        excess -= max(cut, 0)
    texts = [tokens for (place, _), tokens in zip(pieces, kept, strict=True) if place]
    for _ in range(excess):
        max(texts, key=len).pop()
    return kept
