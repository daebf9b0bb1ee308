"""A reader's folder with every file that a page speaks of, and stand-ins for what is far away:
models, the hub, the network, sockets that serve for ever.

What a command does with its words is real: flags, checks, files that are read and written.
"""

import csv
import json
import shutil
import socket
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from policies.named import POLICIES, TRAINED
from recipes.cli import main
from recipes.commands.serve import Desk
from recipes.entry import EVALUATION, TRAINING, run_evaluation, run_training
from rewards.appraisals.alignment.reading import Reading
from rewards.identifiers.named import KINDS, SHIPPED
from rewards.terms.appraisal_alignment import AlignmentReader
from rewriting.ab.study.store import Store
from rewriting.ab.study.study import save_study
from rewriting.exchange import MECHANISMS
from tests.docs.hooks.test_links import ROOT
from tests.light import SaysTwo, light_models
from tests.policies.says import Says
from tests.rewriting.ab.made_study import cast, made_study
from tests.rewriting.serve.toys import FakeDesk

PROGRAMS: dict[str, Callable[[list[str]], None]] = {
    "train.py": run_training,
    "evaluate.py": run_evaluation,
    "rewriting": main,
}
POSTS = ("I failed. It was my own fault.", "My cat died today.", "Nobody calls me.")
REPLIES = ("Study harder.", "Get some rest. It will pass.", "Call them yourself.")


def replies() -> list[dict[str, Any]]:
    """Ninety replies, as the files of a reader have them."""
    return [
        {
            "id": f"r{n}",
            "seeker_post": f"{POSTS[n % 3]} Day {n}.",
            "response_post": REPLIES[n // 3 % 3],
            "author": f"p{n % 7}",
            "created_at": f"2024-01-{1 + n % 28:02}T08:00:00",
            "forum": ("sleep", "exams")[n % 2],
            "thanked": n % 4 == 0,
        }
        for n in range(90)
    ]


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        if path.suffix == ".csv":
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        else:
            file.writelines(json.dumps(row) + "\n" for row in rows)


def renamed(row: dict[str, Any], post: str, reply: str) -> dict[str, Any]:
    return {post: row["seeker_post"], reply: row["response_post"]}


def write_files(folder: Path) -> None:
    """Everything that is named on a page or in an example, as small as it may be."""
    rows = replies()
    for name in ("replies.csv", "replies.jsonl", "my_replies.csv", "chats.jsonl"):
        write_rows(folder / name, rows)
    write_rows(folder / "data/probe/personachat.jsonl", rows)
    scored = [
        row | {name: (n + k) % 3 for k, name in enumerate(MECHANISMS)} | {"empathy": 3}
        for n, row in enumerate(rows)
    ]
    met = {"Pleasantness": 0.5, "Advice": 0.25}
    write_rows(folder / "scores.jsonl", [row | {"appraisals": met} for row in scored])
    write_rows(folder / "sheet.csv", [renamed(row, "post", "reply") for row in rows])
    write_sheet(folder / "sheet.xlsx", [renamed(row, "post", "reply") for row in rows])
    write_sheet(folder / "my_sheet.xlsx", [renamed(row, "question", "answer") for row in rows])
    for name, added in (("ours", "I am so sorry."), ("theirs", "Oh no."), ("outputs", "I see.")):
        rewritten = [
            row | {"rewritten_response": f"{added} {row['response_post']}"} for row in rows
        ]
        write_rows(folder / f"{name}.jsonl", rewritten)
    for name, of in (
        ("a", "ours"),
        ("b", "theirs"),
        ("rewritten", "ours"),
        ("agent", "ours"),
        ("baseline", "theirs"),
    ):
        shutil.copy(folder / f"{of}.jsonl", folder / f"{name}.jsonl")
    for mechanism in MECHANISMS:
        epitome = [
            {"sp_id": n, "rp_id": n, "level": n % 3, "rationales": "" if n % 3 == 0 else REPLIES[0]}
            | {"seeker_post": row["seeker_post"], "response_post": REPLIES[0]}
            for n, row in enumerate(rows)
        ]
        write_rows(folder / f"data/epitome/{mechanism}-reddit.csv", epitome)
    talks = [
        {"conv_id": f"c{n // 2}", "utterance_idx": 1 + n % 2, "context": "sad"}
        | {"prompt": "I failed.", "speaker_idx": n % 2, "utterance": "Oh no_comma_ why?"}
        for n in range(40)
    ]
    for split in ("train", "valid"):
        write_rows(folder / f"data/empathetic_dialogues/{split}.csv", talks)
    target, observer = "It was my own fault.", "It was not."
    full = f"target:\n\n{target}\n\nobserver:\n\n{observer}"
    spans = [[9, 9 + len(target), "Self-Other Agency"]]
    aloe = {"target_text": target, "observer_text": observer, "full_text": full}
    (folder / "aloe.json").write_text(json.dumps([aloe | {"spans": spans, "alignments": []}]))
    (folder / "my_rewards.py").write_text(
        "def shorter(completions, response_post, **_):\n"
        "    return [len(r) - len(c) for c, r in zip(completions, response_post)]\n"
        "kinder = shorter\n"
    )
    shutil.copy(folder / "my_rewards.py", folder / "mine.py")
    (folder / "my_sentences.txt").write_text("That must hurt.\nI am sorry.\n")
    write_runs(folder / "runs")
    write_study(folder / "study")
    for name in ("configs", "rewriting", "benchmarks"):
        (folder / name).symlink_to(ROOT / name)


def write_sheet(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (list(rows[0]), *(list(row.values()) for row in rows)):
        book.active.append(row)
    book.save(path)


def write_runs(runs: Path) -> None:
    """What recipes have written: copies of what is shipped."""
    for name in ("partner", "grpo", "change", "context"):
        shutil.copytree(TRAINED["partner-start"], runs / name / "policy")
    (runs / "partner" / "log.jsonl").write_text('{"step": 1, "reward": 0.5}\n')
    shutil.copytree(TRAINED["bank"], runs / "bank" / "policy")
    for name in ("emprl", "emprl/sft", "emprl_cpu", "ppo", "sft/sft"):
        shutil.copytree(TRAINED["emprl"], runs / name / "policy")
    for name in ("identifier", "independent", "reader", "context", "sense", "kindness"):
        of = "identifier" if name == "independent" else name
        shutil.copytree(SHIPPED / of, runs / name / "model")
    for name in ("appraisals", "alignment", "prompt"):
        of = "appraisals" if name == "prompt" else name
        shutil.copytree(SHIPPED / of, runs / name / "model")
    (runs / "micromodels/model").mkdir(parents=True)
    (runs / "micromodels/model/micromodels.json").write_text("{}")


def write_study(folder: Path) -> None:
    """A study of twelve raters with their votes."""
    study = made_study(exchanges=6, raters=12)
    save_study(study, folder)
    with Store(folder) as store:
        votes = cast(study, lambda rater, place, _: "theirs" if rater % 3 == 0 else "ours")
        for number, vote in enumerate(votes):
            store.append([vote], key=str(number))


def nothing_met(
    self: AlignmentReader, posts: Sequence[str], responses: Sequence[str]
) -> list[Reading]:
    return [Reading((), (), ()) for _ in posts]


def from_hub(name: str, *needed: str) -> Path:
    return SHIPPED / "reader" if needed == KINDS else TRAINED["partner-start"]


def any_port(host: str, port: int) -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def stand_in(patch: pytest.MonkeyPatch) -> None:
    """Put stand-ins in the places of models, the hub, the network and servers."""
    light_models(patch)
    patch.setattr("rewards.identifiers.named.load_identifier", lambda *_, **__: SaysTwo())
    for name in POLICIES:
        patch.setitem(POLICIES, name, Says)
    patch.setattr("policies.named._folder", lambda folder, name="": Says())
    patch.setattr(AlignmentReader, "load", classmethod(lambda cls, *_, **__: cls(None, None)))
    patch.setattr(AlignmentReader, "__call__", nothing_met)
    for module in (*TRAINING.values(), *EVALUATION.values()):
        patch.setattr(import_module(module), "run", lambda config: {})
    for place in ("hub_check", "named"):
        patch.setattr(f"rewriting.runtime.models.{place}.hub_problem", lambda *_: "")
    patch.setattr("rewriting.runtime.models.hub.hub_folder", from_hub)
    patch.setattr("rewriting.runtime.models.hub.send_folder", lambda *_, **__: "an address")
    patch.setattr("rewriting.runtime.models.named.fetch", lambda name, **_: Path(name))
    patch.setattr("rewriting.data.public.fetch", lambda name, folder: Path(folder) / name)
    patch.setattr(Desk, "load", classmethod(lambda cls, who, model: FakeDesk()))
    for place in ("recipes.commands.serve", "recipes.commands.ab.serve"):
        patch.setattr(f"{place}.listen", any_port)
    for place in ("rewriting.serve.server", "rewriting.ab.server.server"):
        patch.setattr(f"{place}.serve", lambda server, listener, **_: listener.close())
    patch.setattr("signal.signal", lambda *_: None)


def run(words: Sequence[str]) -> int:
    """Run a command in this process, the program first; its exit code."""
    program, *rest = words
    try:
        PROGRAMS[Path(program).name](rest)
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0
