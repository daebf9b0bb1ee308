"""Targets predicted from the conversation, in place of the levels of one human response."""

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recipes.train.emprl.expected_targets import with_expected_targets
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange, Label

ROOT = Path(__file__).parents[4]


class Encoder:
    """Whether a text is about a loss, and noise that is the text's own."""

    def encode(self, texts: list[str], **_: Any) -> np.ndarray:
        rows = []
        for text in texts:
            noise = random.Random(text)
            rows.append([float("lost" in text), noise.random(), noise.random()])
        return np.array(rows)


def exchanges(count: int) -> list[Exchange]:
    """People ask after first turns, react to losses, and interpret as a coin falls."""
    found, coin = [], random.Random(0)
    for number in range(count):
        lost, later = number % 2 == 0, number % 3 == 0
        post = f"I {'lost' if lost else 'found'} number {number}."
        levels = (2 if lost else 0, coin.choice([0, 1]), 0 if later else 2)
        labels = {m: Label(level) for m, level in zip(MECHANISMS, levels, strict=True)}
        history = (f"Hello {number}.", "Hi.") if later else ()
        found.append(Exchange(post, "Oh.", id=str(number), history=history, labels=labels))
    return found


def test_what_the_conversation_tells_is_predicted_and_what_it_does_not_is_left_open() -> None:
    rows = with_expected_targets(exchanges(240), Encoder())
    for number, row in enumerate(rows):
        reactions, interpretations, explorations = (row.row()[m] for m in MECHANISMS)
        for target in (reactions, interpretations, explorations):
            assert sum(target) == pytest.approx(1.0)
        assert reactions[2 if number % 2 == 0 else 0] > 0.7
        assert explorations[0 if number % 3 == 0 else 2] > 0.7
        assert 0.2 < interpretations[0] < 0.8
        assert interpretations[2] == 0.0  # nobody ever showed it
        assert row.seeker_post == exchanges(240)[number].seeker_post


def test_no_exchange_is_predicted_by_a_model_that_saw_its_conversation() -> None:
    """What is shown in one exchange changes the predictions for other conversations alone."""
    rows = [
        replace(row, seeker_id="", history=(f"Hello {number // 2}.", "Hi."))
        for number, row in enumerate(exchanges(60))
    ]
    turned = {m: Label(2 - label.level) for m, label in rows[7].labels.items()}
    changed = [*rows[:7], replace(rows[7], labels=turned), *rows[8:]]
    before = [row.row()["emotional_reactions"] for row in with_expected_targets(rows, Encoder())]
    after = [row.row()["emotional_reactions"] for row in with_expected_targets(changed, Encoder())]
    assert after[6:8] == before[6:8]
    moved = [number for number in range(60) if after[number] != before[number]]
    assert len(moved) >= 40  # all folds but its own


def test_a_level_that_one_conversation_alone_has() -> None:
    rows = exchanges(60)
    never = {**rows[0].labels, "explorations": Label(0)}
    rows = [replace(row, labels=row.labels | {"explorations": Label(0)}) for row in rows]
    rows[3] = replace(rows[3], labels=never | {"explorations": Label(2)})
    found = [row.row()["explorations"] for row in with_expected_targets(rows, Encoder())]
    assert found[3] == [1.0, 0.0, 0.0]
    assert all(sum(target) == pytest.approx(1.0) for target in found)


def test_too_few_conversations_are_refused() -> None:
    with pytest.raises(UserError, match="expected_targets needs 10 conversations or more, not 9"):
        with_expected_targets(exchanges(9), Encoder())


TWO_PROCESSES = """
import json, sys
from pathlib import Path
import torch.distributed as distributed
from recipes.train.emprl import expected_targets
from rewriting.exchange import MECHANISMS
from tests.recipes.train.emprl.test_expected_targets import Encoder, exchanges

distributed.init_process_group("gloo")
expected_targets.CHUNK = 10
read = []

class Remembering(Encoder):
    def encode(self, texts, **options):
        read.extend(texts)
        return super().encode(texts, **options)

rows = expected_targets.with_expected_targets(exchanges(60), Remembering())
found = [[row.row()[m] for m in MECHANISMS] for row in rows]
Path(sys.argv[1], f"{distributed.get_rank()}.json").write_text(json.dumps([read, found]))
distributed.destroy_process_group()
"""


def test_two_processes_read_half_each_and_end_with_the_same(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(TWO_PROCESSES)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, str(script), str(tmp_path)], check=True, env=environment)
    (read, found), (others, same) = (
        json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)
    )
    alone = [
        [row.row()[m] for m in MECHANISMS]
        for row in with_expected_targets(exchanges(60), Encoder())
    ]
    assert found == same == alone
    # 60 posts and 20 first turns: eight chunks of ten
    assert (len(read), len(others)) == (40, 40)
    assert len({*read, *others}) == 80
