"""The bundled sentences that can be lent (rewriting/sample/BANK.md), and the posts they answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rewriting.data.load import SAMPLE


def lent_rows() -> Iterator[dict[str, Any]]:
    """Posts with sentences that are true of their writers and sayable to others: `seeker_post`,
    `topic`, and `sentences` with `kind` and `text`."""
    for line in (SAMPLE / "bank.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)
