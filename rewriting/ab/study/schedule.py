"""What a rater sees besides the items: practice first, then checks and repeats in between."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rewriting.ab.study.study import Assignment, Item
from rewriting.runtime.seeds import derive_seed

BETTER, WORSE = "better", "worse"
"""The keys of the two replies of pairs that come from no system."""


def opaque_id(seed: int, *parts: int | str) -> str:
    """An id that says nothing, the same for the same seed."""
    return f"{derive_seed(seed, 'item', *parts):016x}"


def schedule(
    assigned: Sequence[Assignment],
    items: Mapping[str, Item],
    *,
    practice: Sequence[Item],
    attention: Sequence[Item],
    repeats: int,
    seed: int,
    rater: int,
) -> tuple[Assignment, ...]:
    """A rater's whole list.

    Repeats stand in its second half and show what was seen in the first half, with the sides
    swapped. Attention checks are spread evenly, at places that differ from rater to rater.
    """
    generator = random.Random(derive_seed(seed, "schedule", rater))
    half = len(assigned) // 2
    again = repeated(assigned[:half], items, lead_of(assigned, items), repeats, generator)
    first, second = list(assigned[:half]), list(assigned[half:])
    rest = first + spread(second, [swapped(one, items, seed) for one in again], generator)
    checks = [random_side(item, generator) for item in attention]
    generator.shuffle(checks)
    return (
        *(random_side(item, generator) for item in practice),
        *spread(rest, checks, generator),
    )


def random_side(item: Item, generator: random.Random) -> Assignment:
    return Assignment(item.id, generator.choice(sorted(item.replies)))


def lead_of(assigned: Sequence[Assignment], items: Mapping[str, Item]) -> Counter[str]:
    """System → how much more often it is A than B."""
    lead: Counter[str] = Counter()
    for one in assigned:
        lead[one.left] += 1
        lead[items[one.item].other(one.left)] -= 1
    return lead


def repeated(
    seen: Sequence[Assignment],
    items: Mapping[str, Item],
    lead: Counter[str],
    count: int,
    generator: random.Random,
) -> list[Assignment]:
    """Which assignments come again: those whose swapped sides keep every system even.

    Where a short list has no more of them, fewer come again.
    """
    left = list(seen)
    generator.shuffle(left)
    chosen: list[Assignment] = []
    while left and len(chosen) < count:
        # Swapped, A becomes B: the lead of its left system falls, that of the other one rises.
        best = max(left, key=lambda one: lead[one.left] - lead[items[one.item].other(one.left)])
        right = items[best.item].other(best.left)
        if lead[best.left] < 0 or lead[right] > 0:
            break
        left.remove(best)
        lead[best.left] -= 1
        lead[right] += 1
        chosen.append(best)
    generator.shuffle(chosen)
    return chosen


def repeat_of(item: Item, seed: int) -> Item:
    """A copy of a pair, as an item of its own, that a rater judges a second time."""
    return replace(item, id=opaque_id(seed, "repeat", item.id), kind="repeat", repeat_of=item.id)


def swapped(one: Assignment, items: Mapping[str, Item], seed: int) -> Assignment:
    item = items[one.item]
    return Assignment(repeat_of(item, seed).id, item.other(one.left))


def spread(
    base: Sequence[Assignment], extra: Sequence[Assignment], generator: random.Random
) -> list[Assignment]:
    """Put the extra ones into the base: one at a random place in each of as many equal parts."""
    result = list(base)
    for number in reversed(range(len(extra))):
        start = len(base) * number // len(extra)
        end = max(start, len(base) * (number + 1) // len(extra) - 1)
        result.insert(generator.randint(start, end), extra[number])
    return result
