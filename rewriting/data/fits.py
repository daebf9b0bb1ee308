"""The bundled fits (rewriting/sample/FITS.md): kind sentences, and the posts that each fits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from rewriting.data.load import SAMPLE

CORPORA: Final = ("sample:sense", "sample:fits")
"""The corpora of sentences that fit a post, each in parts."""
STRONG: Final = 2
"""The level of a sentence that says what this person is going through."""


def fit_groups(part: str) -> Iterator[dict[str, Any]]:
    """The groups of a part: posts, and sentences with the posts that each fits."""
    for line in (SAMPLE / f"fits_{part}.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)
