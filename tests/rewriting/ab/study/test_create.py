"""What gets into a study and what does not."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rewriting.ab.study.create import Design, Output, create_study, named_in_posts
from rewriting.ab.study.schedule import lead_of
from rewriting.ab.study.study import Criterion, Study
from rewriting.errors import UserError
from tests.rewriting.ab.toys import outputs, toy_study


def kinds(study: Study, rater: int) -> list[str]:
    return [study.items[one.item].kind for one in study.assignments[rater]]


def test_a_list_has_practice_first_and_checks_and_repeats_spread() -> None:
    study = toy_study(count=20, raters=2, votes_per_item=2, repeats=3)
    for rater in study.raters:
        order = kinds(study, rater)
        assert order[:2] == ["practice", "practice"]
        assert order.count("practice") == 2
        assert order.count("item") == 20
        assert order.count("attention") == 4
        assert order.count("repeat") == 3
        checks = [place for place, kind in enumerate(order) if kind == "attention"]
        before = [place - 2 - number for number, place in enumerate(checks)]
        quarters = [23 * number // 4 for number in range(5)]
        for number, place in enumerate(before):
            assert quarters[number] <= place < quarters[number + 1], "one in each quarter"
    assert kinds(study, 1) != kinds(study, 2)


@pytest.mark.parametrize("repeats", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("count", [11, 30])
def test_repeats_come_later_with_sides_swapped_and_keep_the_balance(
    count: int, repeats: int
) -> None:
    study = toy_study(count=count, raters=3, votes_per_item=2, repeats=repeats)
    for assigned in study.assignments.values():
        place = {one.item: number for number, one in enumerate(assigned)}
        left = {one.item: one.left for one in assigned}
        shown = [o for o in assigned if study.items[o.item].kind in ("item", "repeat")]
        again = [study.items[o.item] for o in shown if study.items[o.item].kind == "repeat"]
        assert len(again) == repeats or count == 11
        assert bool(again) == bool(repeats)
        for item in again:
            assert place[item.id] > place[item.repeat_of]
            assert left[item.id] == item.other(left[item.repeat_of])
            assert item.replies == study.items[item.repeat_of].replies
        assert all(abs(lead) <= 1 for lead in lead_of(shown, study.items).values())


def test_ids_say_nothing() -> None:
    study = toy_study()
    assert list(study.items) == sorted(study.items)
    assert all(len(name) == 16 and int(name, 16) >= 0 for name in study.items)


def test_same_seed_same_study_and_another_seed_another() -> None:
    assert toy_study(seed=1) == toy_study(seed=1)
    assert toy_study(seed=1).items.keys() != toy_study(seed=2).items.keys()


@pytest.mark.parametrize(
    ("name", "reply"),
    [
        ("northwind", "As NorthWind I am sorry."),
        ("my-model", "This is my model speaking."),
        ("my_model.v2", "I am MY-MODEL v2!"),
    ],
)
def test_replies_that_name_a_system_are_refused(name: str, reply: str) -> None:
    rows = outputs(3, (name, "other"))
    rows["other"][1] = replace(rows["other"][1], reply=reply)
    with pytest.raises(UserError, match="line 1: the reply of system 'other' says"):
        create_study(rows, Design(raters=2, votes_per_item=1))


@pytest.mark.parametrize(
    ("name", "reply"), [("a", "It is a pity."), ("art", "Start with a party."), ("b", "B is fine.")]
)
def test_words_that_only_look_like_a_name_are_fine(name: str, reply: str) -> None:
    rows = outputs(3, (name, "other"))
    rows["other"][1] = replace(rows["other"][1], reply=reply)
    create_study(rows, Design(raters=2, votes_per_item=1))


def test_crisis_identical_empty_and_missing_exchanges_are_left_out_and_counted() -> None:
    rows = outputs(8)
    first, second = rows
    rows[first][0] = replace(rows[first][0], seeker_post="grave")
    rows[second][0] = replace(rows[second][0], seeker_post="grave")
    rows[second][1] = replace(rows[second][1], reply=rows[first][1].reply + "  ")
    rows[first][2] = replace(rows[first][2], reply=" ")
    del rows[second][3]
    study = create_study(
        rows, Design(raters=2, votes_per_item=1), crisis=lambda post: post == "grave"
    )
    assert dict(study.left_out) == {
        "not answered by all systems": 1,
        "empty reply": 1,
        "crisis or possible crisis": 1,
        "identical replies": 1,
    }
    assert {item.exchange_id for item in study.of_kind("item")} == {
        f"exchange {number}" for number in (4, 5, 6, 7)
    }
    kept = create_study(rows, Design(raters=2, votes_per_item=1))
    assert "crisis or possible crisis" not in kept.left_out


def test_three_systems_are_compared_in_every_pair() -> None:
    study = toy_study(count=4, systems=("north", "south", "west"), repeats=0)
    pairs = [frozenset(item.replies) for item in study.of_kind("item")]
    assert len(pairs) == 12
    assert len(set(pairs)) == 3


def test_the_limit_draws_exchanges_by_the_seed() -> None:
    drawn = {i.exchange_id for i in toy_study(count=8, limit=3, seed=5).of_kind("item")}
    assert len(drawn) == 3
    assert drawn != {i.exchange_id for i in toy_study(count=8, limit=3, seed=6).of_kind("item")}


def rename(rows: dict[str, list[Output]], name: str) -> dict[str, list[Output]]:
    first, second = rows.values()
    return {"north": first, name: second}


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        (lambda rows: {"north": rows["northwind"]}, {}, "two or more systems"),
        (lambda rows: rename(rows, "tie"), {}, "may be called 'tie'"),
        (lambda rows: rename(rows, "Better"), {}, "may be called"),
        (lambda rows: rows, {"criteria": []}, "at least one question"),
        (lambda rows: rows, {"criteria": [Criterion("a b", "?")]}, "criterion 'a b'"),
        (lambda rows: rows, {"criteria": [Criterion("x", "?")] * 2}, "criterion 'x'"),
        (lambda rows: rows, {"practice": [{"seeker_post": "x", "better": "y"}]}, "lacks worse"),
        (lambda rows: rename(outputs(0) | {"n": outputs(1)["southsea"]}, "s"), {}, "in common"),
    ],
)  # fmt: skip
def test_mistakes_are_named(
    change: Callable[[Any], Any], settings: dict[str, Any], message: str
) -> None:
    rows = (
        change(outputs(4))
        if "in common" not in message
        else {
            "north": outputs(1)["northwind"],
            "south": [Output("elsewhere", "Post", "Reply")],
        }
    )
    with pytest.raises(UserError, match=message):
        create_study(rows, Design(raters=2, **({"votes_per_item": 1} | settings)))


def test_another_seeker_post_under_the_same_id_is_refused() -> None:
    rows = outputs(3)
    rows["southsea"][1] = replace(rows["southsea"][1], seeker_post="Something else.")
    with pytest.raises(UserError, match="another seeker post in 'southsea'"):
        create_study(rows, Design(raters=2, votes_per_item=1))


PAIR = {"seeker_post": "x", "better": "y", "worse": "z"}


@pytest.mark.parametrize(
    "settings",
    [
        {"title": "Is Northwind better?"},
        {"consent": "We have built NorthWind."},
        {"instructions": "Compare southsea with others."},
        {"help_resources": ["The Southsea team: 000"]},
        {"criteria": [Criterion("northwind", "Which?")]},
        {"criteria": [Criterion("warm", "Which is more like northwind?")]},
        {"practice": [PAIR | {"note": "As southsea would say."}]},
        {"attention": [PAIR | {"worse": "Choose northwind."}]},
    ],
)
def test_texts_that_name_a_system_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="names the system"):
        create_study(outputs(3), Design(raters=2, votes_per_item=1, **settings))


def test_built_in_texts_may_have_common_words() -> None:
    create_study(outputs(3, ("reply", "other")), Design(raters=2, votes_per_item=1))


def test_posts_that_name_a_system_are_counted() -> None:
    rows = outputs(3)
    for name, old in rows.items():
        rows[name] = [replace(old[0], history=("Is this Southsea?",)), *old[1:]]
    assert named_in_posts(create_study(rows, Design(raters=2, votes_per_item=1))) == {"southsea": 1}


def test_a_grave_turn_in_the_history_is_a_crisis() -> None:
    rows = outputs(3)
    rows["southsea"][1] = replace(rows["southsea"][1], history=("grave", "Oh."))
    study = create_study(
        rows, Design(raters=2, votes_per_item=1), crisis=lambda post: post == "grave"
    )
    assert dict(study.left_out) == {"crisis or possible crisis": 1}
