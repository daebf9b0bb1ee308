"""The requests that a chat model is trained on, as TRL's data sets want them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewriting.exchange import Exchange


def request_texts(exchanges: Sequence[Exchange], prompt: Any) -> list[str]:
    """The request of each exchange, without the start token where TRL's tokenizing adds one."""
    start = prompt.tokenizer.bos_token
    adds_start = bool(start) and prompt.tokenizer("")["input_ids"][:1] == prompt.tokens(start)
    texts = [prompt.text(one) for one in exchanges]
    return [text.removeprefix(start) for text in texts] if adds_start else texts


def rows_for(exchanges: Sequence[Exchange], prompt: Any) -> list[dict[str, Any]]:
    """The rows of TRL's data set: the request, and which exchange it is of."""
    texts = request_texts(exchanges, prompt)
    return [{"prompt": text, "row": row} for row, text in enumerate(texts)]
