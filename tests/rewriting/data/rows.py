"""Rows that several tests write into files."""

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rewriting.exchange import Exchange

ROWS = [
    {"seeker_post": "I failed.", "response_post": 'Oh, "no"!\nTry again.'},
    {"seeker_post": "I moved, alone.", "response_post": "How is it? 😊"},
]


def posts(exchanges: list[Exchange]) -> list[dict[str, str]]:
    return [
        {"seeker_post": exchange.seeker_post, "response_post": exchange.response_post}
        for exchange in exchanges
    ]


def write(path: Path) -> Path:
    """ROWS in the format that the path's ending names."""
    if path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, ROWS)) + "\n\n")
    elif path.suffix == ".json":
        path.write_text(json.dumps(ROWS, indent=1))
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    else:
        with path.open("w", newline="", encoding="utf-8-sig") as file:
            delimiter = "\t" if path.suffix == ".tsv" else ","
            writer = csv.DictWriter(file, list(ROWS[0]), delimiter=delimiter)
            writer.writeheader()
            writer.writerows(ROWS)
    return path


def aloe_record(**changes: object) -> dict[str, object]:
    full_text = "target:\n\nI failed.\n\nobserver:\n\nThat hurts."
    record = {"target_text": "I failed.", "observer_text": "That hurts.", "full_text": full_text}
    spans = {"spans": [[9, 18, "Objective Experience"]], "alignments": [[[9, 18], [31, 42]]]}
    return record | spans | changes


GOOD = '{"seeker_post": "a b", "response_post": "c d"}\n'
