"""`judge`: what a language model says about the rewritten response, beside the original one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rewards.judge.client import CONCURRENCY, RETRIES, TIMEOUT
from rewards.judge.methods import Ask, Change, Compare, Grade, Likelihood, Method
from rewards.judge.named import open_judge
from rewards.judge.options import OPTIONS
from rewards.judge.rubric import Rubric, load_rubric
from rewards.protocol import texts

KINDS: Final[Mapping[str, Callable[[Ask, Rubric], Method]]] = {
    "compare": Compare,
    "grade": Grade,
    "likelihood": Likelihood,
}


class JudgeTerm:
    """A language model as a reward: how much better is the rewritten response?

    model: a causal model by name or folder, or with `endpoint` the name of a model there.
    method: `compare` asks which of the two responses is better, in both orders: −1 to 1. `grade`
    grades each, after minus before: −6 to 6 with the shipped rubric. `likelihood` takes how much
    likelier the post makes each, after minus before, in nats per token; for local models only.
    rubric: a TOML file (rubric.py), or a shipped one by name; "" is that of the method.
    endpoint, api_key_env, timeout, retries, concurrency: of a model behind a server (endpoint.py).
    cache: a file or folder that keeps answers on disk. batch_size: questions that a local model
    reads at once; 0 lets the device decide.

    In: completions, seeker_post, response_post. Out: 0 for an unchanged response.

        JudgeTerm("smollm2-135m")(completions=["Oh no! That hurts."], seeker_post=["I failed."],
                                  response_post=["Oh."])
    """

    def __init__(
        self,
        model: str = "",
        *,
        method: str = "compare",
        rubric: str = "",
        endpoint: str = "",
        api_key_env: str = "",
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        concurrency: int = CONCURRENCY,
        cache: str = "",
        batch_size: int = 0,
        name: str = "judge",
    ) -> None:
        OPTIONS["method"].check("method", method)
        OPTIONS["rubric"].check("rubric", rubric)
        checked_rubric = load_rubric(rubric, method)  # before a model is loaded for nothing
        self.ask = open_judge(
            model,
            endpoint=endpoint,
            api_key_env=api_key_env,
            timeout=timeout,
            retries=retries,
            concurrency=concurrency,
            cache=cache,
            batch_size=batch_size,
            likelihood=method == "likelihood",
        )
        self.method = KINDS[method](self.ask, checked_rubric)
        self.compares = method == "compare"
        self.__name__ = name

    def changes(
        self, completions: Sequence[Any], seeker_post: Sequence[str], response_post: Sequence[str]
    ) -> list[Change]:
        """What the judge says of each row, with the answers in either order."""
        return self.method.changes(
            list(zip(seeker_post, response_post, texts(completions), strict=True))
        )

    def __call__(
        self,
        *,
        completions: Sequence[Any],
        seeker_post: Sequence[str],
        response_post: Sequence[str],
        log_metric: Callable[[str, float], None] | None = None,
        **_: Any,
    ) -> list[float]:
        changes = self.changes(completions, seeker_post, response_post)
        bias = position_bias(changes)
        if log_metric is not None and bias is not None:
            log_metric(f"rewards/{self.__name__}/position_bias", bias)
        return [change.value for change in changes]


def position_bias(changes: Sequence[Change]) -> float | None:
    """p(A) − 0.5 over all comparisons; None where there were none."""
    known = [one.position_bias for one in changes if one.position_bias is not None]
    return sum(known) / len(known) if known else None
