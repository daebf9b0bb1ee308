"""Fields of TRL's GRPOConfig or RLOOConfig that a user sets beside those of the recipe.

    trl: {loss_type: dapo, gradient_accumulation_steps: 8, vllm_mode: colocate}      in YAML
    --trl '{loss_type: dapo, gradient_accumulation_steps: 8}'                        as a flag

Names and types are checked before anything is loaded. TRL itself checks the values, when its
arguments are made.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from rewriting.errors import UserError
from rewriting.runtime.loading import suggestion

OWNED: Final = {
    "output_dir": "output",
    "max_steps": "steps",
    "num_train_epochs": "steps",
    "per_device_train_batch_size": "batch_size and num_samples",
    "num_generations": "num_samples",
    "max_completion_length": "max_new_tokens",
    "learning_rate": "learning_rate",
    "beta": "kl_weight",
    "use_vllm": "use_vllm",
    "gradient_checkpointing": "gradient_checkpointing",
    "save_steps": "save_every",
    "report_to": "report_to",
    "seed": "seed",
    "reward_weights": "rewards",
}
"""TRL's field → the field of the recipe that sets it."""

FIXED: Final = {
    "remove_unused_columns": "the rewards need every column",
    "model_init_kwargs": "the recipe loads the model itself, by `model`",
    "chat_template_kwargs": "the recipe fills in the chat template itself",
    "resume_from_checkpoint": "the same command goes on from the newest checkpoint by itself",
}
"""TRL's field → why the recipe needs it as it is."""

WORDS: Final = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    dict: "a mapping",
    list: "a list",
}


def read_trl(given: Mapping[str, Any] | str, algorithm: str) -> dict[str, Any]:
    """The settings for TRL, from a mapping or a text of YAML or JSON, each checked."""
    settings = _mapping(given)
    if not settings:
        return {}
    import trl  # whose configs import torch

    name = f"{algorithm.upper()}Config"
    kind = getattr(trl, name)
    known = [field.name for field in fields(kind) if field.init]
    hints = get_type_hints(kind)
    for key in settings:
        if key in OWNED:
            raise UserError(f"trl: {key} is set by the recipe's {OWNED[key]}; set that instead.")
        if key in FIXED:
            raise UserError(f"trl: {key} cannot be set: {FIXED[key]}.")
        if key not in known:
            raise UserError(f"trl: {name} has no field {key!r}. {_close(key, known)}")
    return {key: _converted(key, value, hints[key]) for key, value in settings.items()}


def _close(key: str, known: list[str]) -> str:
    """What a misspelt name may have meant; all two hundred names would be no help."""
    guess, did_you, _ = suggestion(key, known).partition("? ")
    return f"{guess}?" if did_you else "TRL's documentation lists its fields."


def _mapping(given: Mapping[str, Any] | str) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(given)
    import yaml

    try:
        found = yaml.safe_load(given)
    except yaml.YAMLError as error:
        raise UserError(f"trl {given!r} cannot be read: {error}") from error
    if found is not None and not isinstance(found, dict):
        raise UserError(f"trl must be a mapping such as '{{loss_type: dapo}}', not {given!r}.")
    return found or {}


def _converted(key: str, value: Any, hint: Any) -> Any:
    """The value, as a number where YAML took 1e-6 for a text; refused where its type is wrong."""
    allowed = _types(hint)
    if isinstance(value, str) and float in allowed and str not in allowed:
        try:
            return float(value)
        except ValueError:
            pass
    if any(kind not in WORDS and kind is not type(None) for kind in allowed):
        return value  # of a kind that TRL reads itself, as its strategies
    fits = {type(value)} | ({float} if type(value) is int else set())
    if type(value) is bool:
        fits.add(str)  # scale_rewards, for one
    if not fits & allowed:
        wanted = " or ".join(words for kind, words in WORDS.items() if kind in allowed)
        raise UserError(f"trl: {key} must be {wanted}, not {value!r}.")
    return value


def _types(hint: Any) -> set[type]:
    """The plain types that an annotation allows."""
    if get_origin(hint) in (Union, types.UnionType):
        return {kind for part in get_args(hint) for kind in _types(part)}
    return {get_origin(hint) or hint}
