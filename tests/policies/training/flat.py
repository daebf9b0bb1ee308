"""Both training loops with their settings as plain keyword arguments, as tests vary them."""

from dataclasses import fields
from typing import Any

from policies.training.contracts import Result
from policies.training.ppo import loop as ppo
from policies.training.ppo.settings import Settings as PPOSettings
from policies.training.reinforce import loop as reinforce
from policies.training.reinforce.settings import Settings as ReinforceSettings


def train_reinforce(*given: Any, **options: Any) -> Result:
    return reinforce.train(*given, taken(ReinforceSettings, options), **options)


def train_ppo(*given: Any, **options: Any) -> Result:
    return ppo.train(*given, taken(PPOSettings, options), **options)


def taken(settings: type, options: dict[str, Any]) -> Any:
    """The settings among the options, which are taken out of them."""
    names = [field.name for field in fields(settings)]
    return settings(**{name: options.pop(name) for name in names if name in options})
