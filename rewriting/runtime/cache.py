"""Equal texts are scored once: bounded caches in front of models that score batches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

from rewriting.runtime.batches import batches_of_groups

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

CACHE_SIZE: Final = 16_384
REMEMBERED_CALLS: Final = 16


class ScoreCache(Generic[K, V]):
    """Looks keys up, and computes together, each once, those that are new.

    In training the original response comes back at every step and every sample of it; its score
    is computed the first time. A key is a text or a tuple of texts; the keys used least recently
    are dropped. `compute` must score a key alike whatever else it is asked for with it.
    """

    def __init__(self, compute: Callable[[list[K]], Sequence[V]], size: int = CACHE_SIZE) -> None:
        if size < 1:
            raise ValueError(f"a cache holds at least one entry, not {size}")
        self.compute = compute
        self.size = size
        self._known: OrderedDict[K, V] = OrderedDict()

    def __call__(self, keys: Sequence[K]) -> list[V]:
        found: dict[K, V] = {}
        for key in keys:
            if key in self._known:
                self._known.move_to_end(key)
                found[key] = self._known[key]
        missing = [key for key in dict.fromkeys(keys) if key not in found]
        if missing:
            values = self.compute(missing)
            if len(values) != len(missing):
                raise ValueError(f"{len(values)} scores for {len(missing)} texts")
            new = dict(zip(missing, values, strict=True))
            found |= new
            self._known.update(new)
            while len(self._known) > self.size:
                self._known.popitem(last=False)
        return [found[key] for key in keys]

    def forget(self) -> None:
        """Empty the memory."""
        self._known.clear()


class BatchedScores(Generic[K, V]):
    """Scores keys in batches of similar length, and remembers what may be remembered.

    compute: scores the keys of one batch. batch_size: how many keys that are at the most.
    length: what keys are sorted by; keys of equal length stand in their own order. group: what keys
    have in common that are better read together; neighbours of one group share a batch where it
    holds them all. remember_all: remember every key's score, whatever batch it was in: for training
    on what is read once.

    A model reads a batch with padding and in larger matrices, which moves a score by rounding, some
    1e-6. With batch_size 1 no score depends on another text, and each is remembered. With more, the
    batches follow from the keys of a call alone, and only the last calls are remembered, whole: a
    run that is resumed with an empty memory makes the same batches, and gives the same bits.
    """

    def __init__(
        self,
        compute: Callable[[list[K]], Sequence[V]],
        *,
        batch_size: int = 1,
        length: Callable[[Any], int] | None = None,
        group: Callable[[Any], Hashable] | None = None,
        remember_all: bool = False,
        size: int = CACHE_SIZE,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"a batch holds at least one text, not {batch_size}")
        self.compute, self.batch_size, self.length = compute, batch_size, length or text_length
        self.group = group or (lambda key: key)
        self.remember_all = remember_all or batch_size == 1
        self._single: ScoreCache[K, V] = ScoreCache(self._by_length, size)
        self._calls: ScoreCache[tuple[K, ...], list[V]] = ScoreCache(
            lambda calls: [self._in_batches(call) for call in calls], REMEMBERED_CALLS
        )

    def __call__(self, keys: Sequence[K]) -> list[V]:
        if self.remember_all:
            return self._single(keys)
        call = self._sorted(set(keys))
        found = dict(zip(call, self._calls([call])[0], strict=True))
        return [found[key] for key in keys]

    def _sorted(self, keys: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(sorted(keys, key=lambda key: (self.length(key), key)))

    def forget(self) -> None:
        """Empty the memory."""
        self._single.forget()
        self._calls.forget()

    def _by_length(self, keys: list[K]) -> list[V]:
        ordered = keys if self.batch_size == 1 else self._sorted(keys)
        found = dict(zip(ordered, self._in_batches(ordered), strict=True))
        return [found[key] for key in keys]

    def _in_batches(self, keys: Sequence[K]) -> list[V]:
        batches = batches_of_groups(keys, self.batch_size, self.group)
        return [value for batch in batches for value in self.compute(batch)]


def text_length(key: Any) -> int:
    """The characters of a text, or of all texts of a tuple."""
    return len(key) if isinstance(key, str) else sum(map(text_length, key))
