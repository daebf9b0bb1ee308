"""Early warnings: what they answer to, and that they are said once."""

import pytest

from rewriting.exchange import MECHANISMS
from rewriting.report.collapse import EDITS, RESPONSES, WINDOW, new_warnings, signs

GOOD = {
    "distinct_sentences": 0.9,
    "sentence_tokens": 12.0,
    "share_keep": 0.2,
    "reward_spread": 0.4,
    "reward_std": 0.5,
    "share_questions": 0.3,
    "share_opening": 0.2,
    "rewards/empathy_change": 0.6,
    "rewards/empathy_change/emotional_reactions": 0.2,
    "rewards/empathy_change/interpretations": 0.3,
    "rewards/empathy_change/explorations": 0.1,
}


def rows(count: int = WINDOW, **changed: float) -> list[dict[str, float]]:
    return [GOOD | changed for _ in range(count)]


def test_a_healthy_run_is_left_alone() -> None:
    assert signs(rows(100)) == {}
    assert signs([]) == {}
    assert signs([{"step": 0, "dev/reward": 1.0}, *rows()]) == {}


@pytest.mark.parametrize(
    ("name", "changed", "words"),
    [
        ("alike", {"distinct_sentences": 0.1}, "distinct 0.10"),
        ("long", {"sentence_tokens": 30.0}, "30 tokens, 12 at the start"),
        ("keeps", {"share_keep": 0.97}, "97 % of the actions"),
        ("flat", {"reward_spread": 0.0}, "nothing to learn from"),
        ("questions", {"share_questions": 0.96}, "questions (96 %)"),
        ("opening", {"share_opening": 0.85}, "begin with the same words (85 %)"),
        (
            "mechanism",
            {"rewards/empathy_change/explorations": 1.3},
            "rise of empathy_change: explorations +1.20 since the start, of +1.20 in all",
        ),
    ],
)
def test_each_sign_by_itself(name: str, changed: dict[str, float], words: str) -> None:
    found = signs([*rows(), *rows(**changed)])
    assert list(found) == [name]
    assert words in found[name]
    assert "\n" not in found[name]


def test_a_sign_must_last() -> None:
    assert signs([*rows(), *rows(3, distinct_sentences=0.0)]) == {}
    assert signs(rows(WINDOW - 1, distinct_sentences=0.0)) == {}


def test_length_is_measured_against_the_start() -> None:
    assert signs(rows(50, sentence_tokens=30.0)) == {}
    short = rows(sentence_tokens=3.0)
    assert signs([*short, *rows(sentence_tokens=7.0)]) == {}  # twice, but still short
    assert list(signs([*short, *rows(sentence_tokens=9.0)])) == ["long"]


def test_a_policy_that_writes_nothing_is_not_called_monotonous() -> None:
    silent = {name: value for name, value in GOOD.items() if name != "distinct_sentences"}
    silent |= {"share_keep": 1.0}
    assert list(signs([silent] * WINDOW)) == ["keeps"]


def test_single_samples_are_flat_by_their_deviation() -> None:
    single = {name: value for name, value in GOOD.items() if name != "reward_spread"}
    assert signs([single] * WINDOW) == {}
    assert list(signs([single | {"reward_std": 0.0}] * WINDOW)) == ["flat"]


def by_mechanism(*changes: float) -> list[str]:
    """The signs after the mechanisms moved so much from their start: 0.2, 0.3 and 0.1."""
    names = [name for name in GOOD if name.count("/") == 2]
    moved = {name: GOOD[name] + by for name, by in zip(names, changes, strict=True)}
    return list(signs([*rows(), *rows(**moved)]))


def test_one_mechanism_must_pay_for_more_than_nine_tenths_of_a_real_rise() -> None:
    assert by_mechanism(0.0, 0.0, 0.3) == ["mechanism"]
    assert by_mechanism(0.02, 0.02, 0.4) == ["mechanism"]  # 0.40 of 0.44, 91 %
    assert by_mechanism(0.05, 0.0, 0.4) == []  # 0.40 of 0.45, 89 %
    assert by_mechanism(0.0, -0.3, 0.4) == ["mechanism"]  # what fell is no part of the rise
    assert by_mechanism(0.0, 0.0, 0.15) == []  # may be noise
    assert by_mechanism(0.0, 0.0, -0.5) == []
    assert by_mechanism(0.4, 0.4, 0.4) == []


def test_a_rise_needs_a_start_and_more_than_one_mechanism() -> None:
    risen = {"rewards/empathy_change/explorations": 1.3}
    assert signs([*rows(WINDOW - 1), *rows(**risen)]) == {}  # the windows would share a step
    alone = [
        {name: v for name, v in row.items() if "tions" not in name or "expl" in name}
        for row in [*rows(), *rows(**risen)]
    ]
    assert all(row.keys() & risen.keys() for row in alone)
    assert signs(alone) == {}


def test_equal_sentences_begin_alike_and_are_said_to_be_equal_only() -> None:
    found = signs([*rows(), *rows(share_opening=1.0, distinct_sentences=0.0)])
    assert list(found) == ["alike"]


def test_said_once_until_it_clears() -> None:
    log = [*rows(), *rows(30, share_keep=1.0), *rows(30), *rows(30, share_keep=1.0)]
    said = [end for end in range(1, len(log) + 1) if new_warnings(log[:end])]
    # Share 1 for 19 of 20 rows and 0.2 for one: a mean of 0.96, just above 0.95.
    assert said == [20 + 19, 80 + 19]


def test_signs_are_seen_in_the_figures_of_ppo() -> None:
    good = {"distinct_responses": 0.9, "response_tokens": 9.0, "reward_std": 0.5}
    good |= {"share_questions": 0.4, "share_opening": 0.1}
    good |= {f"rewards/level_alignment/{m}": 0.3 for m in MECHANISMS}
    bad: dict[str, dict[str, float]] = {
        "alike": {"distinct_responses": 0.0},
        "long": {"response_tokens": 30.0},
        "flat": {"reward_std": 0.0},
        "questions": {"share_questions": 1.0},
        "opening": {"share_opening": 0.9},
        "mechanism": {f"rewards/level_alignment/{MECHANISMS[2]}": 0.6},
    }
    assert set(bad) == set(RESPONSES.remedies) == set(EDITS.remedies) - {"keeps"}
    for sign, changed in bad.items():
        log = [good] * WINDOW + [good | changed] * WINDOW
        said = [new_warnings(log[:end]) for end in range(1, len(log) + 1)]
        (text,) = [text for texts in said for text in texts]
        assert list(signs(log)) == [sign]
        assert text.endswith(RESPONSES.remedies[sign])
        assert "sentence" not in text
