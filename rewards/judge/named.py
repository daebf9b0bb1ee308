"""Judges by name and options: a local model, or a model behind an endpoint."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from rewards.judge.client import CONCURRENCY, RETRIES, TIMEOUT
from rewards.judge.memory import DiskCache, Remembered
from rewards.judge.options import check_place, check_values
from rewards.judge.question import Judge
from rewards.loading import suggestion
from rewriting.errors import UserError


def open_judge(
    model: str,
    *,
    endpoint: str = "",
    api_key_env: str = "",
    timeout: float = TIMEOUT,
    retries: int = RETRIES,
    concurrency: int = CONCURRENCY,
    cache: str = "",
    batch_size: int = 0,
    likelihood: bool = False,
) -> Remembered:
    """The judge that these options describe, with a memory in front of it.

    likelihood: it says how likely a reply is, instead of answering questions. The other options are
    those of the reward term (rewards/terms/judge.py).
    """
    options = {
        "model": model,
        "endpoint": endpoint,
        "api_key_env": api_key_env,
        "timeout": timeout,
        "retries": retries,
        "concurrency": concurrency,
        "cache": cache,
        "batch_size": batch_size,
    }
    check_values(options)
    check_place(options, likelihood=likelihood)
    disk = DiskCache(cache) if cache else None  # before a model is loaded for nothing
    judge: Judge
    if endpoint:
        from rewards.judge.endpoint import EndpointJudge

        judge = EndpointJudge(
            model,
            endpoint,
            api_key_env=api_key_env,
            timeout=timeout,
            retries=retries,
            concurrency=concurrency,
        )
    elif likelihood:
        from rewards.judge.likelihood import LikelihoodReader

        judge = LikelihoodReader.load(model, batch_size=batch_size)
    else:
        from rewards.judge.local import LocalJudge

        judge = LocalJudge.load(model, batch_size=batch_size)
    return Remembered(judge, disk)


def judge_options(text: str, accepts: Callable[..., Any]) -> dict[str, Any]:
    """The options in a text: a model's name, or YAML as `{model: NAME, endpoint: URL}`.

    accepts: the function that will be called with them; an option that it lacks is an error.
    """
    if not text.strip().startswith("{"):
        return {"model": text.strip()}
    import yaml

    from rewriting.runtime.files.yaml_text import read_yaml

    try:
        options = read_yaml(text)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise UserError(f"the judge {text!r} cannot be read as YAML: {reason}") from error
    known = list(inspect.signature(accepts).parameters)
    for option in options:
        if option not in known:
            raise UserError(f"a judge has no option {option!r}. {suggestion(str(option), known)}")
    return dict(options)
