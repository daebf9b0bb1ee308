"""Studies made by hand for tests: votes that follow from a rule, so that figures can be counted."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from rewriting.ab.study.study import Assignment, Criterion, Item, Study, Vote

CRITERIA = (
    Criterion("empathic", "Which reply is more empathic?"),
    Criterion("fluent", "Which reply reads more fluently?"),
)
Rule = Callable[[int, int, str], str]


def made_study(
    *,
    systems: tuple[str, ...] = ("ours", "theirs"),
    exchanges: int = 8,
    raters: int = 4,
    repeats: int = 2,
    seeker_post: str = "I failed again.",
) -> Study:
    """Every rater judges every pair; sides alternate; two checks; the first pairs come again."""
    items: dict[str, Item] = {}
    for number in range(exchanges):
        for first, second in combinations(systems, 2):
            key = f"item{number:03d}{systems.index(first)}{systems.index(second)}"
            replies = {first: f"Reply {number} α.", second: f"Reply {number} β."}
            post = f"{seeker_post} ({number})"
            items[key] = Item(key, post, replies, exchange_id=f"exchange{number}")
    plain = list(items.values())
    for item in plain[:repeats]:
        again = f"repeat-{item.id}"
        items[again] = Item(again, item.seeker_post, item.replies, "repeat", repeat_of=item.id)
    for number in range(2):
        key = f"check{number}"
        replies = {"better": "I hear you.", "worse": "Please choose the other reply."}
        items[key] = Item(key, "A check.", replies, "attention", expected="better")
    items["trial"] = Item(
        "trial", "A trial.", {"better": "Yes.", "worse": "No."}, "practice", expected="better"
    )
    assignments = {
        rater: tuple(
            Assignment(item.id, sorted(item.replies)[(place + rater + (item.kind == "repeat")) % 2])
            for place, item in enumerate(items.values())
        )
        for rater in range(1, raters + 1)
    }
    return Study(
        systems,
        items=items,
        assignments=assignments,
        criteria=CRITERIA,
        title="A made study",
        votes_per_item=raters,
        help_resources=("A help line: 000",),
        consent="I agree.",
        instructions="Choose.",
    )


def cast(study: Study, rule: Rule, *, seconds: float = 10.0) -> list[Vote]:
    """Votes of every rater on everything. rule: (rater, place of the exchange, criterion) → winner.

    Repeats get the answer of the first time, checks and trials the expected one.
    """
    votes = []
    for rater, assigned in study.assignments.items():
        for one in assigned:
            item = study.items[one.item]
            first = study.items[item.repeat_of] if item.repeat_of else item
            for criterion in study.criteria:
                place = int(first.exchange_id.removeprefix("exchange")) if first.exchange_id else 0
                winner = item.expected or rule(rater, place, criterion.name)
                left, right = one.left, item.other(one.left)
                time = "2026-01-01T00:00:00.000+00:00"
                votes.append(
                    Vote(rater, item.id, criterion.name, winner, left, right, seconds, time)
                )
    return votes
