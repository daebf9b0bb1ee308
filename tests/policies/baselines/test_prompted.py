"""A chat model as it is, asked to rewrite."""

import pytest

from policies.baselines.prompted import PromptedPolicy
from rewriting.data import load_exchanges


@pytest.mark.integration
def test_prompted_rewrites_deterministically_whatever_the_batch() -> None:
    policy = PromptedPolicy(max_new_tokens=48, batch_size=3)
    exchanges = list(load_exchanges("sample:test", limit=4))
    rewrites = policy.rewrite(exchanges, seed=1)
    assert [rewrite.exchange for rewrite in rewrites] == exchanges
    assert any(rewrite.changed for rewrite in rewrites)
    assert all(rewrite.rewritten_response.strip() for rewrite in rewrites)
    assert policy.rewrite(exchanges[3:4], seed=1) == rewrites[3:4]
    assert policy.rewrite(exchanges, seed=2) != rewrites
