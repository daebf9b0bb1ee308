"""Who judges which pair, in which order, and on which side each reply stands.

Legend: R raters, v votes per item. Everything follows from the seed.

- Every item gets v different raters; the raters' loads differ by at most one. Raters are drawn anew
  for each block of items in which all of them get the same number, so that everybody meets
  everybody, and a study that is stopped between blocks is balanced too.
- A rater's order is shuffled anew. Pairs of systems take turns in it, and every block of `BLOCK`
  consecutive pairs shows each of two systems as A and as B equally often.
- Of two systems, each is A as often as B within one: for every rater and for every item. The sides
  of an order are a two-colouring of a bipartite graph, which always exists and is found by walking
  Euler circuits with alternating colours.
- Of three or more systems, each is A as often as B within one for every rater (an Euler
  orientation of the rater's graph of systems); the items are brought near to that by exchanges that
  keep the raters' balance.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from math import gcd

from rewriting.ab.study.study import Assignment, Item
from rewriting.errors import UserError
from rewriting.runtime.seeds import derive_seed

BLOCK = 10  # an even number: a full block can be balanced exactly
Edge = tuple[Hashable, Hashable]
Step = tuple[int, Hashable]  # the number of an edge and the node it is left from
Place = tuple[int, str]  # a rater and an item


def assign_items(
    items: Sequence[Item], *, raters: int, votes_per_item: int, seed: int
) -> dict[int, list[Assignment]]:
    """Rater (from 1) → the items that fall to that rater, in order, with their sides."""
    if not 1 <= votes_per_item <= raters:
        raise UserError(
            f"{votes_per_item} votes per item need as many raters; there are {raters}: "
            "lower --votes-per-item or raise --raters."
        )
    shares = share_out(items, raters, votes_per_item, seed)
    orders = {rater: in_turns(share, seed, rater) for rater, share in shares.items()}
    if len({system for item in items for system in item.replies}) == 2:
        left = sides_of_two(orders, seed)
    else:
        left = sides_of_many(orders, seed)
    return {
        rater: [Assignment(item.id, left[rater, item.id]) for item in order]
        for rater, order in orders.items()
    }


def share_out(
    items: Sequence[Item], raters: int, votes_per_item: int, seed: int
) -> dict[int, list[Item]]:
    """Give each item to v raters: in blocks of R / gcd(R, v) items, R drawn in a new order."""
    shares: dict[int, list[Item]] = {rater: [] for rater in range(1, raters + 1)}
    block = raters // gcd(raters, votes_per_item)
    mixed = [item for pair in by_pair(items, seed, "share").values() for item in pair]
    for start in range(0, len(mixed), block):
        drawn = list(shares)
        random.Random(derive_seed(seed, "raters", start)).shuffle(drawn)
        for number, item in enumerate(mixed[start : start + block]):
            for vote in range(votes_per_item):
                shares[drawn[(number * votes_per_item + vote) % raters]].append(item)
    return shares


def by_pair(items: Sequence[Item], seed: int, purpose: str) -> dict[frozenset[str], list[Item]]:
    """The items of each pair of systems, shuffled."""
    pairs: dict[frozenset[str], list[Item]] = defaultdict(list)
    for item in items:
        pairs[frozenset(item.replies)].append(item)
    for number, pair in enumerate(pairs.values()):
        random.Random(derive_seed(seed, purpose, number)).shuffle(pair)
    return pairs


def in_turns(items: Sequence[Item], seed: int, rater: int) -> list[Item]:
    """A rater's order: shuffled, with the pairs of systems spread evenly over it."""
    places = [
        ((number + 0.5) / len(pair), kind, item)
        for kind, pair in enumerate(by_pair(items, seed, f"order of {rater}").values())
        for number, item in enumerate(pair)
    ]
    return [item for _, _, item in sorted(places, key=lambda place: place[:2])]


def sides_of_two(orders: Mapping[int, Sequence[Item]], seed: int) -> dict[Place, str]:
    """Which of two systems is A: a colouring of the graph of (rater, block) and item.

    The walk takes the edges in a random order: sides that follow a pattern could be seen through.
    """
    places = [(rater, n, item) for rater, order in orders.items() for n, item in enumerate(order)]
    generator = random.Random(derive_seed(seed, "sides"))
    generator.shuffle(places)
    edges = [((rater, n // BLOCK), item.id) for rater, n, item in places]
    colours = balanced_colours(edges)
    systems = sorted({system for _, _, item in places for system in item.replies})
    generator.shuffle(systems)
    return {
        (rater, item.id): systems[colour]
        for (rater, _, item), colour in zip(places, colours, strict=True)
    }


def balanced_colours(edges: Sequence[Edge]) -> list[int]:
    """Colour the edges of a bipartite graph 0 or 1, evenly at every node within one.

    Nodes of odd degree are joined to a node of their own kind on the other side; then all degrees
    are even, every Euler circuit is of even length, and colours that alternate along it are even at
    every node. Taking the added edges away leaves a difference of one at the odd nodes.
    """
    full: list[Edge] = [(("left", a), ("right", b)) for a, b in edges]
    odd_left = odd_nodes(a for a, _ in full)
    odd_right = odd_nodes(b for _, b in full)
    full += [(node, "added right") for node in odd_left]
    full += [("added left", node) for node in odd_right]
    if len(odd_left) % 2:  # then as many on the right: both sides count the same edges
        full.append(("added left", "added right"))
    colours = [0] * len(full)
    for circuit in euler_circuits(full):
        for number, (edge, _) in enumerate(circuit):
            colours[edge] = number % 2
    return colours[: len(edges)]


def odd_nodes(ends: Iterable[Hashable]) -> list[Hashable]:
    """The nodes that are an end of an odd number of edges."""
    return [node for node, count in Counter(ends).items() if count % 2]


def euler_circuits(edges: Sequence[Edge]) -> list[list[Step]]:
    """Closed walks that use every edge once (Hierholzer); all degrees must be even."""
    around: dict[Hashable, list[int]] = defaultdict(list)
    for number, (a, b) in enumerate(edges):
        around[a].append(number)
        around[b].append(number)
    used = [False] * len(edges)
    circuits: list[list[Step]] = []
    for start in around:
        stack: list[tuple[Hashable, Step | None]] = [(start, None)]
        circuit: list[Step] = []
        while stack:
            node, came = stack[-1]
            while around[node] and used[around[node][-1]]:
                around[node].pop()
            if around[node]:
                edge = around[node].pop()
                used[edge] = True
                a, b = edges[edge]
                stack.append((b if node == a else a, (edge, node)))
            else:
                stack.pop()
                if came is not None:
                    circuit.append(came)
        if circuit:
            circuits.append(circuit[::-1])
    return circuits


def sides_of_many(orders: Mapping[int, Sequence[Item]], seed: int) -> dict[Place, str]:
    """Which system is A where there are three or more: even per rater, near to even per item."""
    left: dict[Place, str] = {}
    for rater, order in orders.items():
        mixed = list(order)
        random.Random(derive_seed(seed, "sides", rater)).shuffle(mixed)
        edges: list[Edge] = [tuple(sorted(item.replies)) for item in mixed]  # type: ignore[misc]
        for edge, start in oriented(edges):
            left[rater, mixed[edge].id] = str(start)
    even_out_items(orders, left)
    return left


def oriented(edges: Sequence[Edge]) -> list[Step]:
    """(edge, node it starts from) such that out and in differ by at most one at every node."""
    added: list[Edge] = [(("added",), node) for node in odd_nodes(chain.from_iterable(edges))]
    walks = euler_circuits([*edges, *added])
    return [step for walk in walks for step in walk if step[0] < len(edges)]


def even_out_items(orders: Mapping[int, Sequence[Item]], left: dict[Place, str]) -> None:
    """Swap the sides of two items of one pair that stand opposite, where that evens items out."""
    lead: dict[str, int] = defaultdict(int)  # of an item: raters who see its first system as A
    firsts = {item.id: min(item.replies) for order in orders.values() for item in order}
    for (_, item), system in left.items():
        lead[item] += 1 if system == firsts[item] else -1
    changed = True
    while changed:
        changed = False
        for rater, order in orders.items():
            for pair in by_pair(order, 0, "even").values():
                changed |= _swap_once(rater, pair, left, lead, firsts)


def _swap_once(
    rater: int,
    pair: Sequence[Item],
    left: dict[Place, str],
    lead: dict[str, int],
    firsts: Mapping[str, str],
) -> bool:
    """The best such swap of one rater and pair of systems, if it makes any item more even."""
    ahead = [item for item in pair if left[rater, item.id] == firsts[item.id]]
    behind = [item for item in pair if left[rater, item.id] != firsts[item.id]]
    if not ahead or not behind:
        return False
    most = max(ahead, key=lambda item: lead[item.id])
    least = min(behind, key=lambda item: lead[item.id])
    # Changes of the squares: (x - 2)² - x² = 4 - 4x and (y + 2)² - y² = 4 + 4y.
    if 8 - 4 * lead[most.id] + 4 * lead[least.id] >= 0:
        return False
    for item, change in ((most, -2), (least, 2)):
        left[rater, item.id] = item.other(left[rater, item.id])
        lead[item.id] += change
    return True
