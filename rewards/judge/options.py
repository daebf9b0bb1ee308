"""The options of a judge, and what can be said against them before a model is loaded or asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rewards.judge.rubric import METHODS, load_rubric
from rewards.option_kinds import COUNT, COUNT_OR_0, SECONDS, TEXT, Kind, one_of
from rewriting.errors import UserError

OPTIONS: Final[Mapping[str, Kind]] = {
    "model": TEXT,
    "method": one_of(*METHODS),
    "rubric": TEXT,
    "endpoint": TEXT,
    "api_key_env": TEXT,
    "timeout": SECONDS,
    "retries": COUNT_OR_0,
    "concurrency": COUNT,
    "cache": TEXT,
    "batch_size": COUNT_OR_0,
}
"""The options of a judge, as the reward term takes them, and what each may be."""


def check_judge(options: Mapping[str, Any]) -> None:
    """Say what is wrong with the options of a judge, in milliseconds; nothing is loaded.

    They may lack whatever has a default, and hold what is no judge's own, such as a weight.
    """
    check_values(options)
    method = options.get("method", METHODS[0])
    load_rubric(options.get("rubric", ""), method)
    check_place(options, likelihood=method == "likelihood")
    if not options.get("endpoint"):
        from rewriting.runtime.models.named import check_model

        check_model(options["model"])


def check_values(options: Mapping[str, Any]) -> None:
    for option, value in options.items():
        if option in OPTIONS:
            OPTIONS[option].check(option, value)


def check_place(options: Mapping[str, Any], *, likelihood: bool) -> None:
    """A judge needs a model, which is here or behind a server that can do what is asked of it."""
    if not options.get("model"):
        raise UserError(
            "name the model that judges, as model: qwen2.5-coder-1.5b, a folder, a hub id, or with "
            "`endpoint` the name of a model there."
        )
    endpoint, key = options.get("endpoint"), options.get("api_key_env", "")
    if endpoint and likelihood:
        raise UserError(
            "the method likelihood needs a local model: a chat endpoint does not say how "
            "likely a given text is. Leave `endpoint` out, or use compare or grade."
        )
    if key and not endpoint:
        raise UserError("api_key_env is for a model behind a server: name its `endpoint` too.")
    if endpoint:
        from rewards.judge.client import checked_address, key_from

        checked_address(endpoint)
        key_from(key)
