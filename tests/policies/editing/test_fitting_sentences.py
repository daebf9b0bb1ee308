"""Supervision from sentences that fit a post: said somewhere, the place not learnt."""

import pytest
import torch

from policies.editing.fitting_sentences import build_fitting
from policies.editing.warm_start import Supervised, summary, supervised_loss
from rewriting import Exchange, UserError
from rewriting.loop import EditState
from tests.policies.editing.tiny_agents import tiny_agent


def test_every_good_sentence_of_a_post_is_said_at_a_place_that_is_not_keep() -> None:
    rows = build_fitting(["sample:sense", "sample:fits"], "dev")
    assert len(rows) > 100
    for row in rows:
        assert row.kind == "say"
        assert all(0 <= place <= 2 * len(row.state.span) for place, _ in row.actions)
        assert all(sentence not in row.state.span for _, sentence in row.actions)
    assert rows == build_fitting(["sample:sense", "sample:fits"], "dev")
    assert summary(rows)["say"]["rows"] == len(rows)


def test_parts_share_no_post() -> None:
    posts = {
        part: {row.state.exchange.seeker_post for row in build_fitting(["sample:fits"], part)}
        for part in ("train", "dev", "test")
    }
    assert not posts["train"] & posts["dev"]
    assert not posts["train"] & posts["test"]


def test_an_unknown_corpus_is_named() -> None:
    with pytest.raises(UserError, match="sample:sense or sample:fits, not 'sample:other'"):
        build_fitting(["sample:other"], "train")


def test_the_loss_leaves_the_place_out_and_counts_every_sentence() -> None:
    agent = tiny_agent()
    state = EditState(Exchange("I failed again.", "Study more."), ("Study more.",), 0)
    row = Supervised(state, 0, "Twice is hard.", "say", ((1, "What now?"),))
    with torch.no_grad():
        loss, count = supervised_loss(agent, [row])
        actions = [agent.action(0, "Twice is hard."), agent.action(1, "What now?")]
        found = agent.log_probs([state, state], actions)
    assert count == 2
    assert float(loss) == pytest.approx(-sum(float(t.mean()) for t in found.tokens), rel=1e-5)
