"""Supervision undoes empathic responses, and undoing the undoing gives them back."""

from collections import Counter
from pathlib import Path

import pytest
import torch

from policies.editing.warm_start import (
    Supervised,
    balanced,
    build,
    examples,
    summary,
    supervised_loss,
)
from rewriting import Edit, Exchange, UserError, apply_edits, split_sentences
from rewriting.loop import EditState
from tests.policies.editing.labelled import SORRY, STRONG, WEAK, exchange
from tests.policies.editing.tiny_agents import tiny_agent


def kinds(rows: list[Supervised]) -> dict[str, list[Supervised]]:
    return {kind: [r for r in rows if r.kind == kind] for kind in ("insert", "replace", "keep")}


def test_an_empathic_sentence_is_taken_out_and_learnt() -> None:
    (row,) = build([SORRY])
    assert row.kind == "insert"
    assert row.state.span == ("Oh well.", "Try again.")
    assert row.state.exchange.response_post == "Oh well. Try again."
    assert row.state.exchange.labels == {}  # they are those of another text
    edit = Edit.at(row.position, 2, row.sentence)
    assert edit == Edit.insert(1, "I am so sorry for you.")
    assert apply_edits("Oh well. Try again.", [edit]) == SORRY.response_post


def test_a_weak_sentence_in_its_place_is_to_be_replaced() -> None:
    rows = kinds(build([SORRY, WEAK], shares={"replace": 1.0}))
    assert not rows["insert"]
    (row,) = rows["replace"]
    assert row.state.span[1] in ("Just go to bed early.", "Go to bed.")
    edit = Edit.at(row.position, 3, row.sentence)
    assert edit == Edit.replace(1, "I am so sorry for you.")
    assert apply_edits(row.state.exchange.response_post, [edit]) == SORRY.response_post


def test_all_carriers_go_and_the_strong_ones_are_learnt() -> None:
    rows = kinds(build([STRONG], max_repeats=1, shares={"insert": 0.5, "keep": 0.5}))
    assert {row.state.span for row in rows["insert"]} == {("Stay calm.",)}
    (keep,) = rows["keep"]
    assert keep.state.exchange is STRONG
    assert keep.state.span == split_sentences(STRONG.response_post).texts
    assert (keep.position, keep.sentence) == (9, "")
    (learnt,) = {row.position for row in kinds(build([STRONG]))["insert"]}
    sentences = {row.sentence for row in kinds(build([STRONG]))["insert"]}
    assert (learnt, sentences) == (0, {"I am so sorry for you.", "This must hurt a lot."})


def test_a_row_shows_the_span_its_edit_is_in() -> None:
    early = "One is one. Two is two. Three is three. Four is four. Five is five."
    late = exchange("Sad", f"{early} I am so sorry for you.", emo=(1, "I am so sorry for you."))
    (row,) = build([late], span_length=2)
    assert (row.state.span, row.state.start) == (("Five is five.",), 4)
    assert Edit.at(row.position, 1, "x") == Edit.insert(1, "x")
    exact = exchange(
        "Sad", "One is one. Two is two. I am so sorry for you.", emo=(1, "I am so sorry for you.")
    )
    (row,) = build([exact], span_length=2)  # the two that are left fill one span
    assert (row.state.start, Edit.at(row.position, 2, "x")) == (0, Edit.insert(2, "x"))


def test_high_empathy_counts_where_it_is() -> None:
    scattered = exchange(
        "Sad",
        "I am so sorry for you. One is one. What happened to you? Two is two.",
        emo=(2, "I am so sorry for you."),
        exp=(2, "What happened to you?"),
    )
    assert kinds(build([scattered], span_length=4))["keep"]
    assert not kinds(build([scattered], span_length=2))["keep"]
    assert not kinds(build([SORRY]))["keep"]


def test_kinds_are_balanced() -> None:
    state = EditState(Exchange("a", "b"), ("b",))
    found = {
        "insert": [Supervised(state, 0, str(n), "insert") for n in range(40)],
        "replace": [Supervised(state, 2, str(n), "replace") for n in range(10)],
        "keep": [Supervised(state, 3, "", "keep")],
    }
    shares = {"insert": 0.4, "replace": 0.4, "keep": 0.2}
    rows = balanced(found, shares, max_repeats=4, seed=0)
    # One keep, four times, is a fifth of 20 rows.
    assert Counter(row.kind for row in rows) == {"insert": 8, "replace": 8, "keep": 4}
    assert len({row.sentence for row in rows if row.kind == "insert"}) == 8
    rows = balanced(found, shares, max_repeats=100, seed=0)
    assert Counter(row.kind for row in rows) == {"insert": 40, "replace": 40, "keep": 20}
    repeats = Counter(row.sentence for row in rows if row.kind == "replace")
    assert set(repeats.values()) == {4}
    assert balanced(found, shares, 100, seed=0) == rows != balanced(found, shares, 100, seed=1)
    without_keep = balanced(found | {"keep": []}, shares, max_repeats=1, seed=0)
    assert Counter(row.kind for row in without_keep) == {"insert": 10, "replace": 10}
    assert balanced({}, shares, 4, 0) == []


def test_a_table_and_examples() -> None:
    rows = build([SORRY, STRONG], shares={"insert": 0.5, "keep": 0.5}, max_repeats=3)
    table = summary(rows)
    assert table["insert"] == pytest.approx(
        {"rows": 3, "different": 3, "share": 50, "words": 5.667}, abs=1e-3
    )
    assert table["keep"] == {"rows": 3, "different": 1, "share": 50, "words": 0}
    assert table["replace"]["rows"] == 0
    shown = examples(rows, 100)
    assert len(shown) == 6
    assert {
        "operation": "insert",
        "position": 1,
        "sentence": "I am so sorry for you.",
        "seeker_post": "I failed.",
        "span": ["Oh well.", "Try again."],
    } in shown
    assert sum(row["operation"] == "keep" and row["position"] is None for row in shown) == 3


def test_nothing_to_learn_from() -> None:
    assert build([WEAK, Exchange("a", "I am so sorry.")]) == []


def test_own_stories_are_learnt_only_if_asked_for() -> None:
    told = exchange(
        "I failed.", "Oh well. I was there last year.", int=(2, "I was there last year.")
    )
    assert build([told]) == []
    (row,) = build([told], own_stories=True)
    assert row.sentence == "I was there last year."


def test_the_loss_is_that_of_the_actions() -> None:
    agent = tiny_agent(max_new_tokens=40)
    rows = build([SORRY, STRONG], shares={"insert": 0.5, "keep": 0.5}, max_repeats=1)
    actions = [agent.action(row.position, row.sentence) for row in rows]
    with torch.no_grad():
        found = agent.log_probs([row.state for row in rows], actions)
    position = -float(found.position_B.sum())
    tokens = [row for row in found.tokens if len(row)]
    assert 0 < len(tokens) < len(rows)
    loss, weight = supervised_loss(agent, rows)
    expected = position - sum(float(row.mean()) for row in tokens)
    assert (loss.item(), weight) == (pytest.approx(expected, rel=1e-5), len(rows))
    loss, _ = supervised_loss(agent, rows, sum_tokens=True)
    assert loss.item() == pytest.approx(position - sum(float(r.sum()) for r in tokens), rel=1e-5)


def test_both_heads_learn_from_it(tmp_path: Path) -> None:
    from accelerate import Accelerator

    from rewriting.runtime.training.supervised import train

    agent = tiny_agent(max_new_tokens=40)
    rows = build([SORRY, STRONG], shares={"insert": 0.5, "keep": 0.5}, max_repeats=3)
    states = [row.state for row in rows]
    actions = [agent.action(row.position, row.sentence) for row in rows]
    with torch.no_grad():
        before = agent.log_probs(states, actions)
    train(
        agent.module,
        lambda chosen: supervised_loss(agent, chosen),
        rows,
        rows,
        output=tmp_path,
        accelerator=Accelerator(cpu=True),
        steps=40,
        batch_size=6,
        micro_batch_size=3,
        learning_rate=0.02,
        eval_every=40,
        save_every=40,
        size=lambda row: row.size,
    )
    with torch.no_grad():
        after = agent.log_probs(states, actions)
    assert float(after.position_B.mean()) > float(before.position_B.mean()) + 0.5
    assert float(torch.cat(after.tokens).mean()) > float(torch.cat(before.tokens).mean()) + 0.5


def test_an_empty_split_is_refused_by_the_training(tmp_path: Path) -> None:
    from accelerate import Accelerator

    from rewriting.runtime.training.supervised import train

    agent = tiny_agent()
    with pytest.raises(UserError, match="0 rows to train on"):
        train(
            agent.module,
            lambda rows: supervised_loss(agent, rows),
            build([WEAK]),
            [],
            output=tmp_path,
            accelerator=Accelerator(cpu=True),
            steps=1,
            batch_size=1,
            micro_batch_size=1,
            learning_rate=0.1,
        )
