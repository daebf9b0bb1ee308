"""What blocks are made of, and what sentences and levels come out of exchanges."""

from collections import Counter

import pytest

from rewards.reading.blocks import (
    CALM_POSTS,
    DECOYS,
    EVERYDAY,
    KIND_LEVELS,
    MISFITS,
    MISFITS_OF_POST,
    Answer,
    Material,
    counterfactual_answers,
    decoys_of,
    labelled_answers,
    make_blocks,
    plain_answers,
    sentence_levels,
    sentences_by_kind,
)
from rewriting.exchange import Exchange, Label

KINDS = [*KIND_LEVELS, "wrong_feeling", "wrong_detail"]


def counterfactual(name: str) -> Exchange:
    sentences = [{"kind": kind, "text": f"{kind} to {name}"} for kind in KINDS]
    return Exchange(f"Post {name}", "Hm.", extra={"sentences": sentences})


@pytest.fixture
def material() -> Material:
    ours = [counterfactual(str(n)) for n in range(4)]
    real = [Answer(f"Real {n}", f"Said {n} {k}", (0, 1, 0)) for n in range(3) for k in range(2)]
    return Material(
        sources=[(0.5, real), (0.5, counterfactual_answers(ours))],
        decoys=decoys_of(ours, {"question_weak": ["Why?"]}),
        everyday=[f"Bus {n}." for n in range(5)],
        calm_posts=[f"Calm {n}." for n in range(10)],
    )


def test_no_post_stands_twice_in_a_block(material: Material) -> None:
    for block in make_blocks(material, count=20, size=6, seed=0):
        posts = [answer.post for answer in block.answers]
        assert len(posts) == len(set(posts)) == 6
        assert {post.split()[0] for post in posts} == {"Real", "Post"}  # 6 of 3 and 4


def test_the_decoys_of_a_block(material: Material) -> None:
    for block in make_blocks(material, count=5, size=3, seed=0):
        kinds = [kind for kind, number in DECOYS.items() for _ in range(number)]
        for (text, levels), kind in zip(block.decoys, kinds, strict=False):
            assert levels == KIND_LEVELS[kind]
            assert text.startswith(f"{kind} to ") or (kind, text) == ("question_weak", "Why?")
        everyday = block.decoys[len(kinds) :]
        assert len({text for text, _ in everyday}) == EVERYDAY == 3
        assert all(text.startswith("Bus") and not any(levels) for text, levels in everyday)
        assert len(set(block.calm_posts)) == CALM_POSTS == 8


def test_stock_sentences_are_drawn_beside_those_of_the_counterfactuals(material: Material) -> None:
    found = Counter(
        text
        for block in make_blocks(material, count=20, size=2, seed=0)
        for text, levels in block.decoys
        if levels == (0, 0, 1)
    )
    assert set(found) == {"Why?", *(f"question_weak to {n}" for n in range(4))}


def test_misfits_are_two_of_the_posts_own(material: Material) -> None:
    seen = set()
    for block in make_blocks(material, count=20, size=6, seed=0):
        for answer in block.answers:
            name = answer.post.split()[1]
            if answer.post.startswith("Real"):
                assert answer.misfits == ()
                continue
            assert len(set(answer.misfits)) == MISFITS_OF_POST == 2
            assert set(answer.misfits) <= {f"{kind} to {name}" for kind in MISFITS}
            seen |= {text.split()[0] for text in answer.misfits}
    assert seen == set(MISFITS)


def test_the_seed_decides(material: Material) -> None:
    def blocks(seed: int) -> list[object]:
        return list(make_blocks(material, count=3, size=4, seed=seed))

    assert blocks(0) == blocks(0)
    assert blocks(0) != blocks(1)


def test_shares_of_the_sources() -> None:
    rows = [[Answer(f"{name}{n}", "Yes.") for n in range(50)] for name in "ab"]
    base = {kind: ["x"] for kind in DECOYS}
    material = Material([(0.9, rows[0]), (0.1, rows[1])], base, ["x"] * 3, ["x"] * 8)
    blocks = make_blocks(material, count=200, size=1, seed=0)
    count = sum(block.answers[0].post.startswith("a") for block in blocks)
    assert 160 <= count <= 195  # 180 expected, standard deviation 4


RESPONSE = "I am so sorry. Did you sleep? Take a walk."
LABELLED = Exchange(
    "I failed.",
    RESPONSE,
    labels={
        "emotional_reactions": Label(2, ("I am so sorry.",)),
        "interpretations": Label(0),
        "explorations": Label(1, ("Did you sleep?",)),
    },
)


def test_sentences_have_the_levels_of_their_rationales() -> None:
    assert sentence_levels(LABELLED) == [
        ("I am so sorry.", (2, 0, 0)),
        ("Did you sleep?", (0, 0, 1)),
        ("Take a walk.", (0, 0, 0)),
    ]


def test_labelled_answers_leave_out_what_is_not_labelled_or_no_prose() -> None:
    unlabelled = Exchange("I failed.", RESPONSE)
    link = Exchange("I cry.", "See www.help.org now. Oh. Come\there.", labels=LABELLED.labels)
    found = labelled_answers([unlabelled, link, LABELLED])
    assert [(one.post, one.sentence) for one in found[:1]] == [("I cry.", "Come here.")]
    assert found[1:] == [Answer("I failed.", *row) for row in sentence_levels(LABELLED)]


def test_plain_answers_have_no_levels() -> None:
    found = plain_answers([Exchange("I failed.", "Oh no. That is hard.")])
    assert found == [Answer("I failed.", "That is hard.")]  # two words are too few here


def test_counterfactual_answers() -> None:
    found = counterfactual_answers([counterfactual("1")])
    assert [(one.sentence, one.levels) for one in found] == [
        ("reaction_strong to 1", (2, 0, 0)),
        ("interpretation_strong to 1", (0, 2, 0)),
        ("question_strong to 1", (0, 0, 2)),
    ]
    misfits = tuple(f"{kind} to 1" for kind in ("wrong_feeling", "wrong_detail", "hurtful"))
    assert {one.misfits for one in found} == {(*misfits, "advice to 1")}
    assert {one.post for one in found} == {"Post 1"}


def test_sentences_and_decoys_by_kind() -> None:
    assert sentences_by_kind(counterfactual("1"))["echo"] == "echo to 1"
    found = decoys_of([counterfactual("1")], {"reaction_weak": ["Hugs."], "echo": ["No."]})
    assert set(found) == set(DECOYS)
    assert found["reaction_weak"] == ["reaction_weak to 1", "Hugs."]
    assert found["nonsense"] == ["nonsense to 1"]
