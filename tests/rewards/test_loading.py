"""Functions of the user's, from files and modules, with an error for every way it can fail."""

import sys
from pathlib import Path

import pytest

from rewards.loading import load_function
from rewriting.errors import UserError

SHORTER = """
def shorter(completions, response_post, **_):
    return [len(r) - len(c) for c, r in zip(completions, response_post)]

FACTOR = 2
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my_rewards.py"
    path.write_text(SHORTER)
    return path


def test_a_function_from_a_file(file: Path) -> None:
    before = list(sys.path)
    shorter = load_function(f"{file}:shorter")
    assert shorter(completions=["ab"], response_post=["abcde"], seeker_post=["x"]) == [3]
    assert shorter.__name__ == "shorter"
    assert sys.path == before


def test_a_relative_path(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    assert load_function("my_rewards.py:shorter").__name__ == "shorter"


def test_a_function_from_a_module(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    package = file.parent / "some_package"
    package.mkdir()
    (package / "terms.py").write_text(SHORTER)
    assert load_function("some_package.terms:shorter").__module__ == "some_package.terms"
    assert load_function("math:sqrt")(4.0) == 2.0


def test_a_file_is_run_once_and_again_when_it_changed(tmp_path: Path) -> None:
    path = tmp_path / "counted.py"
    path.write_text("state = object()\ndef a(): return state\ndef b(): return state\n")
    first = load_function(f"{path}:a")()
    assert load_function(f"{path}:b")() is first
    path.write_text("def a(): return 'new'\n")
    assert load_function(f"{path}:a")() == "new"


def test_a_file_may_import_its_neighbours_and_define_dataclasses(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_mine.py").write_text("VALUE = 7\n")
    (tmp_path / "mine.py").write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "from neighbour_of_mine import VALUE\n"
        "@dataclass\nclass Term:\n    value: int = VALUE\n"
        "    def __call__(self, completions, **_): return [self.value for _ in completions]\n"
    )
    assert load_function(f"{tmp_path}/mine.py:Term")()(completions=["a"]) == [7]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("shorter", "'shorter' is no place of a function"),
        ("{file}:", "is no place of a function"),
        ("{folder}/missing.py:shorter", "missing.py: there is no such file"),
        ("{file}:shortr", "no function 'shortr'. Did you mean shorter?"),
        ("{file}:FACTOR", "'FACTOR' in .* is 2, which cannot be called"),
        ("no_such_package.terms:f", "there is no module 'no_such_package'"),
        ("math:sqroot", "math has no function 'sqroot'"),
    ],
)
def test_a_wrong_place_is_explained(file: Path, place: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_function(place.format(file=file, folder=file.parent))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def f(:\n", r"cannot be loaded: SyntaxError: .*\(line 1\)"),
        ("import no_such_library\n", r"ModuleNotFoundError: No module named 'no_such_library'"),
        ("x = 1\ny = x / 0\n", r"ZeroDivisionError: division by zero \(line 2\)"),
    ],
)
def test_a_file_that_fails_is_explained_with_its_line(
    tmp_path: Path, code: str, message: str
) -> None:
    path = tmp_path / "broken.py"
    path.write_text(code)
    for _ in range(2):  # a failed file must not be remembered as loaded
        with pytest.raises(UserError, match=message):
            load_function(f"{path}:f")
