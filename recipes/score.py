"""`rewriting score`: how empathic are these replies? Streams any size, resumes, shares the work."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rewriting.data.survey import Survey, bad_file, survey
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange

if TYPE_CHECKING:
    from rewards.identifiers.assessment import Assessment, Identifier

CHUNK = 256  # rows between two writes
EPILOG = (
    "Examples:  rewriting score --input replies.csv --output scores.jsonl  ·  "
    "rewriting score --input sample --output scores.parquet  ·  "
    "torchrun --nproc_per_node 2 -m rewriting score --input replies.csv --output scores.jsonl"
)


def score(
    input: Annotated[
        str, typer.Option(help="A file, a folder, sample[:split], or a hub id org/name[:split].")
    ],
    output: Annotated[Path, typer.Option(help="Where the scores go: .jsonl or .parquet.")],
    model: Annotated[
        str, typer.Option(help="The identifier: epitome, or a folder that train.py has written.")
    ] = "epitome",
    limit: Annotated[int | None, typer.Option(min=1, help="Take the first so many rows.")] = None,
    skip_bad_rows: Annotated[
        bool, typer.Option("--skip-bad-rows", help="Set bad rows aside in OUTPUT.bad.jsonl.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT.")] = False,
) -> None:
    """Score the empathy of replies: levels, probabilities, total and rationales, a line each.

    Stopped, the same command goes on where it was. Several processes share the rows.
    """
    if output.suffix not in (".jsonl", ".parquet"):
        raise UserError(f"{output}: the output is a .jsonl or a .parquet file.")
    process, processes = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if output.exists() and not overwrite:
        raise UserError(f"{output} exists. Pass --overwrite to replace it.")
    rows = survey(
        input,
        limit=limit,
        skip_bad_rows=skip_bad_rows,
        set_aside=bad_file(output) if process == 0 else None,
    )
    settings = {"input": input, "limit": limit, "model": model, "digest": rows.digest}
    parts = [part_file(output, number, processes, settings) for number in range(processes)]
    if not parts[process].exists():  # else this process was done before another one stopped
        score_part(rows, parts[process], settings, process, processes)
    if processes > 1:
        from accelerate import PartialState

        PartialState().wait_for_everyone()
    if process == 0:
        join_parts(parts, output)
        print(f"{rows.num_rows:,} replies scored in {output}")
        if rows.num_bad_rows:
            print(f"{rows.num_bad_rows:,} bad rows set aside in {bad_file(output)}")


def part_file(output: Path, process: int, processes: int, settings: dict[str, Any]) -> Path:
    """Where one process writes its rows, until all are done. Other settings, other files."""
    key = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
    return output.with_name(f"{output.name}.part{process}of{processes}-{key}")


def score_part(
    rows: Survey, part: Path, settings: dict[str, Any], process: int, processes: int
) -> None:
    """Score every chunk of rows that falls to this process."""
    from rewards.identifiers.named import load_identifier
    from rewriting.runtime.jobs import LineJob
    from rewriting.runtime.progress import progress_bar

    with LineJob(part, settings, chunk=CHUNK) as job:
        identifier = load_identifier(settings["model"])
        chunks = chunks_of(rows.exchanges(), process, processes)
        share = len(range(process * CHUNK, rows.num_rows, processes * CHUNK)) * CHUNK
        with progress_bar("scoring", share, job.rows_done) as advance:
            for chunk in islice(chunks, job.rows_done // CHUNK, None):
                job.write(scored_rows(chunk, identifier))
                advance(len(chunk))


def chunks_of(
    rows: Iterator[Exchange], process: int, processes: int
) -> Iterator[Sequence[Exchange]]:
    """Every chunk of rows whose number falls to the process."""
    for number in count():
        chunk = list(islice(rows, CHUNK))
        if not chunk:
            return
        if number % processes == process:
            yield chunk


def scored_rows(exchanges: Sequence[Exchange], identifier: Identifier) -> Iterator[dict[str, Any]]:
    assessments = identifier.assess(
        [exchange.seeker_post for exchange in exchanges],
        [exchange.response_post for exchange in exchanges],
    )
    for exchange, assessment in zip(exchanges, assessments, strict=True):
        yield score_row(exchange, assessment)


def score_row(exchange: Exchange, assessment: Assessment) -> dict[str, Any]:
    """One line of the output, which every command reads again; docs/scoring.md explains it.

    Other columns of the source stay (user, time, outcome, …), for `rewriting insights` and others.
    """
    judgements = assessment.judgements
    return exchange.row() | {
        **{name: judgements[name].level for name in MECHANISMS},
        "probabilities": {
            name: [round(p, 6) for p in judgements[name].probabilities] for name in MECHANISMS
        },
        "empathy": assessment.empathy,
        "rationales": {name: list(judgements[name].rationales) for name in MECHANISMS},
    }


def join_parts(parts: Sequence[Path], output: Path) -> None:
    """Put the parts' chunks back in order; the output appears when it is whole."""
    temporary = output.with_name(f".{output.name}.joining")
    files = [part.open(encoding="utf-8") for part in parts]

    def lines() -> Iterator[str]:
        while chunk := list(islice(files[0], CHUNK)):
            yield from chunk
            for file in files[1:]:
                yield from islice(file, CHUNK)

    if output.suffix == ".jsonl":
        with temporary.open("w", encoding="utf-8") as joined:
            joined.writelines(lines())
    else:
        write_parquet(map(json.loads, lines()), temporary)
    for file in files:
        file.close()
    temporary.replace(output)
    for part in parts:
        part.unlink()


def write_parquet(rows: Iterator[dict[str, Any]], path: Path) -> None:
    """Rows as Parquet, a few thousand at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts, numbers = pa.list_(pa.string()), pa.list_(pa.float32())
    schema = pa.schema(
        [
            *((name, pa.string()) for name in ("id", "seeker_post", "response_post")),
            *((name, pa.int8()) for name in MECHANISMS),
            ("probabilities", pa.struct([(name, numbers) for name in MECHANISMS])),
            ("empathy", pa.int8()),
            ("rationales", pa.struct([(name, texts) for name in MECHANISMS])),
        ]
    )
    with pq.ParquetWriter(path, schema) as writer:
        while batch := list(islice(rows, 4096)):
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
