"""A study file is frozen: what is saved comes back, and a changed one is refused."""

import json
from pathlib import Path

import pytest

from rewriting.ab.study.study import Item, load_study, save_study
from rewriting.errors import UserError
from tests.rewriting.ab.toys import toy_study


def test_a_saved_study_comes_back(tmp_path: Path) -> None:
    study = toy_study(seed=3, title="Ünïcode", consent="Yes?")
    save_study(study, tmp_path / "new")
    assert load_study(tmp_path / "new") == study


def test_a_frozen_study_stays(tmp_path: Path) -> None:
    save_study(toy_study(), tmp_path)
    with pytest.raises(UserError, match="frozen"):
        save_study(toy_study(seed=2), tmp_path)


def test_a_changed_study_is_refused(tmp_path: Path) -> None:
    save_study(toy_study(), tmp_path)
    path = tmp_path / "study.json"
    row = json.loads(path.read_text())
    row["exclusion"]["minimum_attention"] = 0.0
    path.write_text(json.dumps(row))
    with pytest.raises(UserError, match="was changed after it was frozen"):
        load_study(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"sha256": "x", "format": 1}'])
def test_what_is_no_study_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(UserError, match=r"study\.json"):
        load_study(tmp_path)


def test_a_folder_without_a_study(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="rewriting ab create"):
        load_study(tmp_path)


def test_the_other_system() -> None:
    assert Item("1", "post", {"x": "a", "y": "b"}).other("y") == "x"
