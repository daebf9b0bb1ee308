"""Edits apply exactly, and the 2n + 2 positions number them without gaps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewriting.edits import (
    Edit,
    Operation,
    apply_edit,
    apply_edits,
    keep_position,
    num_positions,
    standing_edits,
)
from rewriting.sentences import split_sentences
from tests.rewriting.test_sentences import TEXTS


def closed(sentence: str, original: str) -> bool:
    """Whether a sentence is the original, but for a full stop added at a joint."""
    return sentence in (original, original + ".")


@given(TEXTS)
def test_keep_gives_back_the_response(text: str) -> None:
    assert apply_edits(text, [Edit.keep()]) == text


@given(TEXTS, st.data())
def test_insert_adds_one_sentence_in_its_place(text: str, data: st.DataObject) -> None:
    before = split_sentences(text)
    position = data.draw(st.integers(0, len(before)))
    after = apply_edit(before, Edit.insert(position, "This is new."))
    assert after.texts[position] == "This is new."
    others = after.texts[:position] + after.texts[position + 1 :]
    assert all(closed(a, b) for a, b in zip(others, before.texts, strict=True))
    breaks = sum(gap.count("\n") for gap in before.gaps)
    assert sum(gap.count("\n") for gap in after.gaps) >= breaks


@given(TEXTS.filter(lambda text: len(split_sentences(text)) > 0), st.data())
def test_replace_changes_only_its_sentence(text: str, data: st.DataObject) -> None:
    before = split_sentences(text)
    position = data.draw(st.integers(0, len(before) - 1))
    after = apply_edit(before, Edit.replace(position, "This is new."))
    assert after.texts[position].endswith("This is new.")
    assert after.gaps == before.gaps
    assert after.texts[:position] == before.texts[:position]
    assert after.texts[position + 1 :] == before.texts[position + 1 :]


@given(TEXTS)
def test_no_doubled_full_stop_where_there_was_none(text: str) -> None:
    sentences = split_sentences(text)
    for position in range(len(sentences) + 1):
        edited = str(apply_edit(sentences, Edit.insert(position, "New one.")))
        assert edited.count("..") == text.count("..")


@given(st.integers(0, 12))
def test_positions_and_edits_map_to_each_other(num_sentences: int) -> None:
    edits = [Edit.at(i, num_sentences, "x") for i in range(num_positions(num_sentences))]
    assert [edit.index(num_sentences) for edit in edits] == list(range(2 * num_sentences + 2))
    counts = [sum(edit.operation is operation for edit in edits) for operation in Operation]
    assert counts == [num_sentences + 1, num_sentences, 1]


@pytest.mark.parametrize("edit", [Edit.insert(3, "x"), Edit.replace(2, "x")])
def test_a_position_beyond_the_response_is_refused(edit: Edit) -> None:
    with pytest.raises(ValueError, match="where there are 2 sentences"):
        apply_edits("One. Two.", [edit])


def test_impossible_edits_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="blank"):
        Edit.insert(0, "  ")
    with pytest.raises(ValueError, match="position of 0 or more"):
        Edit.replace(-1, "x")
    with pytest.raises(ValueError, match="neither"):
        Edit(Operation.KEEP, 1)
    with pytest.raises(ValueError, match="edit position 6 of 6"):
        Edit.at(6, 2)


def test_an_edit_comes_back_from_its_row() -> None:
    for edit in (Edit.insert(0, "New."), Edit.replace(1, "New."), Edit.keep()):
        assert Edit(**edit.row()) == edit
    assert apply_edits("One. Two.", [Edit(**Edit.insert(0, "New.").row())]) == "New. One. Two."


def test_edits_apply_in_order() -> None:
    edits = [Edit.insert(0, "Zero."), Edit.replace(1, "Un."), Edit.insert(3, "Trois.")]
    assert apply_edits("One. Two.", edits) == "Zero. Un. Two. Trois."


def test_what_a_later_edit_replaced_does_not_stand() -> None:
    edits = [
        Edit.insert(0, "Zero."),  # Zero. One. Two.
        Edit.replace(2, "Deux."),  # Zero. One. Deux.
        Edit.insert(1, "Half."),  # Zero. Half. One. Deux.
        Edit.replace(1, "Demi."),  # Zero. Demi. One. Deux.
        Edit.keep(),
        Edit.insert(4, "Trois."),
        Edit.replace(0, "Null."),
    ]
    assert apply_edits("One. Two.", edits) == "Null. Demi. One. Deux. Trois."
    assert [edits[number].sentence for number in standing_edits(edits)] == [
        "Null.",
        "Demi.",
        "Deux.",
        "Trois.",
    ]
    assert standing_edits([]) == standing_edits([Edit.keep()]) == []


@given(TEXTS, st.data())
def test_every_standing_sentence_is_in_the_text_and_no_other_is(
    text: str, data: st.DataObject
) -> None:
    sentences, edits = split_sentences(text), []
    for number in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, num_positions(len(sentences)) - 2))
        edits.append(Edit.at(place, len(sentences), f"New {number}."))
        sentences = apply_edit(sentences, edits[-1])
    # A sentence that takes the place of a list item keeps its marker.
    written = [new[new.index("New ") :] for new in sentences.texts if "New " in new]
    assert [edits[number].sentence for number in standing_edits(edits)] == written


@pytest.mark.parametrize("num_sentences", [0, 1, 5])
def test_keep_is_the_last_position(num_sentences: int) -> None:
    assert keep_position(num_sentences) == num_positions(num_sentences) - 1
    assert Edit.at(keep_position(num_sentences), num_sentences) == Edit.keep()
