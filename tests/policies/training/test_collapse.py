"""Early warnings: what they answer to, and that they are said once."""

import pytest

from policies.training.collapse import WINDOW, new_warnings, signs

GOOD = {
    "distinct_sentences": 0.9,
    "sentence_tokens": 12.0,
    "share_keep": 0.2,
    "reward_spread": 0.4,
    "reward_std": 0.5,
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


def test_said_once_until_it_clears() -> None:
    log = [*rows(), *rows(30, share_keep=1.0), *rows(30), *rows(30, share_keep=1.0)]
    said = [end for end in range(1, len(log) + 1) if new_warnings(log[:end])]
    # Share 1 for 19 of 20 rows and 0.2 for one: a mean of 0.96, just above 0.95.
    assert said == [20 + 19, 80 + 19]
