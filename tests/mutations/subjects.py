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
from rewriting.runtime.files.folders import write_manifest
from rewriting.runtime.files.jobs import LineJob
from rewriting.runtime.language_models.backbone import Backbone
from rewriting.runtime.models import installed, wheels
from rewriting.runtime.models import named as models
from rewriting.runtime.training.checkpoints import Checkpoints
from tests.mutations.bytes import copied, damage_folder, mutated
from tests.mutations.ends import Case, one_line
from tests.mutations.reward_models import RewardModels
from tests.tiny_lm import tiny_llama, tiny_tokenizer, write_tiny_llama

# Data files


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


# Checkpoints


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


# Jobs


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


# Policy folders


def weights_of(agent: Any) -> dict[str, torch.Tensor]:
    named = agent.module.named_parameters()
    return {name: tensor.detach().clone() for name, tensor in named}


@dataclass
class PolicyFolders:
    """The weights that were saved, or one line; no code is run."""

    folder: Path

    def __post_init__(self) -> None:
        from policies.editing.agent import EditAgent
        from policies.editing.settings import EditSettings

        self.agent, agent = EditAgent, EditAgent(self.backbone(), EditSettings(rank=2))
        for tensor in agent.module.parameters():
            if tensor.requires_grad:
                torch.nn.init.normal_(tensor)
        agent.save(self.folder)
        self.weights = weights_of(self.agent.load(self.folder, self.backbone()))

    @staticmethod
    def backbone() -> Backbone:
        return Backbone(tiny_llama(), tiny_tokenizer(), name="tiny")

    def __call__(self, chance: random.Random, work: Path) -> str:
        folder = copied(self.folder, work / "policy")
        damage_folder(folder, chance, work / "it ran")
        try:
            agent = self.agent.load(folder, self.backbone())
        except UserError as error:
            return one_line(error)
        now = weights_of(agent)
        assert now.keys() == self.weights.keys()
        assert all(torch.equal(now[name], self.weights[name]) for name in now), "other weights"
        return "loaded"


@dataclass
class RewriterFolders:
    """A chat model with the adapter that was saved, or one line; no code is run."""

    folder: Path

    def __post_init__(self) -> None:
        import peft

        from policies.chat.rewriter import RewriterSettings, write_rewriter

        lora = peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False)
        peft.get_peft_model(tiny_llama(), lora).save_pretrained(self.folder)
        write_rewriter(self.folder, RewriterSettings(model="tiny"))
        self.weights = self.load(self.folder)

    @staticmethod
    def load(folder: Path) -> dict[str, torch.Tensor]:
        from policies.chat.rewriter import read_rewriter, with_adapter

        read_rewriter(folder)
        return with_adapter(tiny_llama(), folder).state_dict()

    def __call__(self, chance: random.Random, work: Path) -> str:
        folder = copied(self.folder, work / "rewriter")
        damage_folder(folder, chance, work / "it ran")
        try:
            now = self.load(folder)
        except UserError as error:
            return one_line(error)
        assert now.keys() == self.weights.keys()
        assert all(torch.equal(now[name], self.weights[name]) for name in now), "other weights"
        return "loaded"


# Models


@dataclass
class ModelCaches:
    """The weights that were installed, mended where a copy helps, or one line; no code is run."""

    folder: Path

    def __post_init__(self) -> None:
        write_tiny_llama(self.folder / "tiny")
        write_manifest(self.folder / "tiny", EDITION)
        with _patched(self.folder):
            installed.remember(self.folder / "tiny", EDITION)
        self.weights = tiny_llama().state_dict()

    def __call__(self, chance: random.Random, work: Path) -> str:
        cache = copied(self.folder, work / "cache")
        damage_folder(
            chance.choice((cache, cache / "tiny", cache / "tiny")), chance, work / "it ran"
        )
        with _patched(cache):
            try:
                model, _ = models.load_causal("tiny", device="cpu")
            except UserError as error:
                return one_line(error)
        state = model.state_dict()
        assert all(torch.equal(state[name], self.weights[name]) for name in state), "other weights"
        return "loaded"


LARGEST_COPIED = 5000  # bytes: every file of the toy but its weights
EDITION = {"version": "1.0", "sha256": "0" * 64, "conversion": 1}


def _no_network(*_: object, **options: object) -> Path:
    raise UserError("could not download tiny: there is no network here.")


class _patched:
    """The short name `tiny` in a cache folder, without a network; its weights have no copy."""

    def __init__(self, cache: Path) -> None:
        from rewriting.runtime.models.assembly import Wheel, WheelFiles
        from rewriting.runtime.models.convert import copied_folder

        contents = WheelFiles(Wheel("tiny", "1.0", "0" * 64), {})
        sizes = {"size": 1, "disk_size": 1, "convert": copied_folder}
        self.model = models.NamedModel("tiny", "", "", "", contents, **sizes)
        self.cache = cache

    def __enter__(self) -> None:
        self.before = models.cache_folder, wheels.download, installed.SPARE_BYTES
        installed.SPARE_BYTES = LARGEST_COPIED
        models.cache_folder = lambda: self.cache
        wheels.download = _no_network
        models.SHORT_NAMES["tiny"] = self.model

    def __exit__(self, *_: object) -> None:
        models.cache_folder, wheels.download, installed.SPARE_BYTES = self.before
        del models.SHORT_NAMES["tiny"]


@dataclass
class ModelFolders:
    """A folder that somebody names: loaded or one line; no code is run."""

    folder: Path

    def __post_init__(self) -> None:
        write_tiny_llama(self.folder)

    def __call__(self, chance: random.Random, work: Path) -> str:
        folder = copied(self.folder, work / "model")
        damage_folder(folder, chance, work / "it ran")
        try:
            models.load_causal(str(folder), device="cpu")
        except UserError as error:
            return one_line(error)
        return "loaded"


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
