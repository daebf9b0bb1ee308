"""The loop learns, resumes bit for bit, and does not care how a batch is cut."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from rewriting.errors import UserError
from rewriting.runtime.training.log import Log
from rewriting.runtime.training.run import rate_factor
from rewriting.runtime.training.supervised import train
from rewriting.runtime.training.weights import Result

ROWS = [(float(x), 2.0 * x + 1.0) for x in range(-8, 8)]


class Line(nn.Module):
    """y = a·x + b with dropout, so that a resume with other randomness would show."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.linear = nn.Linear(1, 1)
        self.dropout = nn.Dropout(dropout)
        self.frozen = nn.Parameter(torch.ones(1), requires_grad=False)

    def loss(self, rows: Any) -> tuple[Tensor, float]:
        x, y = torch.tensor([row[0] for row in rows]), torch.tensor([row[1] for row in rows])
        guess = self.linear(self.dropout(x[:, None])).squeeze(-1)
        return (guess - y).square().sum(), float(len(rows))


def fit(output: Path, dropout: float = 0.0, **options: Any) -> tuple[Line, Result]:
    module = Line(dropout)
    settings: dict[str, Any] = {
        "steps": 12,
        "batch_size": 8,
        "micro_batch_size": 4,
        "learning_rate": 0.1,
        "eval_every": 3,
        "save_every": 5,
        **options,
    }
    result = train(
        module, module.loss, ROWS, ROWS[:6], output=output, accelerator=Accelerator(), **settings
    )
    return module, result


def lines(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def test_it_learns_and_logs_every_step(tmp_path: Path) -> None:
    _, result = fit(tmp_path, steps=60)
    log = lines(tmp_path)
    assert [row["step"] for row in log] == list(range(1, 61))
    assert log[-1]["loss"] < log[0]["loss"] / 4
    assert result.dev_loss == min(row["dev_loss"] for row in log if "dev_loss" in row)
    assert (tmp_path / "loss.png").stat().st_size > 1000


def test_the_best_weights_are_kept(tmp_path: Path) -> None:
    module, result = fit(tmp_path, learning_rate=3.0, eval_every=1)  # overshoots
    log = lines(tmp_path)
    assert result.step == min(log, key=lambda row: row["dev_loss"])["step"]
    loss, count = module.eval().loss(ROWS[:6])
    assert loss.item() / count == pytest.approx(result.dev_loss, rel=1e-5)


def test_micro_batches_change_no_loss(tmp_path: Path) -> None:
    fit(tmp_path / "a", micro_batch_size=8)
    fit(tmp_path / "b", micro_batch_size=3, size=lambda row: int(row[0]))
    for a, b in zip(lines(tmp_path / "a"), lines(tmp_path / "b"), strict=True):
        assert a == pytest.approx(b, rel=1e-4)


def test_a_stopped_run_goes_on_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, result = fit(tmp_path / "whole", dropout=0.5)
    add = Log.add

    def stopping(self: Log, row: dict[str, float]) -> None:
        if row["step"] == 8:
            raise KeyboardInterrupt  # as if killed: steps 6 to 8 are lost
        add(self, row)

    monkeypatch.setattr(Log, "add", stopping)
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path / "cut", dropout=0.5)
    assert [row["step"] for row in lines(tmp_path / "cut")] == list(range(1, 8))
    monkeypatch.setattr(Log, "add", add)
    again, again_result = fit(tmp_path / "cut", dropout=0.5)
    assert again_result == result
    assert lines(tmp_path / "cut") == lines(tmp_path / "whole")
    for key, tensor in whole.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[key])


def test_a_finished_run_is_not_done_twice(tmp_path: Path) -> None:
    first, result = fit(tmp_path)
    before = lines(tmp_path)
    second, again = fit(tmp_path)
    assert (again, lines(tmp_path)) == (result, before)
    assert torch.equal(first.linear.weight, second.linear.weight)


def test_the_rate_rises_and_falls() -> None:
    assert [rate_factor(step, 10, 0.2) for step in range(10)] == pytest.approx(
        [0.5, 1.0, 1.0, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125]
    )


def test_no_rows_are_the_users_mistake(tmp_path: Path) -> None:
    module = Line(0.0)
    with pytest.raises(UserError, match="0 rows to train on"):
        train(
            module,
            module.loss,
            [],
            ROWS,
            output=tmp_path,
            accelerator=Accelerator(),
            steps=1,
            batch_size=1,
            micro_batch_size=1,
            learning_rate=0.1,
        )
