"""Stand-ins for what loads models, so that pages and notebooks run in a second."""

from collections.abc import Sequence
from typing import Any

import pytest

from policies.baselines.generic import GenericPolicy
from policies.gated import Guard
from policies.named import POLICIES
from recipes.shared.gated import Safety
from rewards.identifiers.assessment import Assessment, Judgement
from rewriting import MECHANISMS
from rewriting.safety import Gate


class SaysTwo:
    """An identifier that finds one of three mechanisms strong, in the whole reply."""

    name = "says-two"

    def assess(
        self, seeker_posts: Sequence[str], response_posts: Sequence[str], *, rationales: bool = True
    ) -> list[Assessment]:
        return [self._one(response) for response in response_posts]

    @staticmethod
    def _one(response: str) -> Assessment:
        strong, none = Judgement(2, (0.1, 0.1, 0.8), (response,)), Judgement(0, (0.9, 0.1, 0.0))
        return Assessment(dict(zip(MECHANISMS, (strong, none, none), strict=True)))


def trained(config: Any) -> dict[str, Any]:
    """A run that only checks its settings, as the real one does first."""
    from recipes.train.partner.recipe import check, exchanges_of

    check(config)
    assert exchanges_of(config)["train"]
    return {"step": config.steps, "first": {}, "last": {"reward": 0.0}}


def light_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Policies, readers, identifier and training without a model; the gate has its rules."""
    for name in ("partner", "bank"):
        monkeypatch.setitem(POLICIES, name, GenericPolicy)
    monkeypatch.setattr(Gate, "load", classmethod(lambda cls: cls()))
    monkeypatch.setattr(Safety, "guard", lambda self: Guard(Gate()))
    rewards = "{edit_size: 1.0, repetition: 1.0}"
    monkeypatch.setattr("recipes.shared.rewriter.rewards_for", lambda policy: rewards)
    monkeypatch.setattr("rewards.identifiers.named.load_identifier", SaysTwo)
    monkeypatch.setattr("recipes.train.partner.run", trained)
