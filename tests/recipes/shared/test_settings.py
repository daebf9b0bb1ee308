"""What the recipes of reinforcement learning share."""

from typing import Any

import pytest

from recipes.shared.settings import kl_penalty
from recipes.train.emprl import recipe as emprl
from recipes.train.partner import recipe as partner


@pytest.mark.parametrize(
    ("config", "per_step"),
    [(partner.Config(kl_target=6.0), 16), (emprl.Config(kl_target=6.0), 32)],
    ids=["partner", "emprl"],
)
def test_a_quick_run_can_move_the_price_of_the_kl(config: Any, per_step: int) -> None:
    penalty = kl_penalty(config)
    for _ in range(config.steps):
        penalty.update(60.0, per_step)
    assert penalty.controller.value > 4 * config.kl_weight
    config.kl_horizon = 10_000
    slow = kl_penalty(config)
    for _ in range(config.steps):
        slow.update(60.0, per_step)
    # 1 + 0.2 · n / 10,000 a step: what every run had before, however short.
    expected = config.kl_weight * (1 + 0.2 * per_step / 10_000) ** config.steps
    assert slow.controller.value == pytest.approx(expected)
