"""Datasets of the datasets library, in and out."""

import pytest

from rewriting import MECHANISMS, Edit, Exchange, Label, Rewrite, UserError
from rewriting.data import BadRow, from_dataset, load_exchanges, to_dataset

PLAIN = Exchange("I failed.", "Try again.", id="1")
FULL = Exchange(
    "It rains.",
    "Oh dear. Why?",
    id="2",
    seeker_id="s",
    history=("Hi.", "Hello."),
    labels={MECHANISMS[0]: Label(2, ("Oh dear.",)), MECHANISMS[2]: Label(1)},
    extra={"emotion": "sad"},
)


def test_exchanges_come_back_as_they_were() -> None:
    from datasets import Dataset

    dataset = to_dataset([PLAIN, FULL])
    assert isinstance(dataset, Dataset)
    assert list(from_dataset(dataset)) == [PLAIN, FULL]
    assert list(load_exchanges(dataset)) == [PLAIN, FULL]
    assert list(from_dataset(dataset.to_iterable_dataset())) == [PLAIN, FULL]


def test_rewrites_are_exchanges_with_what_became_of_them() -> None:
    edited = Rewrite(PLAIN, "Oh. Try again.", (Edit.insert(0, "Oh."),))
    kept = Rewrite(FULL, FULL.response_post, reasons=('explicit: "x"',))
    dataset = to_dataset([edited, kept])
    assert dataset["rewritten_response"][:] == ["Oh. Try again.", "Oh dear. Why?"]
    assert dataset[0]["edits"] == [{"operation": "insert", "position": 0, "sentence": "Oh."}]
    assert [row["reasons"] for row in dataset] == [[], ['explicit: "x"']]
    again = list(from_dataset(dataset))
    assert [one.id for one in again] == ["1", "2"]
    assert again[1].labels == FULL.labels
    assert again[1].extra["rewritten_response"] == "Oh dear. Why?"


def test_rows_without_an_id_are_numbered_and_limited() -> None:
    rows = [{"seeker_post": f"post {n}", "response_post": "reply"} for n in range(3)]
    assert [one.id for one in from_dataset(rows, limit=2)] == ["dataset:1", "dataset:2"]
    assert [one.id for one in load_exchanges(rows, limit=1)] == ["dataset:1"]
    assert [one.id for one in from_dataset(rows, name="mine")] == ["mine:1", "mine:2", "mine:3"]


def test_mistakes_are_named() -> None:
    from datasets import Dataset, DatasetDict

    good = Dataset.from_dict({"seeker_post": ["a"], "response_post": ["b"]})
    with pytest.raises(UserError, match=r"a mapping \(train\), not rows. Take one of its splits"):
        from_dataset(DatasetDict(train=good))
    with pytest.raises(UserError, match=r"dataset has no column 'seeker_post'.*post, response"):
        list(from_dataset(Dataset.from_dict({"post": ["a"], "response_post": ["b"]})))
    with pytest.raises(UserError, match="dataset, line 2: seeker_post is blank"):
        list(from_dataset([{"seeker_post": s, "response_post": "b"} for s in ("a", " ")]))
    with pytest.raises(UserError, match="different kinds"):
        to_dataset([Exchange("a", "b", extra={"x": 1}), Exchange("a", "b", extra={"x": "one"})])
    bad: list[BadRow] = []
    rows = [{"seeker_post": "a", "response_post": "b"}, ["no", "mapping"]]
    assert len(list(load_exchanges(rows, on_bad_row=bad.append))) == 1  # type: ignore[arg-type]
    assert str(bad[0]) == "dataset, line 2: a mapping of columns is needed, not list"
