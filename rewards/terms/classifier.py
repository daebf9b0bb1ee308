"""`hf:MODEL`: any sequence-classification model of the hub, or of a folder, as a reward.

Two kinds of models are published under that head: classifiers, of whose labels one is the reward
("caring", "toxic"), and reward models with a single output.

Legend: B texts, L labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import Tensor

from rewards.classifier_options import ClassifierOptions
from rewards.loading import suggestion
from rewards.protocol import texts
from rewriting.errors import UserError

MULTI_LABEL: Final = "multi_label_classification"

Key = tuple[str, ...]
"""What the model reads for a row: one text, or two as a pair."""


def check_config(config: Any, options: ClassifierOptions) -> None:
    """Say what is wrong with the model or the label, from the model's configuration alone."""
    built = [str(name) for name in getattr(config, "architectures", None) or []]
    if built and not any(name.endswith("ForSequenceClassification") for name in built):
        raise UserError(f"it needs a sequence-classification model, and this one is a {built[0]}.")
    label_index(config, options.label)
    activation(config, options.output)


def label_index(config: Any, label: str | int | None) -> int:
    """Which output of the model is the reward."""
    names = [str(config.id2label[number]) for number in range(config.num_labels)]
    shown = ", ".join(f"{number} {name}" for number, name in enumerate(names))
    if label is None:
        if len(names) == 1:
            return 0
        raise UserError(f"the model has {len(names)} labels; say with `label` which: {shown}.")
    if isinstance(label, str) and label in names:
        return names.index(label)
    if isinstance(label, int) and not isinstance(label, bool) and 0 <= label < len(names):
        return label
    if isinstance(label, bool):  # what YAML makes of yes, no, on and off
        raise UserError(
            f"label is {label!r}; put quotes around a word such as yes. There is: {shown}."
        )
    raise UserError(f"the model has no label {label!r}. {suggestion(str(label), names)}")


def activation(config: Any, output: str | None) -> str:
    """What turns the logits into the reward: softmax, sigmoid or none."""
    single = config.num_labels == 1
    kind = getattr(config, "problem_type", None)
    if output is None:
        output = "logit" if single or kind == "regression" else "probability"
    if output == "logit":
        return "none"
    if kind == "regression" and not single:
        raise UserError("it is a regression, which gives no probabilities: leave out `output`.")
    return "sigmoid" if single or kind == MULTI_LABEL else "softmax"


def values_of(logits_BL: Tensor, index: int, temperature: float, activation: str) -> Tensor:
    """The rewards [B] of a batch of logits [B, L]."""
    scaled_BL = logits_BL / temperature
    if activation == "softmax":
        return scaled_BL.softmax(dim=-1)[:, index]
    return scaled_BL[:, index].sigmoid() if activation == "sigmoid" else scaled_BL[:, index]


class ClassifierReward:
    """What a sequence-classification model says of each completion.

    Texts of similar lengths are read together, equal ones once. The batches follow from the set of
    texts alone, so the order of the rows makes no difference; another set may change the last bits,
    which `batch_size: 1` avoids.

    In: completions; seeker_post for `pair` and `chat`; sentence for `sentence`. Out: a probability,
    or any number where the model's output is taken as it is; None in rows without a new sentence,
    if that is what is read. An empty text is read as the end token alone, where the tokenizer adds
    no tokens of its own.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        options: ClassifierOptions | None = None,
        *,
        name: str = "classifier",
    ) -> None:
        self.__name__ = name
        self.options = options or ClassifierOptions()
        check_config(model.config, self.options)
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.index = label_index(model.config, self.options.label)
        self.activation = activation(model.config, self.options.output)
        self.max_tokens = _max_tokens(model, tokenizer, self.options.max_tokens)
        if self.options.text == "chat" and not tokenizer.chat_template:
            raise UserError("the model has no chat template: `text: pair` reads both posts.")
        _set_pad_token(model, tokenizer, self.options.batch_size)

    def __call__(
        self,
        *,
        completions: Sequence[Any],
        seeker_post: Sequence[str] | None = None,
        sentence: Sequence[str | None] | None = None,
        **_: Any,
    ) -> list[float | None]:
        keys = self._keys(texts(completions), seeker_post, sentence)
        # In the order of their texts, so that ties in length are broken alike whatever the rows.
        scores = self._scores(sorted({key for key in keys if key is not None}))
        return [None if key is None else scores[key] for key in keys]

    def _keys(
        self,
        responses: list[str],
        seeker_post: Sequence[str] | None,
        sentence: Sequence[str | None] | None,
    ) -> list[Key | None]:
        """What is read for each row; None where a row has no new sentence."""
        if self.options.text == "completion":
            return [(response,) for response in responses]
        column = sentence if self.options.text == "sentence" else seeker_post
        if column is None:
            needed = "sentence" if self.options.text == "sentence" else "seeker_post"
            raise UserError(f"`text: {self.options.text}` needs the column {needed}.")
        if self.options.text == "sentence":
            return [(new,) if new and new.strip() else None for new in column]
        pairs = [(str(post), text) for post, text in zip(column, responses, strict=True)]
        return [*pairs] if self.options.text == "pair" else [(self._chat(*pair),) for pair in pairs]

    def _chat(self, seeker_post: str, response: str) -> str:
        messages = [
            {"role": "user", "content": seeker_post},
            {"role": "assistant", "content": response},
        ]
        return str(self.tokenizer.apply_chat_template(messages, tokenize=False))

    @torch.no_grad()
    def _scores(self, keys: list[Key]) -> dict[Key, float]:
        encoded = self._encoded(keys) if keys else {}
        order = sorted(range(len(keys)), key=lambda place: len(encoded["input_ids"][place]))
        scores: dict[Key, float] = {}
        for start in range(0, len(order), self.options.batch_size):
            places = order[start : start + self.options.batch_size]
            batch = {name: [column[place] for place in places] for name, column in encoded.items()}
            if len(places) > 1:
                batch = self.tokenizer.pad(batch)
            tensors = {k: torch.tensor(v, device=self.model.device) for k, v in batch.items()}
            logits_BL = self.model(**tensors).logits.float().cpu()
            values_B = values_of(logits_BL, self.index, self.options.temperature, self.activation)
            scores |= {keys[p]: float(v) for p, v in zip(places, values_B, strict=True)}
        return scores

    def _encoded(self, keys: list[Key]) -> dict[str, list[list[int]]]:
        """The model's inputs by name, each a list of unpadded rows."""
        pair = self.options.text == "pair"
        read = self.tokenizer(
            [key[0] for key in keys],
            [key[1] for key in keys] if pair else None,
            truncation=self.max_tokens is not None,
            max_length=self.max_tokens,
            add_special_tokens=self.options.text != "chat",  # a template has them already
        )
        end = self.tokenizer.eos_token_id or 0
        lone = {"input_ids": [end], "attention_mask": [1]}
        return {n: [row or lone.get(n, [0]) for row in rows] for n, rows in read.items()}


def _max_tokens(model: Any, tokenizer: Any, asked: int | None) -> int | None:
    """How many tokens are read: what was asked for, or what the model can read, if it says so.

    RoBERTa and its kin count positions from behind the number of their pad token.
    """
    positions = getattr(model.config, "max_position_embeddings", None) or math.inf
    offset = getattr(getattr(model.base_model, "embeddings", None), "padding_idx", None)
    longest = min(tokenizer.model_max_length, positions - (0 if offset is None else offset + 1))
    if asked is not None and asked > longest:
        raise UserError(f"max_tokens is {asked}; the model reads {longest} tokens at the most.")
    if asked is not None:
        return asked
    return int(longest) if longest < 1e9 else None  # tokenizers without a limit say 1e30


def _set_pad_token(model: Any, tokenizer: Any, batch_size: int) -> None:
    """Causal models are often published without a pad token: their end token serves.

    They find the last token of a row by the pad token in their configuration.
    """
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            if batch_size > 1:
                raise UserError(
                    "its tokenizer has neither a pad nor an end token: `batch_size: 1`."
                )
            return
        tokenizer.pad_token = tokenizer.eos_token
    model.config.pad_token_id = tokenizer.pad_token_id  # else a row's score depends on its batch
