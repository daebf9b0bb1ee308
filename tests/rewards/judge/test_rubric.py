"""Rubrics: the shipped ones, one's own, and what is said of a wrong one."""

from pathlib import Path

import pytest

from rewards.judge.question import Question
from rewards.judge.rubric import SHIPPED, Rubric, load_rubric
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS

GRADE = """
method = "grade"
scale = [1, 5]
instruction = "Be strict {{really}}."
question = "{seeker_post} | {response} | 1 to 5?"
"""


def write(folder: Path, text: str) -> str:
    path = folder / "own.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.toml")), ids=lambda path: path.stem)
def test_the_shipped_rubrics_load(path: Path) -> None:
    import tomllib

    method = tomllib.loads(path.read_text(encoding="utf-8"))["method"]
    assert load_rubric(path.stem, method).method == method


def test_the_default_rubric_of_each_method() -> None:
    assert load_rubric("", "compare").answers == ("A", "B")
    assert load_rubric("", "grade").answers == tuple("0123456")
    assert tuple(load_rubric("mechanisms", "grade").templates) == MECHANISMS
    assert load_rubric("", "likelihood").templates["neutral"].endswith("answered:\n{response}")


def test_a_rubric_of_ones_own_is_filled_in(tmp_path: Path) -> None:
    rubric = load_rubric(write(tmp_path, GRADE), "grade")
    assert rubric.answers == ("1", "2", "3", "4", "5")
    question = rubric.question("question", seeker_post="I {fell}.", response="Oh {response}.")
    # Braces of a post are no placeholders, doubled ones of the rubric are single ones.
    assert question.prompt == "Be strict {really}.\n\nI {fell}. | Oh {response}. | 1 to 5?"


def test_questions_differ_by_model_rubric_texts_and_answers() -> None:
    question = Question("{response}?", (("response", "Oh."),), ("0", "1"))
    others = [
        Question("{response}!", (("response", "Oh."),), ("0", "1")),
        Question("{response}?", (("response", "Ah."),), ("0", "1")),
        Question("{response}?", (("response", "Oh."),), ("0", "2")),
    ]
    assert question.key("a") == Question(*vars_of(question)).key("a")
    assert len({question.key("a"), question.key("b"), *(one.key("a") for one in others)}) == 5


def vars_of(question: Question) -> tuple[str, tuple[tuple[str, str], ...], tuple[str, ...]]:
    return question.template, question.texts, question.answers


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"grade"', '"rank"', "method is 'rank'; write one of compare, grade, likelihood"),
        ("scale = [1, 5]", "", "scale is None; to grade, write the least and the greatest"),
        ("[1, 5]", "[0, 10]", r"scale is \[0, 10\].*whole numbers from 0 to 9"),
        ("[1, 5]", "[5, 1]", r"scale is \[5, 1\]"),
        ("[1, 5]", '["A", "B"]', r"scale is \['A', 'B'\]; to grade"),
        ("{response}", "{reply}", r"holds the placeholder \{reply\}; there is: \{seeker_post\}"),
        ("{response}", "{response!r}", r"holds the placeholder \{response\}"),
        ("{seeker_post} | ", "", r"question lacks the placeholder \{seeker_post\}; it needs"),
        ("{response}", "{}", r"holds the placeholder \{\}"),
        ("{response}", "{response", "the braces of question do not match"),
        ("instruction =", "instructions =", "has no 'instructions'. Did you mean instruction?"),
        ("question =", "ask =", "a rubric to grade has no 'ask'"),
        ('"Be strict {{really}}."', "3", "instruction is 3; write a text"),
        ("question =", "#", "write either `question` or a table"),
        ("question =", "questions =", "write a table of texts"),
        ("[1, 5]", "[1, 5", "cannot be read as TOML"),
    ],
)
def test_a_wrong_rubric_is_explained(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GRADE
    with pytest.raises(UserError, match=message):
        load_rubric(write(tmp_path, GRADE.replace(old, new)), "grade")


def test_rubrics_to_compare_and_for_likelihoods_are_checked_too() -> None:
    texts = {"instruction": "x", "question": "{seeker_post}{response_a}"}
    with pytest.raises(UserError, match=r"lacks the placeholder \{response_b\}"):
        Rubric.read("own", {"method": "compare", **texts})
    with pytest.raises(UserError, match="two characters"):
        Rubric.read("own", {"method": "compare", "scale": ["first", "second"], **texts})
    with pytest.raises(UserError, match=r"neutral holds the placeholder \{seeker_post\}"):
        Rubric.read(
            "own", {"method": "likelihood", "context": "{seeker_post}:", "neutral": "{seeker_post}"}
        )


def test_a_rubric_belongs_to_one_method() -> None:
    with pytest.raises(UserError, match="rubric compare is one to compare; with the method grade"):
        load_rubric("compare", "grade")
    with pytest.raises(UserError, match=r"no rubric 'gone.toml'.*compare, grade, likelihood, mech"):
        load_rubric("gone.toml", "grade")
