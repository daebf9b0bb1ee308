"""New sentences and rationales, cut into pieces that together are the text again."""

from hypothesis import given
from hypothesis import strategies as st

from rewriting.report.marks import Piece, new_spans, pieces, rationale_spans


def test_overlapping_marks_are_kept_apart() -> None:
    text = "Oh no. Try again."
    runs = pieces(
        text,
        original="Try again.",
        rationales={"emotional_reactions": ["Oh no."], "explorations": ["no. Try"]},
    )
    reactions, both, questions = (
        ("emotional_reactions",),
        ("emotional_reactions", "explorations"),
        ("explorations",),
    )
    assert runs == [
        [Piece("Oh ", True, reactions), Piece("no.", True, both)],
        [Piece(" Try", False, questions), Piece(" again.", False, ())],
    ]


def test_neighbouring_new_sentences_are_one_highlight() -> None:
    assert new_spans("Rest.", "Oh. No. Rest.  Soon. ") == [(0, 7), (15, 20)]
    assert new_spans("Rest.", "Rest.") == []


def test_nothing_is_new_without_an_original() -> None:
    assert pieces("Oh no.", rationales={}) == [[Piece("Oh no.")]]
    assert pieces("", rationales={}) == []


def test_a_rationale_that_comes_twice_is_found_twice() -> None:
    text = "so sorry, so sorry"
    assert rationale_spans(text, ["so sorry", "so sorry"]) == [(0, 8), (10, 18)]
    assert rationale_spans(text, ["so sorry"] * 3 + ["gone", ""]) == [(0, 8), (10, 18)]


@given(st.text(max_size=60), st.text(max_size=30), st.lists(st.text(max_size=5), max_size=3))
def test_the_pieces_are_the_text(text: str, original: str, rationales: list[str]) -> None:
    runs = pieces(text, original=original, rationales={"explorations": rationales})
    assert "".join(piece.text for run in runs for piece in run) == text
