"""Exchanges to train on: from one or several sources, each split by seeker and deduplicated."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rewriting.data import Split, load_exchanges, split_of, without_duplicates
from rewriting.data.headers import parse_columns
from rewriting.data.load import SAMPLE
from rewriting.errors import UserError
from rewriting.exchange import Exchange
from rewriting.runtime.seeds import derive_seed

T = TypeVar("T")
logger = logging.getLogger(__name__)
SPLIT_ALREADY = {"sample": "sample:{}", "sample:rewrites": "sample:rewrites_{}"}
"""Bundled sources that come in parts, and the name of a part."""


def load_splits(
    data: str,
    *,
    max_rows: int = 0,
    first_turns: bool = False,
    seed: int = 0,
    keep_crisis: bool = True,
    columns: str = "",
) -> dict[Split, list[Exchange]]:
    """The train, dev and test part of all sources together.

    data: sources of `load_exchanges`, separated by commas. max_rows: at most so many of each
    source and split, drawn at random; 0 takes all. first_turns: leave out exchanges with a history.
    keep_crisis: False leaves out what the safety gate calls a crisis, for policies that will act.
    columns: columns of files that are called otherwise, as seeker_post=post,response_post=reply.
    A source is split by `split_of`, so a seeker of the test part is never trained on, whatever
    other sources say; `sample` and `sample:rewrites` keep the parts that they come in.
    """
    splits: dict[Split, list[Exchange]] = {"train": [], "dev": [], "test": []}
    for source in sources_of(data):
        found: dict[Split, list[Exchange]] = {"train": [], "dev": [], "test": []}
        for split, exchanges in parts_of(source, columns).items():
            found[split] += [e for e in exchanges if not (first_turns and e.history)]
        found = found if keep_crisis else without_crises(found, source)
        for split, exchanges in found.items():
            splits[split] += drawn(exchanges, max_rows, derive_seed(seed, source, split))
    if not splits["train"] or not splits["dev"]:
        sizes = ", ".join(f"{name} {len(rows)}" for name, rows in splits.items())
        raise UserError(f"{data}: too little data to train on ({sizes}).")
    return splits


def without_crises(splits: dict[Split, list[Exchange]], source: str) -> dict[Split, list[Exchange]]:
    """The splits without the exchanges that the safety gate calls a crisis; counted in the log.

    The rules alone are asked: they take no model and judge a large data set in a minute. Possible
    crises stay: a policy has to learn to be kind to sad people.
    """
    from rewriting.safety import Gate

    gate = Gate()
    kept: dict[Split, list[Exchange]] = {}
    for split, exchanges in splits.items():
        kept[split] = [e for e in exchanges if gate.check_exchange(e).verdict != "crisis"]
    counts = ", ".join(f"{len(splits[s]) - len(kept[s])} of {len(splits[s])} {s}" for s in splits)
    logger.info("%s: crises left out (--keep_crisis keeps them): %s", source, counts)
    return kept


def parts_of(source: str, columns: str = "") -> dict[Split, list[Exchange]]:
    """The exchanges of one source by split, without duplicates."""
    parts: dict[Split, list[Exchange]] = {"train": [], "dev": [], "test": []}
    if source in SPLIT_ALREADY:
        return {s: list(load_exchanges(SPLIT_ALREADY[source].format(s))) for s in parts}
    for exchange in without_duplicates(load_exchanges(source, columns=names_for(source, columns))):
        parts[split_of(exchange)].append(exchange)
    return parts


def names_for(source: str, columns: str) -> dict[str, str]:
    """The columns that are called otherwise in a source; the bundled ones have our names."""
    return {} if source.split(":")[0] == "sample" else parse_columns(columns)


def rows_of_split(source: str, split: str) -> list[Exchange]:
    """The exchanges of one split, as training would split them, or of all with their duplicates."""
    if split not in ("all", "train", "dev", "test"):
        raise UserError(f"split is train, dev, test or all, not {split!r}.")
    if split == "all":
        return list(load_exchanges(source))
    if source in SPLIT_ALREADY:
        return list(load_exchanges(SPLIT_ALREADY[source].format(split)))
    return [exchange for exchange in load_exchanges(source) if split_of(exchange) == split]


def sources_of(data: str) -> list[str]:
    return [part.strip() for part in data.split(",") if part.strip()]


def drawn(rows: Sequence[T], max_rows: int, seed: int) -> list[T]:
    """At most so many rows, drawn at random; all of them with 0."""
    if not max_rows or len(rows) <= max_rows:
        return list(rows)
    return random.Random(seed).sample(rows, max_rows)


def known_levels(exchanges: Iterable[Exchange]) -> list[Exchange]:
    """Exchanges with all three levels, without replies that are known not to fit their post."""
    return [
        exchange
        for exchange in exchanges
        if exchange.empathy is not None and (exchange.extra.get("contrast") or {}).get("fits", True)
    ]


def labelled_lines(folder: str, name: str, make: Callable[[Any], T], needs: str) -> list[T]:
    """What `make` gives for each line of a bundled file, or of one in a folder of the same name.

    needs: what a line has to hold, for the message about a bad one.
    """
    path = Path(folder or SAMPLE) / name
    if not path.is_file():
        raise UserError(f"{path}: there is no such file; --data names the folder that holds it.")
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            found.append(make(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            message = f"{path}, line {number}: a line needs {needs} ({error})."
            raise UserError(message) from error
    return found


def other_responses(exchanges: Sequence[Exchange]) -> list[str]:
    """For each exchange a response to another seeker, of the same source where that is near."""
    found = []
    for place, exchange in enumerate(exchanges):
        later = (*exchanges[place + 1 :], *exchanges[:place])
        found.append(next(o.response_post for o in later if o.seeker_post != exchange.seeker_post))
    return found


def labelled_exchanges(data: str, split: str, limit: int) -> list[Exchange]:
    """Exchanges with all three levels, of one split or of all."""
    exchanges = [e for e in rows_of_split(data, split) if e.empathy is not None]
    if not exchanges:
        raise UserError(f"{data} ({split}) holds no exchange with levels of all three mechanisms.")
    return exchanges[: limit or None]
