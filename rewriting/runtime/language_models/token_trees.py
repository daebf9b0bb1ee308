"""Texts that begin alike, read once as far as they do: the tokens of several rows as a tree.

    <start> I am sorry .  ┬  Call me .
                          └  How are you ?

A tree is one sequence for the model. A token attends to those before it on its own branch, and its
position is its depth, so every row has the numbers that it has alone, up to rounding. The rewrites
of one reply share what stands before their edit, the answers to one prompt share the prompt.

Left out: models whose attention takes no mask of this kind (`reads_trees`); they read row by row.

Legend: B trees, T tokens of the largest tree, N predicted tokens, D width, V vocabulary.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

import torch
from torch import Tensor

from rewriting.runtime.language_models.log_probs import HEAD_CHUNK, target_log_probs
from rewriting.runtime.models.attention import NAME

Pair = tuple[Sequence[int], Sequence[int]]
"""A prefix, not empty, and its continuation, as tokens."""

LEAST_SHARED: Final = 4  # tokens; a tree attends over more places than its rows apart
MOST_TOKENS: Final = 1024  # of a tree, since attention grows with their square
MASKED: Final = ("sdpa", "eager", NAME)  # ways to attend that take any mask
WINDOWS: Final = ("sliding_window", "window_size", "attention_chunk_size", "alibi")
"""Settings of models whose attention depends on how far apart two tokens stand in the sequence."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Tokens, each with the place of the one before it; −1 before the first.

    rows: the numbers of the pairs in it. paths: for each of them the places of its tokens.
    """

    rows: tuple[int, ...]
    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    paths: tuple[tuple[int, ...], ...]


def trees_of(pairs: Sequence[Pair], max_tokens: int) -> list[Tree]:
    """Every pair in one tree: those that begin alike share one of at most `max_tokens` tokens."""
    inputs = [(*prefix, *continuation)[:-1] for prefix, continuation in pairs]
    most = min(max_tokens, MOST_TOKENS)
    groups: list[list[int]] = []
    size = 0
    for row in sorted(range(len(inputs)), key=lambda row: inputs[row]):
        shared = num_shared(inputs[groups[-1][-1]], inputs[row]) if groups else 0
        if shared >= LEAST_SHARED and size + len(inputs[row]) - shared <= most:
            groups[-1].append(row)
            size += len(inputs[row]) - shared
        else:
            groups.append([row])
            size = len(inputs[row])
    return [grown(rows, [inputs[row] for row in rows]) for rows in groups]


def num_shared(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two rows have in common from their beginning on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second)))  # noqa: B905


def grown(numbers: Sequence[int], rows: Sequence[Sequence[int]]) -> Tree:
    """The tree of tokens that holds some rows, with shared beginnings once."""
    places: dict[tuple[int, int], int] = {}  # parent and token → place
    paths = []
    for row in rows:
        path, parent = [], -1
        for token in row:
            parent = places.setdefault((parent, token), len(places))
            path.append(parent)
        paths.append(tuple(path))
    parents = tuple(parent for parent, _ in places)
    return Tree(tuple(numbers), tuple(token for _, token in places), parents, tuple(paths))


def inputs_of(trees: Sequence[Tree], model: Any) -> dict[str, Tensor]:
    """What the model reads: tokens [B, T], their depths, and who sees whom, [B, 1, T, T]."""
    shape = (len(trees), max(len(tree.tokens) for tree in trees))
    ids_BT, depths_BT = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
    sees_BTT = torch.eye(shape[1], dtype=torch.bool).repeat(shape[0], 1, 1)  # padding sees itself
    for number, tree in enumerate(trees):
        ids_BT[number, : len(tree.tokens)] = torch.tensor(tree.tokens)
        for place, parent in enumerate(tree.parents):
            if parent >= 0:
                sees_BTT[number, place] |= sees_BTT[number, parent]
                depths_BT[number, place] = depths_BT[number, parent] + 1
    mask_BTT = torch.zeros(sees_BTT.shape, dtype=model.dtype)
    mask_BTT.masked_fill_(~sees_BTT, torch.finfo(model.dtype).min)
    return {
        "input_ids": ids_BT.to(model.device),
        "position_ids": depths_BT.to(model.device),
        "attention_mask": mask_BTT[:, None].to(model.device),
    }


def tree_log_probs(
    model: Any, trees: Sequence[Tree], pairs: Sequence[Pair], *, plain_head: bool = True
) -> dict[int, Tensor]:
    """log p of each token of each continuation, by the number of its pair; one batch of trees.

    What rows share is predicted once. Float32, as `continuation_log_probs` gives it.
    """
    asked: dict[tuple[int, int, int], int] = {}  # tree, place, next token → its number
    wanted: dict[int, list[int]] = {}
    for number, tree in enumerate(trees):
        for row, path in zip(tree.rows, tree.paths, strict=True):
            prefix, continuation = pairs[row]
            places = path[len(prefix) - 1 :]
            steps = [(number, *step) for step in zip(places, continuation, strict=True)]
            wanted[row] = [asked.setdefault(step, len(asked)) for step in steps]
    if not asked:
        return {row: torch.zeros(0) for row in wanted}
    trees_N, places_N, targets_N = torch.tensor(list(asked), device=model.device).unbind(-1)
    inputs = inputs_of(trees, model) | {"use_cache": False}
    if plain_head:
        states_BTD = model.get_decoder()(**inputs).last_hidden_state
        chunks, head = (
            states_BTD[trees_N, places_N].split(HEAD_CHUNK),
            model.get_output_embeddings(),
        )
    else:
        logits_BTV = model(**inputs).logits
        chunks, head = logits_BTV[trees_N, places_N].split(HEAD_CHUNK), torch.nn.Identity()
    log_probs_N = torch.cat(
        [
            target_log_probs(head(chunk), target)
            for chunk, target in zip(chunks, targets_N.split(HEAD_CHUNK), strict=True)
        ]
    )
    return {row: log_probs_N[numbers] for row, numbers in wanted.items()}


@torch.no_grad()
def reads_trees(model: Any) -> bool:
    """Whether a model reads the branches of a tree as it reads them apart.

    It has to take positions and a mask of any shape, and to see all that the mask shows, however
    far away. What its settings say is checked by reading two branches both ways.
    """
    config, decoder = model.config.get_text_config(decoder=True), model.get_decoder()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if (
        kinds != {"full_attention"}
        or any(getattr(config, name, None) for name in WINDOWS)
        or config._attn_implementation not in MASKED
        or "position_ids" not in inspect.signature(decoder.forward).parameters
    ):
        return False
    rows = [(1, 2, 3, 4), (1, 2, 5, 6)]
    tree = grown((0, 1), rows)
    states_TD = decoder(**inputs_of([tree], model), use_cache=False).last_hidden_state[0]
    ids_BT = torch.tensor(rows, device=model.device)
    apart_BTD = decoder(input_ids=ids_BT, use_cache=False).last_hidden_state
    return torch.allclose(states_TD[torch.tensor(tree.paths)], apart_BTD, rtol=1e-3, atol=1e-4)
