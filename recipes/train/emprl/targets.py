"""Target levels: how empathic the human responses are, by the identifier, labelled once.

EmpRL (arXiv 2408.02976) rewards a response for having the levels that the human one has. They are
kept in a file of lines, by a digest of the two posts and of the identifier: another run, with other
rows or a longer one, labels only what is missing.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rewriting.errors import UserError
from rewriting.exchange import LEVELS, MECHANISMS, Exchange, Label
from rewriting.runtime.files.disk import disk_errors
from rewriting.runtime.files.json_files import parse_json
from rewriting.runtime.processes import (
    across_processes,
    locked_for_all,
    num_processes,
    process_index,
    share_work,
)
from rewriting.runtime.seeds import derive_seed

logger = logging.getLogger(__name__)
CHUNK = 128  # rows of a process between two writes
MOST_WEIGHT = 3.0  # of a rare level beside none, when exchanges are drawn
Levels = tuple[int, ...]


def with_targets(exchanges: Sequence[Exchange], identifier: str, file: Path) -> list[Exchange]:
    """The exchanges with the levels of their responses as labels.

    Levels that the data has already (of people, or from `rewriting score`) stay. Several processes
    share the labelling: all must call it with the same exchanges.
    """
    unlabelled = [one for one in exchanges if one.empathy is None]
    if not unlabelled:
        return list(exchanges)
    known, mark = label(unlabelled, identifier, file), fingerprint(identifier)
    return [
        one if one.empathy is not None else _labelled(one, known[key(one, mark)])
        for one in exchanges
    ]


def balanced(exchanges: Sequence[Exchange], count: int, seed: int) -> list[Exchange]:
    """So many of labelled exchanges, drawn so that rarer levels come more often.

    Most responses show no empathy, so "none" is the safe bet of an agent that reads nothing; where
    rare levels are drawn as often, only reading pays. An exchange weighs the product over the
    mechanisms of how many times rarer its level is than none, 1 to `MOST_WEIGHT` each.
    """
    levels = [tuple(e.labels[m].level for m in MECHANISMS) for e in exchanges]
    counts = [Counter(column) for column in zip(*levels, strict=True)]

    def weight(row: Levels) -> float:
        rarer = [n[0] / n[level] for n, level in zip(counts, row, strict=True)]
        return math.prod(min(max(times, 1.0), MOST_WEIGHT) for times in rarer)

    # Weighted drawing without replacement: the largest u^(1/weight) (Efraimidis, Spirakis 2006).
    numbers = random.Random(derive_seed(seed, "balanced"))
    order = sorted((-(numbers.random() ** (1 / weight(row))), n) for n, row in enumerate(levels))
    return [exchanges[number] for number in sorted(number for _, number in order[:count])]


def label(exchanges: Sequence[Exchange], identifier: str, file: Path) -> dict[str, Levels]:
    """Key → levels of all exchanges. What the file lacks is labelled, and appended to it.

    Each process labels its share of the rows, and all of them get the levels of all. The first one
    alone reads and writes the file, so the others, on other machines perhaps, need not see it.
    Jobs that share a file take turns.
    """

    def waiting() -> None:
        logger.info("%s: another run is labelling; waiting for it to finish", file)

    with disk_errors(file), locked_for_all(file, on_wait=waiting):
        return _label(exchanges, identifier, file)


def _label(exchanges: Sequence[Exchange], identifier: str, file: Path) -> dict[str, Levels]:
    mark, first = fingerprint(identifier), process_index() == 0
    rows = {key(one, mark): one for one in exchanges}
    known = across_processes(read(file) if first else None)[0]
    levels = {digest: known[digest] for digest in rows if digest in known}
    missing = [digest for digest in rows if digest not in levels]
    if first:
        logger.info("target levels: %d known, %d to label", len(levels), len(missing))
        _end_line(file)
    for digests, found in _rounds(rows, missing, identifier):
        new = dict(zip(digests, found, strict=True))
        if first:
            _append(file, new)
        levels |= new
    return levels


def _rounds(
    rows: Mapping[str, Exchange], missing: Sequence[str], identifier: str
) -> Iterator[tuple[Sequence[str], list[Levels]]]:
    """The levels of what is missing, in rounds of `CHUNK` rows for each process."""
    from rewards.identifiers.named import load_identifier
    from rewards.models import default_batch_size
    from rewriting.runtime.progress import progress_of_first

    if not missing:
        return
    judge = load_identifier(identifier, batch_size=default_batch_size())

    def judged(exchanges: Sequence[Exchange]) -> list[Levels]:
        seekers = [one.seeker_post for one in exchanges]
        responses = [one.response_post for one in exchanges]
        found = judge.assess(seekers, responses, rationales=False)
        return [tuple(one.judgements[m].level for m in MECHANISMS) for one in found]

    size = CHUNK * num_processes()
    with progress_of_first("labelling", len(missing)) as on:
        for start in range(0, len(missing), size):
            digests = missing[start : start + size]
            yield digests, share_work([rows[digest] for digest in digests], judged)
            on(len(digests))


def _append(file: Path, levels: Mapping[str, Levels]) -> None:
    lines = [json.dumps({"key": digest, "levels": found}) for digest, found in levels.items()]
    with file.open("a", encoding="utf-8") as writer:
        writer.write("".join(f"{line}\n" for line in lines))


def read(file: Path) -> dict[str, Levels]:
    """Key → levels. A last line that a killed run left unfinished does not count."""
    if not file.exists():
        return {}
    if not file.is_file():
        raise UserError(f"{file} is a folder; target_levels_file names a file.")
    return dict(_lines(file))


def _lines(file: Path) -> Iterator[tuple[str, Levels]]:
    text = file.read_text(encoding="utf-8", errors="replace")  # such a line has no levels
    whole = text[: text.rfind("\n") + 1]
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            row = parse_json(line)
            levels = tuple(row["levels"])
            if len(levels) != len(MECHANISMS) or not set(levels) <= set(LEVELS):
                raise ValueError(f"{levels} are no levels")
            yield str(row["key"]), levels
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{file}, line {number}: no target levels ({error}). Remove the file to label anew."
            ) from error


def _end_line(file: Path) -> None:
    """Cut off half a line, so that what is appended begins one of its own."""
    if file.exists():
        content = file.read_bytes()
        if not content.endswith(b"\n"):
            file.write_bytes(content[: content.rfind(b"\n") + 1])


def key(exchange: Exchange, mark: str) -> str:
    """What a level depends on: the two posts and who judged them."""
    parts = json.dumps([mark, exchange.seeker_post, exchange.response_post])
    return hashlib.sha256(parts.encode()).hexdigest()[:32]


def fingerprint(identifier: str) -> str:
    """The identifier's name and files: one trained anew in the same folder is another one."""
    from rewards.identifiers.ensemble import EnsembleName
    from rewards.identifiers.in_context.gate import read_settings
    from rewards.identifiers.named import ENSEMBLE, NAMES, folder_of

    if identifier.startswith(ENSEMBLE):
        members = EnsembleName.parse(identifier.removeprefix(ENSEMBLE)).members
        parts = "".join([identifier, *map(fingerprint, members)])
        return hashlib.sha256(parts.encode()).hexdigest()[:16]
    folder = folder_of(identifier)
    sums = hashlib.sha256(identifier.encode() if identifier not in NAMES else b"")
    for path in sorted(folder.glob("*")) if folder.is_dir() else []:
        if path.suffix in (".json", ".safetensors") and path.name != "results.json":
            sums.update(path.read_bytes())
        if path.name == "context.json":  # a gate goes with an identifier, which may change too
            sums.update(fingerprint(read_settings(folder)["identifier"]).encode())
    return sums.hexdigest()[:16]


def _labelled(exchange: Exchange, levels: Levels) -> Exchange:
    labels = {m: Label(level) for m, level in zip(MECHANISMS, levels, strict=True)}
    return replace(exchange, labels=labels | dict(exchange.labels))
