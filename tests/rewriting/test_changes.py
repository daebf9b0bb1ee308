"""A rewrite as changes: nothing is lost on either side, edits are told from joining."""

from hypothesis import given
from hypothesis import strategies as st

from rewriting import Edit, apply_edits
from rewriting.changes import Change, changes

SENTENCES = st.sampled_from(["ok", "Study more.", "Why?", "I see", "- a list", "No way!!", "x.y"])
TEXTS = st.lists(st.tuples(SENTENCES, st.sampled_from([" ", "\n", "  "]))).map(
    lambda parts: "".join(text + gap for text, gap in parts)
)


def test_an_inserted_sentence_is_one_change() -> None:
    before = "ok. Study more."
    after = apply_edits(before, [Edit.insert(0, "That sounds hard.")])
    assert changes(before, after) == [
        Change("", "That sounds hard. ", True),
        Change("ok. ", "ok. ", False),
        Change("Study more.", "Study more.", False),
    ]


def test_a_full_stop_that_joining_added_is_no_edit() -> None:
    after = apply_edits("ok", [Edit.insert(1, "What happened?")])
    assert changes("ok", after) == [
        Change("ok", "ok. ", False),
        Change("", "What happened?", True),
    ]


def test_a_replaced_sentence_keeps_what_it_replaces() -> None:
    before = "Calm down. Study more."
    after = apply_edits(before, [Edit.replace(0, "I am sorry.")])
    assert changes(before, after)[0] == Change("Calm down. ", "I am sorry. ", True)


def test_a_sentence_that_is_gone_is_a_change_too() -> None:
    assert changes("Calm down. Rest.", "Rest.")[0] == Change("Calm down. ", "", True)


def test_nothing_to_compare() -> None:
    assert changes("", "") == []
    assert changes("Rest.", "Rest.") == [Change("Rest.", "Rest.", False)]


@given(TEXTS | st.text(max_size=60), TEXTS | st.text(max_size=60))
def test_both_texts_come_back_to_the_last_character(before: str, after: str) -> None:
    found = changes(before, after)
    assert "".join(one.before for one in found) == before
    assert "".join(one.after for one in found) == after
    assert all(one.before or one.after for one in found)
