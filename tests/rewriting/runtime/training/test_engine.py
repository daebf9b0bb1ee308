"""One optimizer step: what divides it, what stops it, and whose work reducing gradients is."""

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from rewriting.errors import UserError
from rewriting.runtime.training.engine import Engine
from rewriting.runtime.training.weights import Weights

ROOT = Path(__file__).parents[4]


class Plain(torch.optim.SGD):
    """A step is the gradient itself."""

    def __init__(self, groups: Any, lr: float, weight_decay: float) -> None:
        super().__init__(groups, lr=lr)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setattr(torch.optim, "AdamW", Plain)
    module = nn.Linear(1, 1, bias=False)
    nn.init.constant_(module.weight, 2.0)
    return Engine(module, Accelerator(cpu=True), learning_rate=1.0, max_grad_norm=100.0)


def squares(engine: Engine) -> Any:
    def loss(rows: list[float]) -> tuple[Tensor, float]:
        return engine.inner(torch.tensor(rows)[:, None]).square().sum(), float(len(rows))

    return loss


@pytest.mark.parametrize("batches", [[[1.0, 2.0, 3.0]], [[1.0], [2.0, 3.0]]])
@pytest.mark.parametrize("accumulation", [1, 4])
def test_a_step_does_not_depend_on_micro_batches_or_the_launcher(
    engine: Engine, batches: list[list[float]], accumulation: int
) -> None:
    engine.accelerator.gradient_accumulation_steps = accumulation
    sums, norm = engine.update(squares(engine), batches)
    # (w·x)² over 1, 2, 3 at w = 2: 4 · 14; its gradient 2·w·Σx² = 56, over three rows.
    assert sums == pytest.approx([56.0, 3.0])
    assert norm == pytest.approx(56 / 3)
    assert engine.inner.weight.item() == pytest.approx(2 - 56 / 3)
    engine.accelerator.gradient_accumulation_steps = 1


def test_the_weight_may_be_known_before(engine: Engine) -> None:
    _, norm = engine.update(squares(engine), [[1.0, 2.0, 3.0]], weight=7.0)
    assert norm == pytest.approx(8.0)


def test_a_step_may_be_called_off(engine: Engine) -> None:
    sums, norm = engine.update(squares(engine), [[1.0]], stop=lambda sums: sums[0] > 3)
    assert (sums, norm) == ([4.0, 1.0], None)
    assert engine.inner.weight.item() == 2.0
    assert engine.inner.weight.grad is None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_stops_the_training(engine: Engine, bad: float) -> None:
    with pytest.raises(UserError, match=r"step 3: the gradient is (nan|inf), so the training has"):
        engine.update(squares(engine), [[1.0, bad]], name="step 3")
    assert engine.inner.weight.item() == 2.0


def test_the_module_is_given_back_plain(engine: Engine) -> None:
    engine.update(squares(engine), [[1.0]])
    engine.release()
    assert engine.accelerator._models == []
    assert type(engine.inner) is nn.Linear


def test_half_precision_that_needs_scaling_is_refused() -> None:
    class Half:
        mixed_precision = "fp16"

    with pytest.raises(UserError, match="fp16 is not supported"):
        Engine(nn.Linear(1, 1), Half(), learning_rate=1.0)


def test_factors_of_the_learning_rate_go_by_name() -> None:
    module = nn.ModuleDict({"head": nn.Linear(1, 1), "body": nn.Linear(1, 1)})
    groups = Weights(module).groups({"head": 4.0}, 0.1)
    assert [(group["lr"], len(group["params"])) for group in groups] == [(0.4, 2), (0.1, 2)]


def test_no_gradient_is_reduced_by_our_own_code() -> None:
    """That is what the wrappers of the accelerator are for."""
    ours = [p for name in ("rewriting", "policies", "recipes") for p in (ROOT / name).rglob("*.py")]
    forbidden = re.compile(
        r"all_reduce|reduce_scatter\(|check_replicas|average_gradients"
        r"|cat\([^)]*\.grad|(reduce|gather)\([^)]*\.grad"
    )
    found = {str(p): forbidden.findall(p.read_text(encoding="utf-8")) for p in ours}
    assert len(ours) > 100
    assert not {path: words for path, words in found.items() if words}
    with_gradients = [p.name for p in ours if re.search(r"\.grad\b", p.read_text())]
    assert with_gradients == ["engine.py"]  # where it is divided by the weight of the batch
