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
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rewriting.errors import UserError
from rewriting.exchange import LEVELS, MECHANISMS, Exchange, Label
from rewriting.runtime.files import disk_errors
from rewriting.runtime.seeds import derive_seed

logger = logging.getLogger(__name__)
CHUNK = 128  # rows between two writes
MOST_WEIGHT = 3.0  # of a rare level beside none, when exchanges are drawn
Levels = tuple[int, ...]


def with_targets(
    exchanges: Sequence[Exchange], identifier: str, file: Path, accelerator: Any = None
) -> list[Exchange]:
    """The exchanges with the levels of their responses as labels.

    Levels that the data has already (of people, or from `rewriting score`) stay. Of several
    processes the first labels, and the others read what it wrote.
    """
    main = accelerator is None or accelerator.is_main_process
    unlabelled = [one for one in exchanges if one.empathy is None]
    if main and unlabelled:
        label(unlabelled, identifier, file)
    if accelerator is not None:
        accelerator.wait_for_everyone()
    if not unlabelled:
        return list(exchanges)
    known, mark = read(file), fingerprint(identifier)
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


def label(exchanges: Sequence[Exchange], identifier: str, file: Path) -> None:
    """Append the levels that the file lacks. Runs that share a file take turns."""
    from rewriting.runtime.folders import locked

    def waiting() -> None:
        logger.info("%s: another run is labelling; waiting for it to finish", file)

    with disk_errors(file), locked(file, on_wait=waiting):
        _label(exchanges, identifier, file)


def _label(exchanges: Sequence[Exchange], identifier: str, file: Path) -> None:
    from rewriting.runtime.progress import progress_bar

    known, mark = read(file), fingerprint(identifier)
    missing = {key(one, mark): one for one in exchanges}
    missing = {digest: one for digest, one in missing.items() if digest not in known}
    logger.info("target levels: %d known, %d to label", len(known), len(missing))
    if not missing:
        return
    from rewards.identifiers.named import load_identifier

    judge = load_identifier(identifier)
    rows = list(missing.items())
    _end_line(file)
    with file.open("a", encoding="utf-8") as lines, progress_bar("labelling", len(rows)) as on:
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            found = judge.assess(
                [one.seeker_post for _, one in chunk],
                [one.response_post for _, one in chunk],
                rationales=False,
            )
            for (digest, _), assessment in zip(chunk, found, strict=True):
                levels = [assessment.judgements[m].level for m in MECHANISMS]
                lines.write(json.dumps({"key": digest, "levels": levels}) + "\n")
            lines.flush()
            on(len(chunk))


def read(file: Path) -> dict[str, Levels]:
    """Key → levels. A last line that a killed run left unfinished does not count."""
    if not file.exists():
        return {}
    if not file.is_file():
        raise UserError(f"{file} is a folder; targets is a file to keep target levels in.")
    return dict(_lines(file))


def _lines(file: Path) -> Iterator[tuple[str, Levels]]:
    text = file.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            row = json.loads(line)
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
    from rewards.identifiers.context_gate import read_settings
    from rewards.identifiers.ensemble import EnsembleName
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
