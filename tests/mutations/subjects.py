"""What is damaged, and what must come of it. Each subject says how a case ended, in a word.

A wrong end raises an AssertionError; any exception but a UserError is one as well.
"""

import csv
import json
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rewriting.data.appraisals import load_appraisals
from rewriting.data.load import load_exchanges
from rewriting.data.survey import survey
from rewriting.errors import UserError
from rewriting.runtime.files.jobs import LineJob
from rewriting.runtime.training.checkpoints import Checkpoints
from tests.mutations.bytes import copied, damage_folder, mutated
from tests.mutations.ends import Case, one_line
from tests.mutations.folders import ModelCaches, ModelFolders, PolicyFolders, RewriterFolders
from tests.mutations.reward_models import RewardModels

ROWS = [
    {"id": "a", "seeker_post": "I failed, again.", "response_post": 'Oh "no"! 😊', "topic": "é"},
    {"id": "b", "seeker_post": "I moved.", "response_post": "How is it?", "topic": "x"},
    {"id": "c", "seeker_post": "Hm.", "response_post": "Yes.\nGo on.", "topic": None},
]
LABELS = {
    "history": ["Hi."],
    "explorations": 2,
    "rationales": {"explorations": ["How"]},
    "nested": {"a": [1, 2.5]},
}
ALOE = {
    "target_text": "I failed.",
    "observer_text": "That hurts.",
    "full_text": "target:\n\nI failed.\n\nobserver:\n\nThat hurts.",
    "spans": [[9, 18, "Objective Experience"], [31, 42, "Pleasantness"]],
    "alignments": [[[9, 18], [31, 42]]],
}


def write_data_files(folder: Path) -> list[Path]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    rows = [row | LABELS for row in ROWS]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "rows.json").write_text(json.dumps(rows, indent=1))
    (folder / "aloe.json").write_text(json.dumps([ALOE, ALOE], indent=1))
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    epitome = ["sp_id", "rp_id", "seeker_post", "response_post", "level", "rationales"]
    dialogue = ["conv_id", "utterance_idx", "context", "prompt", "speaker_idx", "utterance"]
    tables = {
        "rows.csv": [list(ROWS[0]), *([str(v) for v in row.values()] for row in ROWS)],
        "partner.tsv": [["I failed.", "Try again."], ["I moved.", "How is it?"]],
        "explorations-reddit.csv": [epitome, ["1", "2", "I failed.", "Why?", "2", "Why?|"]] * 2,
        "dialogues.csv": [dialogue, *(["c", str(n), "sad", "p", "0", f"t{n}"] for n in (1, 2, 3))],
    }
    for name, table in tables.items():
        with (folder / name).open("w", newline="") as file:
            csv.writer(file, delimiter="\t" if name.endswith("tsv") else ",").writerows(table)
    return sorted(folder.iterdir())


@dataclass
class DataFiles:
    """Every format: rows, bad rows with their place, or one line. What is read can be written."""

    folder: Path

    def __post_init__(self) -> None:
        self.files = write_data_files(self.folder)
        self.contents = {path.name: path.read_bytes() for path in self.files}

    def __call__(self, chance: random.Random, work: Path) -> str:
        name = chance.choice(self.files).name
        path = work / name
        path.write_bytes(mutated(self.contents[name], chance))
        read, bad = 0, []
        try:
            for exchange in load_exchanges(path, on_bad_row=bad.append):
                json.dumps(exchange.row(), ensure_ascii=False, default=str).encode()
                read += 1
        except UserError as error:
            ended = one_line(error, naming=path)
        else:
            ended = "bad rows" if bad else "read"
            if read:
                survey(str(path), skip_bad_rows=True, set_aside=work / "bad.jsonl")
        for row in bad:
            assert row.file == str(path)
            assert row.line >= 1
            assert row.reason
        if name == "aloe.json":
            try:
                list(load_appraisals(path))
            except UserError as error:
                one_line(error)
        return ended


def a_run() -> dict[str, Any]:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    return {"model": model, "optimizer": torch.optim.AdamW(model.parameters(), lr=0.1)}


@dataclass
class CheckpointFolders:
    """The newest whole checkpoint, or the one before it; never weights that were not saved."""

    folder: Path

    def __post_init__(self) -> None:
        run = a_run()
        self.weights = {}
        for step in (3, 6):
            torch.nn.init.constant_(run["model"].weight, float(step))
            run["model"](torch.ones(1, 3)).sum().backward()
            run["optimizer"].step()
            Checkpoints(self.folder).save(step, **run)
            self.weights[step] = run["model"].weight.detach().clone()

    def __call__(self, chance: random.Random, work: Path) -> str:
        folder = copied(self.folder, work / "checkpoints")
        target = chance.choice((folder, folder / "step_00000006", folder / "step_00000006"))
        damage_folder(target, chance, work / "it ran")
        run = a_run()
        try:
            with Checkpoints(folder) as checkpoints:
                step = checkpoints.restore(**run)
        except UserError as error:
            return one_line(error)
        assert torch.equal(run["model"].weight, self.weights[step]), "weights that were not saved"
        return f"step {step}"


@dataclass
class Jobs:
    """The same lines as without damage, or one line and nothing of the old run touched."""

    folder: Path

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.run(self.folder / "whole.jsonl")
        self.whole = (self.folder / "whole.jsonl").read_text()
        (self.folder / "whole.jsonl").unlink()
        with suppress(InterruptedError):
            self.run(self.folder / "out.jsonl", stop_at=6)

    def run(self, output: Path, stop_at: int = -1, overwrite: bool = False) -> None:
        with LineJob(output, {"seed": 1, "input": "é"}, chunk=2, overwrite=overwrite) as job:
            for start in range(job.rows_done, 10, 2):
                if start == stop_at:
                    raise InterruptedError
                job.write({"n": n, "text": "é" * n} for n in range(start, start + 2))

    def __call__(self, chance: random.Random, work: Path) -> str:
        folder = copied(self.folder, work / "job")
        output = folder / "out.jsonl"
        damage_folder(folder, chance, work / "it ran")
        partial = output.with_name("out.jsonl.partial")
        before = partial.read_bytes() if partial.is_file() else b""
        ended = "finished"
        try:
            self.run(output)
        except UserError as error:
            ended = one_line(error)
            assert not partial.is_file() or partial.read_bytes() == before, "touched"
            try:
                self.run(output, overwrite=True)
            except UserError as again:  # a folder or a pipe in its place
                return one_line(again)
        assert output.read_text() == self.whole, "other lines than without damage"
        return ended


SUBJECTS: dict[str, Callable[[Path], Case]] = {
    "data files": DataFiles,
    "checkpoints": CheckpointFolders,
    "jobs": Jobs,
    "policy folders": PolicyFolders,
    "rewriter folders": RewriterFolders,
    "reward models": RewardModels,
    "model caches": ModelCaches,
    "model folders": ModelFolders,
}
