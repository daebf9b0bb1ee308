"""`load_exchanges`: from whatever a user names (file, folder, sample, hub id) to exchanges."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

from rewriting.data.dataset import Rows, from_dataset
from rewriting.data.formats import exchanges_of, mechanism_of
from rewriting.data.headers import EPITOME_COLUMNS, delimiter_of, plain
from rewriting.data.rows import READERS, OnBadRow, raise_bad_row, read_hub, read_rows
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange, Label

Columns = Mapping[str, str] | None
SAMPLE = Path(__file__).parent.parent / "sample"
SAMPLE_SPLITS = ("train", "dev", "test")
NEUTRAL = ("everyday", "calm", "technical_support", "enquiries", "counter", "clubs")
"""Bundled exchanges that call for no empathy; no part of `sample`, but named alike."""
AUDITED = (
    *(f"{part}_{split}" for part in ("counterfactuals", "sense") for split in SAMPLE_SPLITS),
    "burdens",
)
"""Bundled posts for the audit of rewards, with sentences that fit them and others that do not."""
REWRITES = "rewrites"
REWRITTEN = tuple(f"{REWRITES}_{split}" for split in SAMPLE_SPLITS)
"""Bundled weak replies with the edits that a kind person would make; no part of `sample`. All
three are `sample:rewrites`."""
NEWCOMERS = ("newcomers", "newcomers2", "newcomers3")
"""Bundled posts with mediocre replies that no policy was trained on."""
BESIDE = (*NEUTRAL, *AUDITED, *REWRITTEN, *NEWCOMERS)
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+(?::[\w.-]+)?")


def load_exchanges(
    source: str | Path | Rows,
    *,
    on_bad_row: OnBadRow = raise_bad_row,
    limit: int | None = None,
    columns: Columns = None,
) -> Iterator[Exchange]:
    """Stream the exchanges of a file, a folder, the bundled sample, a hub data set or a Dataset.

    source: a path; `sample` or `sample:train|dev|test`; `org/name[:split]` on the hub; or a
    Dataset of the datasets library, or other rows by column (dataset.py).
    on_bad_row: called for each bad row; the default raises a UserError that names it.
    limit: take the first so many exchanges.
    columns: our names of columns → those of the source, such as {"seeker_post": "question"}. Case,
    spaces and hyphens make no difference.
    """
    if isinstance(source, str | Path):
        return islice(_exchanges(str(source), on_bad_row, columns), limit)
    return from_dataset(source, on_bad_row=on_bad_row, limit=limit, columns=columns)


def _exchanges(source: str, on_bad_row: OnBadRow, columns: Columns) -> Iterator[Exchange]:
    path = Path(source).expanduser()
    if path.is_dir():
        yield from _folder_exchanges(path, on_bad_row, columns)
    elif path.exists():
        yield from exchanges_of(read_rows(path, on_bad_row), on_bad_row, columns)
    elif source.split(":")[0] == "sample":
        for file in sample_files(source):
            yield from exchanges_of(read_rows(file, on_bad_row), on_bad_row)
    elif name := hub_id(source):
        split = source.partition(":")[2] or "train"
        yield from exchanges_of(read_hub(name, split, on_bad_row), on_bad_row, columns)
    else:
        raise UserError(
            f"{source}: there is no such file or folder. "
            "Without data of your own, use sample, sample:train, sample:dev or sample:test."
        )


def hub_id(source: str) -> str:
    """The hub data set that a source names; empty where it is a file, a folder or the sample."""
    path = Path(source).expanduser()
    if path.exists() or source.split(":")[0] == "sample" or path.suffix.lower() in READERS:
        return ""
    return source.partition(":")[0] if HUB_ID.fullmatch(source) else ""


def sample_files(source: str) -> list[Path]:
    """The files of `sample` (all splits), `sample:SPLIT` or `sample:everyday` and the like."""
    split = source.partition(":")[2]
    if split in BESIDE:
        return [SAMPLE / f"{split}.jsonl"]
    if split == REWRITES:
        return [SAMPLE / f"{name}.jsonl" for name in REWRITTEN]
    if split and split not in SAMPLE_SPLITS:
        splits, beside = ", ".join(SAMPLE_SPLITS), ", ".join((*BESIDE, REWRITES))
        raise UserError(f"{source}: the sample has the splits {splits}, and beside them {beside}.")
    return [SAMPLE / f"{name}.jsonl" for name in SAMPLE_SPLITS if split in ("", name)]


def _folder_exchanges(folder: Path, on_bad_row: OnBadRow, columns: Columns) -> Iterator[Exchange]:
    files = data_files(folder)
    epitome = [file for file in files if file.suffix.lower() == ".csv" and _is_epitome(file)]
    for file in files:
        if file not in epitome:
            yield from exchanges_of(read_rows(file, on_bad_row), on_bad_row, columns)
    if epitome:
        yield from join_epitome(epitome, on_bad_row)


def data_files(folder: Path) -> list[Path]:
    files = sorted(
        file
        for file in folder.iterdir()
        if file.suffix.lower() in READERS
        and not file.name.startswith(".")
        and not file.name.endswith(".bad.jsonl")
    )
    if not files:
        endings = ", ".join(READERS)
        raise UserError(f"{folder} holds no data file (endings: {endings}).")
    return files


def _is_epitome(file: Path) -> bool:
    with file.open(encoding="utf-8-sig", errors="replace") as text:
        head = text.readline().strip()
    names = head.split(delimiter_of(head, ".csv"))
    return {plain(name.strip('"')) for name in names} >= EPITOME_COLUMNS


def join_epitome(files: list[Path], on_bad_row: OnBadRow) -> Iterator[Exchange]:
    """EPITOME's files, one per mechanism, joined into exchanges with all their labels.

    Some (sp_id, rp_id) stand in a file twice: their first rows belong together, then their second
    ones. The white space of a post differs between files; the first file's text is taken, and
    rationales are matched to it where they are used. The corpus is small: it is held in memory.
    """
    joined: dict[tuple[str, int], Exchange] = {}
    for file in sorted(files, key=lambda file: MECHANISMS.index(mechanism_of(str(file)))):
        seen: dict[str, int] = defaultdict(int)
        for exchange in exchanges_of(read_rows(file, on_bad_row), on_bad_row):
            key = (exchange.id, seen[exchange.id])
            seen[exchange.id] += 1
            if key in joined:
                labels: dict[str, Label] = {**joined[key].labels, **exchange.labels}
                joined[key] = replace(joined[key], labels=labels)
            else:
                joined[key] = exchange
    yield from joined.values()
