"""Supervision from written edits: each edit in the state that the edits before it led to."""

from typing import Any

import pytest

from policies.editing.written_edits import build_written, written_edits
from rewriting import Edit, Exchange, UserError, apply_edits, split_sentences
from rewriting.data import load_exchanges


def row(reply: str, *edits: dict[str, Any]) -> Exchange:
    return Exchange("I failed again.", reply, id="r1", extra={"edits": list(edits)})


INSERT = {"operation": "insert", "position": 0, "sentence": "Twice is hard."}
REPLACE = {"operation": "replace", "position": 2, "sentence": "What will you do now?"}


def test_every_edit_is_learnt_where_the_edits_before_it_led_and_then_to_stop() -> None:
    first, second, last = build_written([row("Study more. Get over it.", INSERT, REPLACE)])
    assert first.state.span == ("Study more.", "Get over it.")
    assert (first.position, first.sentence, first.kind) == (0, "Twice is hard.", "insert")
    assert second.state.span == ("Twice is hard.", "Study more.", "Get over it.")
    assert (second.position, second.sentence) == (3 + 1 + 2, "What will you do now?")
    assert last.state.span == ("Twice is hard.", "Study more.", "What will you do now?")
    assert (last.position, last.sentence, last.kind) == (7, "", "keep")
    assert [r.state.turn for r in (first, second, last)] == [0, 1, 2]


def test_a_good_reply_is_left_alone_and_a_row_without_edits_is_no_row() -> None:
    (keep,) = build_written([row("I am sorry. Twice is hard.")])
    assert (keep.position, keep.kind) == (5, "keep")
    assert build_written([Exchange("I failed again.", "Oh.")]) == []


def test_an_edit_is_shown_in_its_span() -> None:
    edit = {"operation": "replace", "position": 2, "sentence": "Three."}
    learnt, keep = build_written([row("A one. B two. C three.", edit)], span_length=2)
    assert (learnt.state.span, learnt.state.start) == (("C three.",), 2)
    assert Edit.at(learnt.position, 1, learnt.sentence) == Edit.replace(0, "Three.")
    assert keep.state.span == ("Three.",)


def test_a_span_grows_with_what_is_inserted() -> None:
    """Cut anew, the last sentence would stand in a span of its own, which no walk ever shows."""
    edits = [
        {"operation": "insert", "position": 0, "sentence": "Oh no."},
        {"operation": "replace", "position": 2, "sentence": "What now?"},
    ]
    _, second, keep = build_written([row("A one. B two. C three.", *edits)], span_length=2)
    assert second.state.span == ("Oh no.", "A one.", "B two.")
    assert Edit.at(second.position, 3, second.sentence) == Edit.replace(2, "What now?")
    assert keep.state.span == ("Oh no.", "A one.", "What now?")


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        ({"operation": "delete", "position": 0, "sentence": "No."}, "delete"),
        ({"operation": "replace", "position": 5, "sentence": "No."}, "replace at 5"),
        ({"operation": "insert", "position": 0, "sentence": " "}, "blank"),
        ({"position": 0, "sentence": "No."}, "operation"),
    ],
)
def test_an_edit_that_does_not_fit_is_named(edit: dict[str, Any], why: str) -> None:
    with pytest.raises(UserError, match=rf"exchange 'r1', edit 2: .*{why}"):
        written_edits(row("Study more.", INSERT, edit))


def test_the_bundled_rewrites_lead_to_their_rewritten_responses() -> None:
    for exchange in load_exchanges("sample:rewrites_dev"):
        rows = build_written([exchange])
        assert len(rows) == len(exchange.extra["edits"]) + 1
        after = apply_edits(exchange.response_post, written_edits(exchange))
        assert after == exchange.extra["rewritten_response"]
        span = rows[-1].state.span
        assert set(span) <= set(split_sentences(after).texts)
