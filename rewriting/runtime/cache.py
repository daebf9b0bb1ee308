"""Equal texts are scored once: a bounded cache in front of a model that scores batches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

CACHE_SIZE: Final = 16_384


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
