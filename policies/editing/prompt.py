"""How an edit policy reads a state, and how it is told where to write.

    Someone wrote:
    I failed again.

    A peer answers:
    1. Study harder.
    2. It is only an exam.

    Edit: Insert before sentence 1: I am sorry that this happened.

Everything up to "Edit:" is the prompt. Its parts are tokenised apart, so that the tokens between
sentences are known exactly: the position head (position_head.py) reads them. What follows the
chosen position is the sentence, up to the token that ends it.

Left out: earlier turns of the conversation, and words of instruction. The policy is trained before
it is used, and every token of a prompt is paid for at each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor

from policies.reading.windows import check_window
from rewriting.edits import Edit, Operation
from rewriting.errors import UserError
from rewriting.loop import EditState
from rewriting.sentences import BREAK, CLOSERS

if TYPE_CHECKING:
    from policies.editing.settings import EditSettings
    from rewriting.runtime.language_models.backbone import Backbone

OPENING: Final = "Someone wrote:\n"
ANSWER: Final = "\n\nA peer answers:"
CLOSING: Final = "\n\n"
QUESTION: Final = "Edit:"
ENDS: Final = frozenset(".!?…。！？")
MIN_SENTENCE_TOKENS: Final = 4
MIN_PROMPT_TOKENS: Final = 64

Tokenize = Callable[[str], list[int]]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A state as tokens, and where in them its n sentences stand."""

    tokens: tuple[int, ...]
    boundaries: tuple[int, ...]
    """The places of the n + 1 tokens right before each sentence, and after the last one."""
    ends: tuple[int, ...]
    """The places of the n sentences' last tokens."""


def prompt_length(backbone: Backbone, settings: EditSettings) -> int:
    """How many tokens a prompt may have, so that a sentence fits behind it; too few are refused."""
    reserved = len(backbone.tokens(instruction(98, 99))) + settings.max_new_tokens
    length = min(settings.max_prompt_tokens, backbone.max_length - reserved)
    if length < MIN_PROMPT_TOKENS:
        raise UserError(
            f"a prompt of {length} tokens is too short: the model reads {backbone.max_length}; set "
            f"max_prompt_tokens to {MIN_PROMPT_TOKENS} or more, max_new_tokens to less, or take a "
            "model that reads more."
        )
    check_window(backbone.model, backbone.name, length + reserved, "max_prompt_tokens")
    return length


def state_prompt(
    state: EditState, tokenize: Tokenize, *, start_token: int, max_tokens: int
) -> Prompt:
    """The prompt of a state, in `max_tokens` at the most (`fit` says what is cut)."""
    opening, answer = tokenize(OPENING), tokenize(ANSWER)
    closing, question = tokenize(CLOSING), tokenize(QUESTION)
    markers = [tokenize(f"\n{number}.") for number in range(1, len(state.span) + 1)]
    frame = 1 + sum(map(len, (opening, answer, closing, question, *markers)))
    seeker, sentences = fit(
        tokenize(_one_line(state.exchange.seeker_post)),
        [tokenize(" " + _one_line(sentence)) for sentence in state.span],
        max_tokens - frame,
    )
    tokens = [start_token, *opening, *seeker, *answer]
    boundaries, ends = [], []
    for marker, sentence in zip(markers, sentences, strict=True):
        tokens += marker
        boundaries.append(len(tokens) - 1)
        tokens += sentence
        ends.append(len(tokens) - 1)
    tokens += closing
    boundaries.append(len(tokens) - 1)
    return Prompt((*tokens, *question), tuple(boundaries), tuple(ends))


def fit(
    seeker: Sequence[int], sentences: Sequence[Sequence[int]], room: int
) -> tuple[list[int], list[list[int]]]:
    """A seeker post and sentences cut to `room` tokens together.

    The seeker post loses its beginning first, down to a quarter of the room: the newest words
    matter most. Then the longest sentences lose their middle.
    """
    wanted = sum(map(len, sentences))
    kept = min(len(seeker), max(room - wanted, room // 4))
    room -= kept
    limit = max(map(len, sentences), default=0)
    while sum(min(len(sentence), limit) for sentence in sentences) > room:
        limit -= 1
        if limit < MIN_SENTENCE_TOKENS:
            raise UserError(
                f"a span of {len(sentences)} sentences does not fit the prompt: "
                "raise max_prompt_tokens, or take a shorter span_length."
            )
    return list(seeker[len(seeker) - kept :]), [_without_middle(s, limit) for s in sentences]


def _without_middle(sentence: Sequence[int], limit: int) -> list[int]:
    if len(sentence) <= limit:
        return list(sentence)
    head = (limit + 1) // 2
    return [*sentence[:head], *sentence[len(sentence) - (limit - head) :]]


def _one_line(text: str) -> str:
    """A post on one line: its own line breaks could pass for those of the prompt."""
    return " ".join(text.split())


def instruction(position: int, num_sentences: int) -> str:
    """The words that tell the model where its sentence goes; a position that is not keep."""
    edit = Edit.at(position, num_sentences, "…")
    if edit.position is None:
        raise ValueError("keep takes no sentence")
    if edit.operation is Operation.REPLACE:
        return f" Replace sentence {edit.position + 1}:"
    if edit.position == num_sentences:
        return " Insert at the end:"
    return f" Insert before sentence {edit.position + 1}:"


def ending_tokens(tokenizer: Any, num_tokens: int) -> Tensor:
    """[V], True for every token that ends a sentence.

    These hold a line break, or end with a full stop, an exclamation or a question mark, closing
    quotes aside; or are special: a sentence has no use for those. So are numbers without a token,
    where a model's output is wider than its vocabulary.
    """
    known = min(len(tokenizer), num_tokens)
    special = set(tokenizer.all_special_ids)
    special |= {n for n, token in tokenizer.added_tokens_decoder.items() if token.special}
    texts = tokenizer.batch_decode(
        [[number] for number in range(known)], clean_up_tokenization_spaces=False
    )
    ends = [number in special or ends_sentence(text) for number, text in enumerate(texts)]
    return torch.tensor(ends + [True] * (num_tokens - known))


def ends_sentence(text: str) -> bool:
    """Whether a token of this text ends the sentence it stands in."""
    core = text.rstrip().rstrip("".join(CLOSERS))
    return bool(BREAK.search(text)) or core[-1:] in ENDS


def sentence_tokens(sentence: str, backbone: Backbone, endings_V: Tensor) -> list[int]:
    """A sentence as the policy would have written it.

    It ends where a sampled one would, at its first ending token, or with the end token where it has
    none.
    """
    tokens = backbone.tokens(" " + sentence.strip()) if sentence.strip() else []
    ends = [bool(endings_V[token]) for token in tokens]
    first = ends.index(False) if False in ends else len(ends)
    tokens, ends = tokens[first:], ends[first:]
    if True in ends:
        return tokens[: ends.index(True) + 1]
    return [*tokens, backbone.tokenizer.eos_token_id] if tokens else []


def sentence_text(tokens: Sequence[int], tokenizer: Any, endings_V: Tensor) -> str:
    """The sentence of sampled tokens, or '' for one that the limit has cut off.

    Cut off it is no sentence and changes nothing: a policy learns to end one.
    """
    if not tokens or not endings_V[tokens[-1]]:
        return ""
    known = [token for token in tokens if token < len(tokenizer)]
    text = tokenizer.decode(known, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return " ".join(text.split())
