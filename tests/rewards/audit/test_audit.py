"""What is taken out and put in place, and the figures, with toy rewards and numbers by hand."""

from typing import Any

import pytest

from rewards.audit.audit import (
    Audit,
    Item,
    Round,
    audit_items,
    columns,
    rounds_of,
    score_rounds,
    similar_posts,
    stock_carriers,
)
from rewards.audit.wins import figures
from rewards.reward_sum import RewardSum, Term
from rewriting import Exchange, UserError
from rewriting.exchange import Label

REACTIONS, INTERPRETATIONS, EXPLORATIONS = (
    "emotional_reactions",
    "interpretations",
    "explorations",
)


def exchange(post: str, response: str, **labels: tuple[int, str]) -> Exchange:
    found = {name: Label(level, (rationale,)) for name, (level, rationale) in labels.items()}
    return Exchange(post, response, id=post, labels=found)


EXAM = exchange(
    "I failed the exam in maths.",
    "Oh well. Maths exams are so cruel. What did she ask you? Go on.",
    emotional_reactions=(1, "Maths exams are so cruel."),
    explorations=(2, "What did she ask you?"),
)
DOG = exchange(
    "My dog died.",
    "Losing your dog must hurt.",
    interpretations=(2, "Losing your dog must hurt."),
)
TEST = exchange(
    "I failed the exam in law.",
    "I am so sorry. Rest.",
    emotional_reactions=(1, "I am so sorry."),
)
STOCK = ["How do you feel?", "I am so sorry."]
NONSENSE = ["Spoons?"]


@pytest.fixture
def items() -> list[Item]:
    return audit_items([EXAM, DOG, TEST])


def test_the_strongest_carrier_is_taken_out(items: list[Item]) -> None:
    exam, dog, _ = items
    assert (exam.carrier.text, exam.carrier.mechanism) == ("What did she ask you?", EXPLORATIONS)
    assert exam.reply == "Oh well. Maths exams are so cruel. Go on."
    assert exam.with_sentence("Spoons?") == "Oh well. Maths exams are so cruel. Spoons? Go on."
    assert exam.with_sentence(exam.carrier.text) == EXAM.response_post
    assert (dog.reply, dog.with_sentence("Spoons?")) == ("", "Spoons?")


def test_of_equal_levels_the_first_place_counts() -> None:
    both = exchange(
        "Sad.",
        "It must be hard alone. What did she say?",
        explorations=(1, "What did she say?"),
        interpretations=(1, "It must be hard alone."),
    )
    assert audit_items([both])[0].carrier.mechanism == INTERPRETATIONS


def test_too_short_too_long_and_unlabelled_sentences_are_no_items() -> None:
    rows = [
        exchange("A", "So sorry. Rest.", emotional_reactions=(2, "So sorry.")),
        exchange("B", f"{'very ' * 41}sad.", emotional_reactions=(2, "very " * 41)),
        exchange("C", "See www.example.org for it.", explorations=(2, "See www.example.org")),
        exchange("D", "I am so sorry.", emotional_reactions=(0, "I am so sorry.")),
        Exchange("E", "I am so sorry."),
    ]
    assert audit_items(rows) == []


def test_a_post_is_one_item() -> None:
    again = exchange("my  DOG died.", "What was his name?", explorations=(2, "What was his name?"))
    unlabelled = Exchange(EXAM.seeker_post, "No.")
    found = audit_items([unlabelled, DOG, again, EXAM])
    assert [item.exchange for item in found] == [DOG, EXAM]


def test_rounds_put_a_sentence_in_every_place(items: list[Item]) -> None:
    rounds = rounds_of(items, STOCK, NONSENSE, seed=3)
    assert [one.kind for one in rounds] == [
        "matched",
        "stock",
        "stock",
        "nonsense",
        "wrong_post",
        "similar_post",
    ]
    real = tuple(item.carrier.text for item in items)
    assert rounds[0].sentences == real
    assert rounds[1].sentences == ("How do you feel?",) * 3
    assert all(other != own for other, own in zip(rounds[4].sentences, real, strict=True))
    assert set(rounds[4].sentences) <= set(real)
    assert rounds == rounds_of(items, STOCK, NONSENSE, seed=3)
    drawn = {rounds_of(items, STOCK, NONSENSE, seed=seed)[4].sentences for seed in range(20)}
    assert len(drawn) > 1


def test_the_most_similar_post_shares_its_words(items: list[Item]) -> None:
    assert similar_posts(items)[0] == 2
    assert similar_posts(items)[2] == 0


def test_other_posts_with_the_very_same_sentence_are_passed_over(items: list[Item]) -> None:
    twin = exchange(
        "I failed the exam in law again.",
        "I AM so sorry!",
        emotional_reactions=(2, "I AM so sorry!"),
    )
    assert similar_posts([*items, *audit_items([twin])])[2:] == [0, 0]
    only = audit_items([TEST, twin])
    assert similar_posts(only) == [1, 0]


def test_posts_without_a_word_can_be_compared() -> None:
    rows = [
        exchange("😢", "I am so sorry.", emotional_reactions=(2, "I am so sorry.")),
        exchange("💔", "What did she say?", explorations=(2, "What did she say?")),
    ]
    assert similar_posts(audit_items(rows)) == [1, 0]


def test_one_post_cannot_be_audited(items: list[Item]) -> None:
    with pytest.raises(UserError, match="at least two seeker posts"):
        rounds_of(items[:1], STOCK, NONSENSE)


def test_a_reward_sees_what_an_edit_policy_would_show_it(items: list[Item]) -> None:
    levels = {REACTIONS: [None, 1], INTERPRETATIONS: [2, None]}
    rationales = [
        {INTERPRETATIONS: ["Losing your dog must hurt."]},
        {REACTIONS: ["I am so sorry."]},
    ]
    assert columns(items[1:], ["Spoons?", "Forks?"]) == levels | {
        "id": ["My dog died.", "I failed the exam in law."],
        "rationales": rationales,
        "completions": ["Spoons?", "Forks? Rest."],
        "seeker_post": ["My dog died.", "I failed the exam in law."],
        "response_post": ["", "Rest."],
        "sentence": ["Spoons?", "Forks?"],
    }


def words(sentence: list[str], **_: Any) -> list[float]:
    return [float(len(one.split())) for one in sentence]


def shared(sentence: list[str], seeker_post: list[str], **_: Any) -> list[float | None]:
    """Words shared with the post; nothing to say of posts about law."""
    return [
        None
        if "law" in post
        else float(len({*one.rstrip(".").split()} & {*post.rstrip(".").split()}))
        for one, post in zip(sentence, seeker_post, strict=True)
    ]


def audited(items: list[Item], terms: dict[str, Term]) -> Audit:
    others = ("Losing your dog must hurt.", "I am so sorry.", "What did she ask you?")
    rounds = [
        Round("matched", tuple(item.carrier.text for item in items)),
        *(Round("stock", (sentence,) * 3) for sentence in STOCK),
        Round("nonsense", ("Spoons?",) * 3),
        Round("wrong_post", others),
        Round("similar_post", others),
    ]
    return score_rounds(RewardSum(terms), items, rounds)


def test_the_figures_by_hand(items: list[Item]) -> None:
    # words: matched 5 5 4, "How do you feel?" 4, "I am so sorry." 4, "Spoons?" 1, others 5 4 5.
    # The real sentence of the third post is stock: a tie, which is no win.
    audit = audited(items, {"words": Term(words), "shared": Term(shared, 0.0)})
    found = figures(audit, stock_carriers(items, STOCK))
    assert (found["n"], found["empty_replies"]) == (3, 1)
    assert found["matched_beats_every_stock"] == pytest.approx(200 / 3)
    assert found["matched_beats_wrong_post"] == pytest.approx(100 / 3)
    assert found["matched_beats_similar_post"] == pytest.approx(100 / 3)
    assert found["matched_beats_every_nonsense"] == 100
    # "dog" is shared by the second post and its sentence; the "I" of "I am so sorry." with the
    # first post; the third has no value.
    assert found["stock"]["I am so sorry."] == {
        "matched_wins": pytest.approx(200 / 3),
        "total": 4.0,
        "terms": {"words": 4.0, "shared": 0.5},
    }
    assert found["nonsense"]["Spoons?"]["matched_wins"] == 100
    assert found["terms"]["words"] == {
        "matched": pytest.approx(14 / 3),
        "stock": 4.0,
        "nonsense": 1.0,
        "wrong_post": pytest.approx(14 / 3),
        "similar_post": pytest.approx(14 / 3),
        "wins_over_stock": pytest.approx(200 / 3),
        "wins_over_wrong_post": pytest.approx(100 / 3),
    }
    # Of the four pairs with a value the dog's two are won, and the exam's 0 beats neither 0 nor 1.
    assert found["terms"]["shared"]["wins_over_stock"] == 50
    assert found["total"]["matched"] == pytest.approx(14 / 3)


def test_intervals_groups_and_stock_carriers(items: list[Item]) -> None:
    audit = audited(items, {"words": Term(words)})
    found = figures(audit, stock_carriers(items, STOCK))
    # Wilson for 2 of 3.
    assert found["intervals"]["matched_beats_every_stock"] == pytest.approx([20.8, 93.9], abs=0.05)
    assert found["intervals"]["nonsense"]["Spoons?"] == pytest.approx([43.85, 100], abs=0.05)
    names = ("n", "matched_beats_every_stock", "matched_beats_wrong_post")
    groups = {name: tuple(one[key] for key in names) for name, one in found["mechanisms"].items()}
    assert groups == {
        REACTIONS: (1, 0, 0),
        INTERPRETATIONS: (1, 100, 100),
        EXPLORATIONS: (1, 100, 0),
    }
    assert found["carriers_that_are_stock"] == {
        "n": 1,
        "matched_beats_every_stock": 0,
        "matched_beats_wrong_post": 0,
        "sentences": ["I am so sorry."],
    }
    assert found["carriers_that_are_not_stock"] == {
        "n": 2,
        "matched_beats_every_stock": 100,
        "matched_beats_wrong_post": 50,
    }


def test_a_negative_weight_turns_the_order_round(items: list[Item]) -> None:
    found = figures(audited(items, {"words": Term(words, -1.0)}), [False] * 3)
    assert found["matched_beats_every_nonsense"] == 0
    assert found["terms"]["words"]["wins_over_stock"] == 0
    assert found["terms"]["words"]["wins_over_wrong_post"] == pytest.approx(100 / 3)
    assert found["carriers_that_are_stock"]["matched_beats_every_stock"] is None


def test_where_no_term_applies_nobody_wins(items: list[Item]) -> None:
    found = figures(audited(items, {"shared": Term(shared)}), [False] * 3)
    # The dog's post is won; the exam's 0 is no more than 0; the third has no total.
    assert found["matched_beats_every_stock"] == pytest.approx(100 / 3)
    assert found["mechanisms"][REACTIONS]["matched_beats_every_stock"] == 0


def test_scaled_terms_are_measured_over_all_rounds(items: list[Item]) -> None:
    audit = audited(items, {"words": Term(words, scale="whiten")})
    paid = [value for scores in audit.scores for value in scores.totals]
    assert sum(paid) == pytest.approx(0, abs=1e-9)
    assert sum(value**2 for value in paid) == pytest.approx(len(paid) - 1)


def test_progress_counts_every_row_once(items: list[Item]) -> None:
    for scale in (None, "std"):
        done: list[int] = []
        rounds = rounds_of(items, STOCK, NONSENSE)
        score_rounds(RewardSum({"words": Term(words, 1.0, scale)}), items, rounds, done.append)
        assert sum(done) == 18
