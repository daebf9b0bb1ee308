"""Log-probabilities under teacher forcing, as pure functions of a causal language model.

Legend: B rows, T tokens of the longest row, N continuation tokens of all rows, D width,
V vocabulary.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rewriting.errors import UserError

DOCUMENT_END = "<|endoftext|>"
HEAD_CHUNK = 512  # positions whose logits over the whole vocabulary are held at once


def start_token(tokenizer: Any) -> int:
    """The token before the first one of a text.

    Models of the GPT-2 and SmolLM families have seen documents follow <|endoftext|>, also where
    a chat edition calls a turn marker its beginning token, after which a role name is due.
    """
    for token in (DOCUMENT_END, tokenizer.bos_token, tokenizer.eos_token):
        if token is not None and token in tokenizer.get_vocab():
            return int(tokenizer.convert_tokens_to_ids(token))
    raise UserError("the tokenizer has neither a beginning nor an end token.")


@torch.no_grad()
def has_plain_head(model: Any) -> bool:
    """Whether the logits are the output layer on the last hidden state, and nothing more.

    Gemma 2 caps them, Cohere and Granite scale them; such models take the longer way round.
    """
    ids = torch.arange(4, device=model.device)[None]  # any tokens but padding alone
    hidden = model.get_decoder()(input_ids=ids, use_cache=False).last_hidden_state
    logits = model(input_ids=ids, use_cache=False).logits
    return torch.allclose(model.get_output_embeddings()(hidden), logits, rtol=1e-3, atol=1e-6)


def continuation_log_probs(
    model: Any, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], *, plain_head: bool = True
) -> list[Tensor]:
    """Teacher forcing: log p of each token of each continuation, in one batch. Differentiable.

    pairs: B times (prefix, continuation) as tokens; no prefix is empty. Rows are padded on the
    right under a mask. Logits exist only where a continuation token is predicted, [N, V] in chunks
    instead of [B, T, V]. Returns B tensors, float32, each as long as its continuation.
    """
    rows = [[*prefix, *continuation][:-1] for prefix, continuation in pairs]
    ids_BT = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    mask_BT = torch.zeros_like(ids_BT)
    for row, ids in enumerate(rows):
        ids_BT[row, : len(ids)] = torch.tensor(ids)
        mask_BT[row, : len(ids)] = 1
    spans = [(len(prefix) - 1, len(continuation)) for prefix, continuation in pairs]
    rows_N = torch.tensor([row for row, (_, n) in enumerate(spans) for _ in range(n)])
    columns_N = torch.tensor([first + k for first, n in spans for k in range(n)])
    targets_N = torch.tensor([token for _, continuation in pairs for token in continuation])
    if not len(targets_N):
        return [torch.zeros(0) for _ in pairs]
    inputs = {"input_ids": ids_BT.to(model.device), "attention_mask": mask_BT.to(model.device)}
    if plain_head:
        hidden_BTD = model.get_decoder()(**inputs, use_cache=False).last_hidden_state
        chunks = hidden_BTD[rows_N, columns_N].split(HEAD_CHUNK)
        head = model.get_output_embeddings()
    else:
        logits_BTV = model(**inputs, use_cache=False).logits
        chunks, head = logits_BTV[rows_N, columns_N].split(HEAD_CHUNK), torch.nn.Identity()
    targets = targets_N.to(model.device).split(HEAD_CHUNK)
    log_probs = [
        target_log_probs(head(chunk), target) for chunk, target in zip(chunks, targets, strict=True)
    ]
    return list(torch.cat(log_probs).split([n for _, n in spans]))


def target_log_probs(logits_NV: Tensor, targets_N: Tensor) -> Tensor:
    """log softmax(logits)[target], [N], without a second [N, V] tensor for the log-softmax."""
    logits_NV = logits_NV.float()
    chosen_N = logits_NV.gather(-1, targets_N[:, None]).squeeze(-1)
    return chosen_N - logits_NV.logsumexp(dim=-1)


def next_token_log_probs(
    model: Any, prompts: Sequence[Sequence[int]], *, plain_head: bool = True
) -> Tensor:
    """log p of every token of the vocabulary right after each prompt: [B, V], float32.

    prompts: B times tokens, none empty. Rows are padded on the right under a mask, and logits exist
    for the last token of each row alone.
    """
    lengths_B = torch.tensor([len(prompt) for prompt in prompts], device=model.device)
    ids_BT = torch.zeros(len(prompts), max(map(len, prompts)), dtype=torch.long)
    for row, ids in enumerate(prompts):
        ids_BT[row, : len(ids)] = torch.tensor(ids)
    ids_BT = ids_BT.to(model.device)
    mask_BT = (torch.arange(ids_BT.shape[1], device=model.device) < lengths_B[:, None]).long()
    inputs = {"input_ids": ids_BT, "attention_mask": mask_BT}
    last_B = (torch.arange(len(prompts), device=model.device), lengths_B - 1)
    if plain_head:
        hidden_BTD = model.get_decoder()(**inputs, use_cache=False).last_hidden_state
        logits_BV = model.get_output_embeddings()(hidden_BTD[last_B])
    else:
        logits_BV = model(**inputs, use_cache=False).logits[last_B]
    return logits_BV.float().log_softmax(dim=-1)


def read_prefix(model: Any, prefix: Sequence[int]) -> Any:
    """The keys and values of a prefix that many prompts share, for `log_probs_after`."""
    ids_1T = torch.tensor([list(prefix)], device=model.device)
    return model.get_decoder()(input_ids=ids_1T, use_cache=True).past_key_values


def log_probs_after(
    model: Any, prefix: Any, tokens: Sequence[int], *, plain_head: bool = True
) -> Tensor:
    """log p of every token of the vocabulary after a prefix that was read, and tokens: [V].

    prefix: what `read_prefix` gave; it stays as it is. tokens: at least one.
    """
    ids_1T = torch.tensor([list(tokens)], device=model.device)
    options = {"past_key_values": copy.deepcopy(prefix), "use_cache": True}
    if plain_head:
        hidden_D = model.get_decoder()(input_ids=ids_1T, **options).last_hidden_state[0, -1]
        logits_V = model.get_output_embeddings()(hidden_D)
    else:
        logits_V = model(input_ids=ids_1T, **options).logits[0, -1]
    return logits_V.float().log_softmax(dim=-1)
