"""`rewriting score`: how empathic are these replies, and what of the posts do they meet?

Streams any size, resumes, shares the work.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from glob import escape
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recipes.shared.flags.checks import check_file_to_write, check_folder_or_model, check_identifier
from recipes.shared.flags.dialect import examples
from recipes.shared.flags.options import (
    Columns,
    IdentifierName,
    Limit,
    Overwrite,
    SkipBadRows,
    takes,
)
from recipes.shared.rows import disagreement_column, score_row
from rewriting.data.survey import Survey, bad_file, survey
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange
from rewriting.runtime.files.folders import only_writer
from rewriting.runtime.files.json_files import parse_json
from rewriting.runtime.processes import join_processes
from rewriting.words import counted

if TYPE_CHECKING:
    from rewards.appraisals.alignment.reading import Reading
    from rewards.identifiers.assessment import Identifier
    from rewards.terms.appraisal_alignment import AlignmentReader

CHUNK = 256  # rows between two writes
SENTENCES_AT_ONCE = 64  # that the encoder behind appraisals reads
EPILOG = examples(
    "rewriting score --input replies.csv --output scores.jsonl",
    "rewriting score --input sample --output scores.csv",
    "rewriting score --input sheet.xlsx --output scores.parquet"
    " --columns seeker_post=post,response_post=reply",
    "rewriting score --input replies.csv --output scores.jsonl --alignment shipped",
    "torchrun --nproc_per_node 2 -m rewriting score --input replies.csv --output scores.jsonl",
)


@dataclass(frozen=True)
class Options:
    """Options of `rewriting score`."""

    input: Annotated[
        str,
        typer.Option(
            help="Replies to score: a file, a folder, sample[:split], or a hub id org/name[:split]."
        ),
    ]
    output: Annotated[Path, typer.Option(help="File for the scores: .jsonl, .parquet or .csv.")]
    model: IdentifierName = "in-context"
    alignment: Annotated[
        str,
        typer.Option(
            help="Also say which appraisals of the post the reply meets, with this alignment "
            "model: shipped, a folder of train.py alignment, or a sentence encoder."
        ),
    ] = ""
    appraisals: Annotated[
        str,
        typer.Option(
            help="Also say which appraisals the reply meets, labelled by this appraiser: shipped, "
            "a folder of train.py appraisals, or a language model."
        ),
    ] = ""
    batch_size: Annotated[
        int,
        typer.Option(
            min=0,
            help="How many sentences the identifier reads at once; 0: 8 on a CPU, 64 on a GPU.",
        ),
    ] = 0
    limit: Limit = None
    columns: Columns = ""
    skip_bad_rows: SkipBadRows = False
    overwrite: Overwrite = False


@takes(Options)
def score(options: Options) -> None:
    """Score the empathy of replies: levels, probabilities, total and rationales, a line each.

    Stopped, the same command goes on where it was. Several processes share the rows.
    """
    if options.output.suffix not in (".jsonl", ".parquet", ".csv"):
        raise UserError(f"--output {options.output}: name a .jsonl, .parquet or .csv file.")
    process, processes = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    check_file_to_write(options.output, options.overwrite)
    check_identifier(options.model)
    for name in filter(None, (options.alignment, options.appraisals)):
        check_folder_or_model(name)
    rows = survey(
        options.input,
        limit=options.limit,
        columns=options.columns,
        skip_bad_rows=options.skip_bad_rows,
        set_aside=bad_file(options.output) if process == 0 else None,
    )
    settings = {"input": options.input, "limit": options.limit, "model": options.model}
    settings |= {"content of the input": rows.digest}
    settings |= {"batch_size": options.batch_size} if options.batch_size else {}
    if options.alignment or options.appraisals:
        settings |= {"alignment": options.alignment, "appraisals": options.appraisals}
    parts = [part_file(options.output, number, processes, settings) for number in range(processes)]
    if process == 0:
        settle_other_parts(options.output, parts, options.overwrite)
    if not parts[process].exists():  # else this process was done before another one stopped
        score_part(rows, parts[process], settings, process, processes)
    if processes > 1:
        from accelerate import PartialState

        join_processes()
        PartialState().wait_for_everyone()
    if process == 0:
        join_parts(parts, options.output, rows.num_rows)
        print(f"{options.output}: {counted(rows.num_rows, 'reply')} scored")
        if rows.num_bad_rows:
            bad = counted(rows.num_bad_rows, "bad row")
            print(f"{bad} set aside in {bad_file(options.output)}")


def part_file(output: Path, process: int, processes: int, settings: dict[str, Any]) -> Path:
    """Where one process writes its rows, until all are done. Other settings, other files."""
    key = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
    return output.with_name(f"{output.name}.part{process}of{processes}-{key}")


def settle_other_parts(output: Path, parts: Sequence[Path], overwrite: bool) -> None:
    """Refuse to leave the rows of an unfinished run behind, or remove them where that is asked."""
    own = tuple(part.name for part in parts)
    for other in sorted(output.parent.glob(f"{escape(output.name)}.part*of*-*")):
        if other.name.startswith(own):
            continue
        if not overwrite:
            raise UserError(
                f"{other} is from an unfinished run with another input, other settings or another "
                "number of processes. Repeat that command to finish it, or pass --overwrite to "
                "start afresh."
            )
        with only_writer(other.with_name(other.name.removesuffix(".partial").removesuffix(".job"))):
            other.unlink(missing_ok=True)


def score_part(
    rows: Survey, part: Path, settings: dict[str, Any], process: int, processes: int
) -> None:
    """Score every chunk of rows that falls to this process."""
    from rewards.identifiers.named import load_identifier
    from rewards.models import default_batch_size
    from rewriting.runtime.files.jobs import LineJob
    from rewriting.runtime.progress import progress_bar

    with LineJob(part, settings, chunk=CHUNK) as job:
        size = settings.get("batch_size") or default_batch_size()
        identifier = load_identifier(settings["model"], batch_size=size)
        reader = load_reader(settings)
        chunks = chunks_of(rows.exchanges(), process, processes)
        starts = range(process * CHUNK, rows.num_rows, processes * CHUNK)
        share = sum(min(CHUNK, rows.num_rows - start) for start in starts)
        with progress_bar("scoring", share, job.rows_done) as advance:
            for chunk in islice(chunks, job.rows_done // CHUNK, None):
                job.write(scored_rows(chunk, identifier, reader))
                advance(len(chunk))


def load_reader(settings: dict[str, Any]) -> AlignmentReader | None:
    """What reads replies against posts; None unless it was asked for."""
    if "alignment" not in settings:
        return None
    from rewards.terms.appraisal_alignment import AlignmentReader

    names = settings["appraisals"], settings["alignment"]
    return AlignmentReader.load(*names, batch_size=SENTENCES_AT_ONCE)


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


def scored_rows(
    exchanges: Sequence[Exchange], identifier: Identifier, reader: AlignmentReader | None = None
) -> Iterator[dict[str, Any]]:
    seeker_posts = [exchange.seeker_post for exchange in exchanges]
    response_posts = [exchange.response_post for exchange in exchanges]
    assessments = identifier.assess(seeker_posts, response_posts)
    nothing = [None] * len(exchanges)
    members = getattr(identifier, "disagreement", None)  # an ensemble has some
    apart = members(seeker_posts, response_posts) if members else nothing
    readings = reader(seeker_posts, response_posts) if reader else nothing
    for exchange, assessment, one, reading in zip(
        exchanges, assessments, apart, readings, strict=True
    ):
        row = score_row(exchange, assessment) | (disagreement_column(one) if one else {})
        yield row | (met_columns(reading) if reading else {})


def met_columns(reading: Reading) -> dict[str, Any]:
    """What `--alignment` adds to a line: appraisal by appraisal, and the reward's own sum."""
    from rewards.appraisals.alignment.reading import met_appraisals, met_share
    from rewards.terms.appraisal_alignment import ADVICE_WEIGHT

    share = met_share(reading, advice_weight=ADVICE_WEIGHT)
    met = {label: round(value, 4) for label, value in met_appraisals(reading).items()}
    return {"appraisals": met, "appraisal_alignment": round(share, 4)}


def join_parts(parts: Sequence[Path], output: Path, num_rows: int) -> None:
    """Put the parts' chunks back in order; the output appears when it is whole."""
    temporary = output.with_name(f".{output.name}.joining")
    if output.suffix == ".jsonl":
        with temporary.open("w", encoding="utf-8") as joined:
            joined.writelines(checked_lines(parts, num_rows))
    elif output.suffix == ".csv":
        write_csv(parts, temporary, num_rows)
    else:
        write_parquet(parts, temporary, num_rows)
    temporary.replace(output)
    for part in parts:
        part.unlink()


def lines_of(parts: Sequence[Path]) -> Iterator[str]:
    """The lines of all parts in the order of the source: a chunk of each in turn."""
    with ExitStack() as stack:
        files = [stack.enter_context(part.open(encoding="utf-8")) for part in parts]
        while chunk := list(islice(files[0], CHUNK)):
            yield from chunk
            for file in files[1:]:
                yield from islice(file, CHUNK)


def checked_lines(parts: Sequence[Path], num_rows: int) -> Iterator[str]:
    """The same, where they are as many JSON objects as there were rows."""
    numbers = count()
    try:
        for line in lines_of(parts):
            if next(numbers) < num_rows and isinstance(parse_json(line), dict):
                yield line
            else:
                raise ValueError("not a row")
        if next(numbers) != num_rows:
            raise ValueError("too few rows")
    except ValueError as error:
        names = ", ".join(map(str, parts))
        raise UserError(
            f"the scored rows were damaged before they could be joined ({error}). "
            f"Remove {names} and repeat the command."
        ) from error


def write_parquet(parts: Sequence[Path], path: Path, num_rows: int) -> None:
    """Rows as Parquet, a few thousand at a time; read twice, first for the types of the columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = schema_of(map(json.loads, checked_lines(parts, num_rows)))
    texts = {field.name for field in schema if field.type == pa.string()}
    rows = map(json.loads, lines_of(parts))
    with pq.ParquetWriter(path, schema) as writer:
        while batch := list(islice(rows, 4096)):
            plain = [{k: as_text(v) if k in texts else v for k, v in row.items()} for row in batch]
            writer.write_table(pa.Table.from_pylist(plain, schema=schema))


def write_csv(parts: Sequence[Path], path: Path, num_rows: int) -> None:
    """Rows as CSV, which spreadsheets open as UTF-8; lists and mappings as JSON. Read twice, first
    for the names of the columns. A text such as =1+1 gets an apostrophe: it is no formula."""
    from rewriting.ab.results.export import harmless

    def as_cell(value: Any) -> Any:
        return value if isinstance(value, int | float) else harmless(as_text(value) or "")

    names: dict[str, None] = {}
    for line in checked_lines(parts, num_rows):
        names |= dict.fromkeys(json.loads(line))
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.DictWriter(file, list(names))
        table.writeheader()
        for line in lines_of(parts):
            row = json.loads(line)
            table.writerow({name: as_cell(value) for name, value in row.items()})


def schema_of(rows: Iterator[dict[str, Any]]) -> Any:
    """The columns of a scored line, then those of the source: numbers and truth values as such
    where all values of a column are, everything else as text, lists and mappings as JSON."""
    import pyarrow as pa

    texts, numbers = pa.list_(pa.string()), pa.list_(pa.float32())
    known = {
        **dict.fromkeys(("id", "seeker_post", "response_post"), pa.string()),
        **dict.fromkeys(MECHANISMS, pa.int8()),
        "probabilities": pa.struct([(name, numbers) for name in MECHANISMS]),
        "empathy": pa.int8(),
        "rationales": pa.struct([(name, texts) for name in MECHANISMS]),
    }
    kinds: dict[str, set[type]] = {}
    for row in rows:
        for name, value in row.items():
            if name not in known:
                kinds.setdefault(name, set()).update(kind_of(value))
    plain = {
        frozenset([bool]): pa.bool_(),
        frozenset([int]): pa.int64(),
        frozenset([float]): pa.float64(),
        frozenset([int, float]): pa.float64(),
    }
    known |= {name: plain.get(frozenset(found), pa.string()) for name, found in kinds.items()}
    return pa.schema(list(known.items()))


def kind_of(value: Any) -> set[type]:
    """The type of a value, none of a missing one; a number that no column could hold is text."""
    if value is None:
        return set()
    return {str} if isinstance(value, int) and abs(value) >= 2**63 else {type(value)}


def as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
