"""Sources are split by seeker, drawn from by seed, and joined."""

from collections.abc import Callable
from pathlib import Path

import pytest

from recipes.shared.sources import (
    known_levels,
    labelled_lines,
    load_splits,
    other_responses,
    rows_of_split,
)
from rewriting.data import load_exchanges, split_of
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange, Label

ROWS = [{"seeker_post": f"seeker {n // 2}", "response_post": f"response {n}"} for n in range(80)]


def test_no_seeker_is_in_two_splits(jsonl: Callable[..., Path]) -> None:
    first = jsonl(ROWS[:60], "a.jsonl")
    second = jsonl(ROWS[40:], "b.jsonl")
    splits = load_splits(f"{first}, {second}")
    assert sum(map(len, splits.values())) == 60 + 40
    for name, exchanges in splits.items():
        assert exchanges
        assert all(split_of(exchange) == name for exchange in exchanges)


def test_draws_follow_from_the_seed(jsonl: Callable[..., Path]) -> None:
    data = str(jsonl(ROWS))
    drawn = load_splits(data, max_rows=5, seed=1)
    assert [len(rows) for rows in drawn.values()] == [5, 5, 5]
    assert load_splits(data, max_rows=5, seed=1) == drawn
    assert load_splits(data, max_rows=5, seed=2) != drawn


def test_later_turns_and_duplicates_can_be_left_out(jsonl: Callable[..., Path]) -> None:
    later = [row | {"history": ["before"]} for row in ROWS]
    assert not any(
        exchange.history
        for rows in load_splits(str(jsonl([*ROWS, *ROWS])), first_turns=True).values()
        for exchange in rows
    )
    with pytest.raises(UserError, match="too little data"):
        load_splits(str(jsonl(later)), first_turns=True)


def test_other_responses_are_to_other_seekers() -> None:
    exchanges = [Exchange("a", "1"), Exchange("a", "2"), Exchange("b", "3"), Exchange("c", "4")]
    assert other_responses(exchanges) == ["3", "3", "4", "1"]


def test_the_sample_keeps_its_own_parts() -> None:
    splits = load_splits("sample")
    for name, exchanges in splits.items():
        assert exchanges == list(load_exchanges(f"sample:{name}"))
    posts = {name: {e.seeker_post for e in exchanges} for name, exchanges in splits.items()}
    assert not posts["train"] & posts["test"]
    assert not posts["dev"] & posts["test"]


def test_what_is_measured_was_not_trained_on(jsonl: Callable[..., Path]) -> None:
    for source in ("sample", str(jsonl(ROWS))):
        trained = {e.seeker_post for e in load_splits(source)["train"]}
        measured = {e.seeker_post for e in rows_of_split(source, "test")}
        assert measured
        assert not trained & measured
    assert len(rows_of_split("sample", "all")) == 624
    with pytest.raises(UserError, match="split is train, dev, test or all"):
        rows_of_split("sample", "tests")


def test_the_rewrites_keep_their_own_parts() -> None:
    splits = load_splits("sample:rewrites")
    for name, exchanges in splits.items():
        assert exchanges == list(load_exchanges(f"sample:rewrites_{name}"))
    assert rows_of_split("sample:rewrites", "dev") == splits["dev"]
    together = list(load_exchanges("sample:rewrites"))
    assert len(together) == sum(map(len, splits.values()))


def test_replies_without_a_level_or_known_not_to_fit_are_left_out() -> None:
    labels = {mechanism: Label(1) for mechanism in MECHANISMS}
    whole = Exchange("I failed.", "Oh no.", labels=labels)
    misfit = Exchange("I failed.", "So nice!", labels=labels, extra={"contrast": {"fits": False}})
    fitting = Exchange("I failed.", "So sad.", labels=labels, extra={"contrast": {"fits": True}})
    assert known_levels([whole, Exchange("I failed.", "Hm."), misfit, fitting]) == [whole, fitting]


def test_a_bad_line_of_labels_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"text": "a"}\n{"text": "b"}\n')
    given = (str(tmp_path), "lines.jsonl", lambda row: row["text"], "`text`")
    assert labelled_lines(*given) == ["a", "b"]
    path.write_text('{"text": "a"}\n{"txt": "b"}\n')
    with pytest.raises(UserError, match=r"line 2: a line needs `text` \('text'\)\.$"):
        labelled_lines(*given)
    with pytest.raises(UserError, match="there is no such file; --data names the folder"):
        labelled_lines(str(tmp_path), "gone.jsonl", dict, "")
