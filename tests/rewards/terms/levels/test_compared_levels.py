"""Level alignment that compares the rows of a batch with each other: relative and calibrated."""

import math
import random
import time
from typing import Any

import pytest

from rewards.reward_sum import RewardSum, Term
from rewards.terms.levels.level_alignment import LevelAlignment
from rewriting.exchange import MECHANISMS
from tests.rewards.fakes import FakeIdentifier
from tests.rewards.terms.levels.toys import COLUMNS, scores


def without(values: list[float], place: int) -> float:
    """The mean of the others."""
    return (sum(values) - values[place]) / (len(values) - 1)


@pytest.mark.parametrize("combine", ["mean", "product"])
def test_relative_takes_away_what_the_others_would_have_got_for_the_target(combine: str) -> None:
    found = LevelAlignment(FakeIdentifier(), combine=combine, relative=True)(**COLUMNS)
    s = scores(combine, COLUMNS)
    expected = [s[i][i] - without([row[i] for row in s], i) for i in range(3)]
    assert found == pytest.approx(expected)


def levels_shown(columns: dict[str, Any]) -> list[list[tuple[float, float, float]]]:
    found = FakeIdentifier().assess(
        columns["seeker_post"], columns["completions"], rationales=False
    )
    return [[one.judgements[m].probabilities for m in MECHANISMS] for one in found]


def agreements(columns: dict[str, Any]) -> list[list[float]]:
    """The chance that two responses show the same level, mean over the mechanisms."""
    shown = levels_shown(columns)

    def agree(a: Any, b: Any) -> float:
        pairs = [zip(p, q, strict=True) for p, q in zip(a, b, strict=True)]
        return sum(sum(x * y for x, y in pair) for pair in pairs) / len(MECHANISMS)

    return [[agree(a, b) for b in shown] for a in shown]


def test_calibrated_takes_away_how_far_the_other_responses_show_the_same() -> None:
    term = LevelAlignment(FakeIdentifier(), combine="mean", calibrated=0.7)
    s, same = scores("mean", COLUMNS), agreements(COLUMNS)
    expected = [s[i][i] - 0.7 * without(same[i], i) for i in range(3)]
    assert term(**COLUMNS) == pytest.approx(expected)


def test_calibrated_and_relative_together() -> None:
    """Against what the two others got by the same rule, with nothing of this row in it."""
    term = LevelAlignment(FakeIdentifier(), combine="mean", calibrated=0.7, relative=True)
    s, same = scores("mean", COLUMNS), agreements(COLUMNS)
    for i, found in enumerate(term(**COLUMNS)):
        j, k = (row for row in range(3) if row != i)
        others = (s[j][i] + s[k][i]) / 2 - 0.7 * same[j][k]
        assert found == pytest.approx(s[i][i] - 0.7 * without(same[i], i) - others)
    changed = COLUMNS | {"completions": ["Stop.", *COLUMNS["completions"][1:]]}
    before, after = term(**COLUMNS)[0], term(**changed)[0]
    own = LevelAlignment(FakeIdentifier(), combine="mean", calibrated=0.7)
    moved = (own(**changed)[0] or 0) - (own(**COLUMNS)[0] or 0)
    assert (after or 0) - (before or 0) == pytest.approx(moved)


def test_calibrated_the_best_habit_is_to_show_each_level_as_often_as_people_do() -> None:
    """People react in 4 of 10 rows. Plainly, never to react pays best; calibrated, 4 of 10 do."""
    rows = 40
    columns: dict[str, Any] = {"seeker_post": ["I failed."] * rows}
    columns["emotional_reactions"] = [2 if row % 5 < 2 else 0 for row in range(rows)]
    only = {"interpretations": 0, "explorations": 0}

    def total(shown: int, calibrated: float) -> float:
        """Of a policy that reacts in so many of 40 rows, spread over all kinds of rows."""
        said = ["I am sorry." if (row * 7) % rows < shown else "Stop." for row in range(rows)]
        options: dict[str, Any] = {"combine": "mean", "calibrated": calibrated}
        found = LevelAlignment(FakeIdentifier(), weights=only, **options)(
            completions=said, **columns
        )
        half = LevelAlignment(FakeIdentifier(), weights=only, combine="mean")(
            completions=said, **columns
        )
        # What a policy climbs is not the mean of these rewards: of the agreement, half counts.
        return sum(((a or 0) + (b or 0)) / 2 for a, b in zip(found, half, strict=True))

    assert max(range(0, rows + 1, 4), key=lambda shown: total(shown, 0.0)) == 0
    assert max(range(0, rows + 1, 4), key=lambda shown: total(shown, 1.0)) == 16


def in_loops(term: LevelAlignment, facts: list[Any]) -> list[float]:
    """The same arithmetic, one pair of rows after the other."""
    weights = [weight for weight in term.weights.values() if weight]

    def score(shown: Any, target: Any) -> float:
        if shown is None:
            return 0.0
        rows = list(zip(shown, target, weights, strict=True))
        if term.combine == "mean":
            met = [w * sum(a * b for a, b in zip(p, t, strict=True)) for p, t, w in rows]
            return sum(met) / sum(weights)
        return math.prod(sum(a**w * b for a, b in zip(p, t, strict=True)) for p, t, w in rows)

    def same(own: Any, other: Any) -> float:
        return 1.0 if own is None else score(other, own)

    rows, size = range(len(facts)), len(facts)
    shown, targets = [fact[0] for fact in facts], [fact[1] for fact in facts]
    found = []
    for i in rows:
        others = [j for j in rows if j != i]
        value = score(shown[i], targets[i])
        if term.relative:
            value -= sum(score(shown[j], targets[i]) for j in others) / (size - 1)
        if term.calibrated:
            value -= term.calibrated * sum(same(shown[i], shown[j]) for j in others) / (size - 1)
        if term.calibrated and term.relative:
            pairs = [same(shown[j], shown[k]) for j in others for k in others if j != k]
            value += term.calibrated * sum(pairs) / len(pairs)
        found.append(value)
    return found


def random_facts(count: int, mechanisms: int = 3) -> list[Any]:
    """What a batch may show and is to show, every seventh response of it blank."""
    chooser = random.Random(0)

    def probabilities() -> tuple[tuple[float, ...], ...]:
        draws = [[chooser.random() for _ in range(3)] for _ in range(mechanisms)]
        return tuple(tuple(one / sum(draw) for one in draw) for draw in draws)

    return [(None if row % 7 == 3 else probabilities(), probabilities()) for row in range(count)]


@pytest.mark.parametrize("combine", ["mean", "product"])
@pytest.mark.parametrize(("relative", "calibrated"), [(True, 0.0), (False, 0.6), (True, 0.6)])
def test_the_numbers_are_those_of_loops_over_all_pairs(
    combine: str, relative: bool, calibrated: float
) -> None:
    weights = {"emotional_reactions": 2.0, "explorations": 0.7}
    term = LevelAlignment(
        FakeIdentifier(),
        weights=weights,
        combine=combine,
        relative=relative,
        calibrated=calibrated,
    )
    facts = random_facts(24)
    assert term.compare(facts) == pytest.approx(in_loops(term, facts), abs=1e-12)
    parts = [*facts[:5], None, *facts[5:]]
    found = term.compare(parts)
    assert [*found[:5], *found[6:]] == term.compare(facts)
    assert found[5] is None


def test_a_large_batch_is_compared_in_no_time() -> None:
    """768 rows took 15 seconds in loops over all pairs."""
    term = LevelAlignment(FakeIdentifier(), combine="mean", relative=True, calibrated=0.6)
    facts = random_facts(768)
    start = time.process_time()
    assert len(term.compare(facts)) == 768
    assert time.process_time() - start < 2


def test_of_several_processes_each_asks_the_identifier_for_its_own_rows_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options: dict[str, Any] = {"combine": "mean", "relative": True, "calibrated": 0.6}
    whole = LevelAlignment(FakeIdentifier(), **options)(**COLUMNS)
    shares = [
        {name: values[:2] for name, values in COLUMNS.items()},
        {name: values[2:] for name, values in COLUMNS.items()},
    ]
    sent = [LevelAlignment(FakeIdentifier(), **options).read(**share) for share in shares]
    found: list[float | None] = []
    for process, share in enumerate(shares):
        monkeypatch.setattr("rewards.reward_sum.process_index", lambda process=process: process)
        identifier, own = FakeIdentifier(), sent[process]

        def gather(value: Any, own: Any = own) -> list[Any]:
            assert value == own
            return sent

        term = Term(LevelAlignment(identifier, **options))
        found += RewardSum({"levels": term}, gather=gather).score(update=True, **share).totals
        asked = list(zip(share["seeker_post"], share["completions"], strict=True))
        assert identifier.asked == [asked]
    assert found == pytest.approx(whole)


def test_compared_rows_are_those_with_a_target_and_silence_is_no_way_out() -> None:
    term = LevelAlignment(FakeIdentifier(), combine="mean", calibrated=1.0)
    blank = COLUMNS | {"completions": ["I am sorry. Why?", " ", "I am sorry."]}
    expected = term(**blank)
    assert expected[1] == pytest.approx(-1.0)
    more = {name: [*values, values[0]] for name, values in blank.items()}
    more["explorations"][3] = None
    assert term(**more) == [*map(pytest.approx, expected), None]


def test_relative_where_all_say_the_same_nothing_is_better_than_anything() -> None:
    columns = COLUMNS | {"completions": ["Stop."] * 3, "seeker_post": ["I failed."] * 3}
    term = LevelAlignment(FakeIdentifier(), relative=True)
    assert term(**columns) == pytest.approx([0.0, 0.0, 0.0])


@pytest.mark.parametrize("option", ["relative", "calibrated"])
def test_who_has_nobody_to_be_compared_with_has_no_reward(option: str) -> None:
    alone = {name: values[:1] for name, values in COLUMNS.items()}
    term = LevelAlignment(FakeIdentifier(), **{option: True})  # type: ignore[arg-type]
    assert term(**alone) == [None]
