"""What sentences under posts are labelled with, by hand and in the bundled texts."""

import json
import random
from pathlib import Path

import pytest

from rewards.reading.labelled import (
    HURTFUL,
    KINDS,
    MOVED,
    NOTHING,
    SENSELESS,
    WRONG,
    Label,
    Page,
    calm_pages,
    fit_pages,
    garbled,
    kindness_pages,
    labelled_pages,
    machine_pages,
    merged,
    pages_by_kind,
    rewrite_pages,
    welcome,
    with_garbled,
    with_moved,
)
from rewriting.data import load_exchanges
from rewriting.errors import UserError
from rewriting.exchange import Exchange


def counterfactual(kind: str) -> Exchange:
    sentences = [{"kind": kind, "text": "Poor Rex."}]
    return Exchange("Rex died.", "Oh.", id="c1", extra={"sentences": sentences})


def test_a_kind_says_what_a_sentence_is() -> None:
    (page,) = pages_by_kind([counterfactual("general_fit")])
    assert page == Page("Rex died.", (("Poor Rex.", Label(1.0, 1.0, 0.0, (None, 2, 0))),))
    with pytest.raises(UserError, match=r"'c1': unknown kind 'other'"):
        pages_by_kind([counterfactual("other")])


def test_what_does_not_fit_earns_nothing() -> None:
    for kind, label in KINDS.items():
        if label in (WRONG, SENSELESS, HURTFUL):
            assert label.levels == NOTHING, kind
            assert label != welcome(label.levels)


def test_bundled_texts_have_known_kinds() -> None:
    for part in ("counterfactuals", "sense"):
        pages = pages_by_kind(load_exchanges(f"sample:{part}_dev"))
        assert all(8 <= len(page.sentences) <= 12 for page in pages)


def test_machine_sentences(tmp_path: Path) -> None:
    path = tmp_path / "machine.jsonl"
    row = {"seeker_post": "Rex died.", "sentence": "Who is Rex's wife?", "label": "wrong"}
    path.write_text(json.dumps(row) + "\n")
    assert machine_pages(path) == [Page("Rex died.", (("Who is Rex's wife?", WRONG),))]
    path.write_text(json.dumps(row) + "\n" + json.dumps(row | {"label": "odd"}) + "\n")
    with pytest.raises(UserError, match="line 2: a line needs seeker_post, sentence and label"):
        machine_pages(path)


def test_a_sentence_fits_one_post_and_not_another(tmp_path: Path) -> None:
    path = tmp_path / "fits.jsonl"
    rows = [
        {"text": "Alone with it all.", "mechanism": "interpretation", "level": 2, "fits": [1, 0]},
        {"text": "Since when?", "mechanism": "question", "level": 1, "fits": [None, 1]},
        {"text": "I'm sad for you.", "mechanism": "reaction", "level": 2, "fits": [1, 1]},
    ]
    group = {"id": "m-1", "posts": ["I do it all.", "We share it."], "sentences": rows}
    path.write_text(json.dumps(group) + "\n")
    first, second = fit_pages(path)
    assert first == Page(
        "I do it all.",
        (
            ("Alone with it all.", welcome((None, 2, 0))),
            ("I'm sad for you.", welcome((2, None, 0))),
        ),
    )
    assert second.sentences == (
        ("Alone with it all.", WRONG),
        ("Since when?", welcome((0, 0, 1))),
        ("I'm sad for you.", welcome((2, None, 0))),
    )
    rows[1]["fits"] = [1]
    path.write_text("\n" + json.dumps(group) + "\n")
    with pytest.raises(UserError, match="line 1: a line needs posts"):
        fit_pages(path)
    path.write_text(json.dumps(group) + "\n")
    with pytest.raises(UserError, match="a fit for each post"):
        fit_pages(path)


def test_sentences_of_labelled_replies_are_in_their_place() -> None:
    pages = labelled_pages(load_exchanges("sample:dev"))
    labels = [label for page in pages for _, label in page.sentences]
    assert {(label.sense, label.true, label.hurts) for label in labels} == {(1.0, 1.0, None)}
    assert {max(label.levels, key=lambda level: level or 0) for label in labels} == {0, 1, 2}
    assert labelled_pages([Exchange("Rex died.", "Poor Rex.")]) == []


def test_new_sentences_of_rewrites_have_the_levels_of_their_rationales() -> None:
    extra = {
        "edits": [{"sentence": "Poor Rex."}, {"sentence": "Since when?"}],
        "rewritten_levels": {"emotional_reactions": 2, "interpretations": 0, "explorations": 1},
        "rewritten_rationales": {
            "emotional_reactions": ["Poor Rex."],
            "interpretations": [],
            "explorations": ["Since when?"],
        },
    }
    (page,) = rewrite_pages([Exchange("Rex died.", "Oh.", extra=extra)])
    assert page.sentences == (
        ("Poor Rex.", welcome((2, 0, 0))),
        ("Since when?", welcome((0, 0, 1))),
    )


def test_kind_words_earn_nothing_where_nobody_is_in_trouble() -> None:
    exchange = Exchange("I planted tulips.", "Which ones?")
    (page,) = calm_pages([exchange], ["I'm sorry.", "Poor you."], seed=0)
    assert page.sentences[0] == ("Which ones?", Label(1.0, 1.0, 0.0, NOTHING))
    assert {text for text, _ in page.sentences[1:]} == {"I'm sorry.", "Poor you."}
    assert all(label == Label(levels=NOTHING) for _, label in page.sentences[1:])


def test_strong_sentences_of_other_posts_are_not_true() -> None:
    pages = [
        Page("A", (("a", welcome((0, 2, 0))), ("weak", welcome((0, 1, 0))))),
        Page("B", (("b", welcome((2, 0, 0))),)),
        Page("", (("alone", Label(hurts=1.0)),)),
    ]
    first, second, third = with_moved(pages, 2, seed=0)
    assert first.sentences[2:] == (("b", MOVED), ("b", MOVED))
    assert second.sentences[1:] == (("a", MOVED), ("a", MOVED))
    assert third == pages[2]  # without a post nothing is out of place
    assert with_moved(pages, 0, seed=0) == pages
    with pytest.raises(UserError, match="of two posts"):
        with_moved(pages[:1], 1, seed=0)


def test_pages_of_one_post_become_one() -> None:
    pages = [
        Page("A", (("a", WRONG),)),
        Page("B", (("b", WRONG),)),
        Page("A", (("a", SENSELESS), ("c", SENSELESS), ("d", WRONG))),
    ]
    assert merged(pages, most=2) == [
        Page("A", (("a", WRONG), ("c", SENSELESS))),
        Page("A", (("d", WRONG),)),
        Page("B", (("b", WRONG),)),
    ]


def test_kindness_sentences_have_no_post() -> None:
    assert kindness_pages([("Fool.", True)]) == [Page("", (("Fool.", Label(hurts=1.0)),))]


def test_a_garbled_sentence_keeps_some_of_its_words() -> None:
    generator = random.Random(0)
    sentence = "It must be hard to wait for the letter every day."
    texts = {garbled(sentence, ["kettle", "Tuesday,"], generator) for _ in range(40)}
    assert sentence not in texts
    for text in texts:
        kept = set(text.split()) & set(sentence.split())
        assert len(kept) >= len(sentence.split()) // 2
        moved = sorted(text.split()) == sorted(sentence.split())
        assert moved or {"kettle", "Tuesday"} & set(text.split())


def test_pages_get_a_garbled_copy_of_a_right_sentence() -> None:
    right = "It must be hard to wait for the letter."
    pages = [
        Page("I wait for a letter.", ((right, welcome()), ("Short.", welcome()))),
        Page("I wait for a letter.", ((right, WRONG),)),
        Page("", ((right, Label(hurts=0.0)),)),
    ]
    first, *others = with_garbled(pages, seed=0)
    assert first.sentences[:2] == pages[0].sentences
    (text, label) = first.sentences[2]
    assert label == SENSELESS
    assert text != right
    assert others == pages[1:]
