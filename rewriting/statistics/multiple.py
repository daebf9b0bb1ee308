"""Several tests at once: p-values that stay honest however many questions are asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, overload

Key = TypeVar("Key")


@overload
def holm(p_values: Mapping[Key, float]) -> dict[Key, float]: ...
@overload
def holm(p_values: Mapping[Key, float | None]) -> dict[Key, float | None]: ...
def holm(p_values: Mapping[Key, Any]) -> dict[Key, Any]:
    """Adjusted p-values (Holm 1979): the chance of any false alarm stays below the level.

    None is a test that could not be made: it stays None and does not count as one.
    """
    from statsmodels.stats.multitest import multipletests

    adjusted: dict[Key, Any] = dict.fromkeys(p_values)
    known = {key: p for key, p in p_values.items() if p is not None}
    if known:
        found = multipletests(list(known.values()), method="holm")[1]
        adjusted |= zip(known, map(float, found), strict=True)
    return adjusted
