"""Frozen weights under ZeRO 3, with a stand-in that holds a parameter as DeepSpeed does: empty."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

from rewriting.errors import UserError
from rewriting.runtime.training.deepspeed_weights import DeepSpeedFrozenWeights
from rewriting.runtime.training.weights import Weights

WHOLE = torch.tensor([[1.0, 2.0], [3.0, 4.0]])


class Shards:
    """Parameters that are whole inside `GatheredParameters`, and keep a change only if they say
    who makes it."""

    def __init__(self) -> None:
        self.kept: dict[int, torch.Tensor] = {}

    def shard(self, value: torch.Tensor) -> nn.Parameter:
        parameter = nn.Parameter(torch.empty(0), requires_grad=False)
        self.kept[id(parameter)] = value.clone()
        return parameter

    @contextmanager
    def gathered(
        self, parameters: Sequence[nn.Parameter], modifier_rank: int | None = None
    ) -> Iterator[None]:
        for parameter in parameters:
            parameter.data = self.kept[id(parameter)].clone()
        yield
        for parameter in parameters:
            if modifier_rank is not None:
                self.kept[id(parameter)] = parameter.data.clone()
            parameter.data = torch.empty(0)


@pytest.fixture
def shards(monkeypatch: pytest.MonkeyPatch) -> Shards:
    found, library = Shards(), ModuleType("deepspeed")
    zero: Any = ModuleType("deepspeed.zero")
    zero.GatheredParameters = found.gathered
    library.zero = zero  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "deepspeed", library)
    monkeypatch.setitem(sys.modules, "deepspeed.zero", zero)
    return found


def test_a_frozen_reference_is_saved_whole_and_comes_back(shards: Shards) -> None:
    saved = DeepSpeedFrozenWeights({"0": shards.shard(WHOLE)}).state_dict()
    assert torch.equal(saved["0"], WHOLE)
    assert not Weights({"0": shards.shard(WHOLE)}).state_dict()["0"].numel()  # what it was before
    later = shards.shard(torch.zeros(2, 2))
    DeepSpeedFrozenWeights({"0": later}).load_state_dict(saved)
    assert torch.equal(shards.kept[id(later)], WHOLE)


def test_only_the_process_that_writes_keeps_what_is_gathered(shards: Shards) -> None:
    assert DeepSpeedFrozenWeights({"0": shards.shard(WHOLE)}, keeps=False).state_dict() == {}


def test_a_checkpoint_without_the_reference_is_refused(shards: Shards) -> None:
    weights = DeepSpeedFrozenWeights({"0": shards.shard(WHOLE)})
    with pytest.raises(UserError, match="holds no reference"):
        weights.load_state_dict({"0": torch.empty(0)})
