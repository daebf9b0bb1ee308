"""The chat model answers by itself, and does not see what the peer wrote."""

from collections.abc import Sequence
from typing import cast

import pytest

from policies.baselines.generated import GeneratedPolicy
from policies.baselines.prompted import PromptedPolicy
from rewriting import Exchange


def test_generated_asks_again_before_it_gives_up() -> None:
    class Halting:
        def __init__(self) -> None:
            self.asked: list[list[str]] = []

        def replies(self, exchanges: Sequence[Exchange], *, seed: int) -> list[str]:
            self.asked.append([one.id for one in exchanges])
            return [
                "Yes." if one.id in ("a", "bbb"[: len(self.asked)]) else "" for one in exchanges
            ]

    policy, model = GeneratedPolicy.__new__(GeneratedPolicy), Halting()
    policy.model = cast(PromptedPolicy, model)
    exchanges = [Exchange("I failed.", "Study.", id=name) for name in ("a", "bb", "c")]
    found = [one.rewritten_response for one in policy.rewrite(exchanges, seed=0)]
    assert found == ["Yes.", "Yes.", "…"]
    assert model.asked == [["a", "bb", "c"], ["bb", "c"], ["c"]]


@pytest.mark.integration
def test_generated_answers_without_the_peers_reply() -> None:
    policy = GeneratedPolicy(max_new_tokens=32, batch_size=2)
    secret = Exchange("I failed my exam again.", "Zanzibar is warm. Go there.")
    text = policy.model.prompt.text(secret)
    assert "I failed my exam again." in text
    assert "Zanzibar" not in text
    (rewrite,) = policy.rewrite([secret], seed=0)
    assert rewrite.rewritten_response.strip()
    assert rewrite.rewritten_response != secret.response_post
    assert not rewrite.edits
    assert policy.rewrite([secret], seed=0) == [rewrite]
