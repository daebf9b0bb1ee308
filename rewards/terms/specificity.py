"""`specificity`: whether what is said is about what the seeker wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rewards.protocol import texts
from rewriting.runtime.cache import BatchedScores

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Specificity:
    """Cosine similarity of the seeker post and the response: PARTNER's specificity metric.

    "This must have been really hard for you" fits everybody and is close to nobody
    (arXiv 2101.07714). Where an edit policy gives the column `sentence`, the new sentence is
    compared, since the rest is not its doing; rows without one compare the whole response.

    encoder: a sentence-transformers model. batch_size: texts that it reads at once.

    In: completions, seeker_post, optionally sentence. Out: −1 to 1; 0 for a blank text.
    """

    def __init__(self, encoder: Any, *, batch_size: int = 1, name: str = "specificity") -> None:
        self.__name__ = name
        self.encoder = encoder
        self._vectors = BatchedScores(self._encode, batch_size=batch_size)

    def __call__(
        self,
        *,
        completions: Sequence[Any],
        seeker_post: Sequence[str],
        sentence: Sequence[str | None] | None = None,
        **_: Any,
    ) -> list[float]:
        responses = texts(completions)
        if sentence is not None:
            pairs = zip(sentence, responses, strict=True)
            responses = [new if new and new.strip() else response for new, response in pairs]
        # Both in one call, so that new seeker posts share a batch with the responses.
        vectors = self._vectors([*responses, *seeker_post])
        rows = len(responses)
        return [_cosine(a, b) for a, b in zip(vectors[:rows], vectors[rows:], strict=True)]

    def _encode(self, keys: list[str]) -> list[NDArray[Any] | None]:
        written = [text for text in keys if text.strip()]
        if not written:
            return [None] * len(keys)
        vectors = self.encoder.encode(
            written,
            batch_size=len(written),
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        known = dict(zip(written, vectors, strict=True))
        return [known.get(text) for text in keys]


def _cosine(a: NDArray[Any] | None, b: NDArray[Any] | None) -> float:
    import numpy as np

    if a is None or b is None:
        return 0.0
    a, b = a.astype(np.float64), b.astype(np.float64)
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.clip(a @ b / norms, -1.0, 1.0)) if norms else 0.0
