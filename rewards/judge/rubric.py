"""A rubric: what a judge is told, what it is asked, and on which scale it answers.

A rubric is a TOML file. One that grades:

    method = "grade"
    scale = [0, 6]
    instruction = "You read replies in a peer-support forum."
    question = "Post: {seeker_post} Reply: {response} How empathic is it, from 0 to 6?"

In place of `question`, a table `[questions]` asks several; the grade is then their sum. One that
compares has `scale = ["A", "B"]` and the placeholders {seeker_post}, {response_a}, {response_b}.
One for likelihoods has `context`, with {seeker_post}, and `neutral`, without; a reply is scored
after each. A brace that is meant as such is doubled.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any, Final, Self

from rewards.judge.question import Question
from rewards.loading import suggestion
from rewriting.errors import UserError

SHIPPED: Final = Path(__file__).parent / "rubrics"
KEYS: Final = {
    "compare": ("method", "scale", "instruction", "question"),
    "grade": ("method", "scale", "instruction", "question", "questions"),
    "likelihood": ("method", "context", "neutral"),
}
PLACEHOLDERS: Final = {
    "compare": ("seeker_post", "response_a", "response_b"),
    "grade": ("seeker_post", "response"),
}
METHODS: Final = tuple(KEYS)


@dataclass(frozen=True, slots=True)
class Rubric:
    """A rubric that was read and checked.

    templates: the questions by name, each with the instruction before it. answers: what may be
    answered, in the order of the scale; none for likelihoods.
    """

    name: str
    method: str
    templates: Mapping[str, str]
    answers: tuple[str, ...] = ()

    @classmethod
    def read(cls, name: str, table: Mapping[str, Any]) -> Self:
        """Check a table of a TOML file."""
        method = table.get("method")
        if method not in METHODS:
            raise UserError(
                f"rubric {name}: method is {method!r}; write one of {', '.join(METHODS)}."
            )
        for key in table:
            if key not in KEYS[method]:
                raise UserError(
                    f"rubric {name}: a rubric to {method} has no {key!r}. "
                    f"{suggestion(key, list(KEYS[method]))}"
                )
        if method == "likelihood":
            return cls(name, method, _contexts(name, table))
        answers = _letters(name, table) if method == "compare" else _digits(name, table)
        return cls(name, method, _templates(name, method, table), answers)

    def question(self, of: str, **texts: str) -> Question:
        """The question of that name, filled in."""
        return Question(self.templates[of], tuple(texts.items()), self.answers)


def load_rubric(name: str, method: str) -> Rubric:
    """The rubric in a file, or a shipped one by name; "" is the shipped one of the method."""
    shipped = {path.stem: path for path in sorted(SHIPPED.glob("*.toml"))}
    path = shipped.get(name or method, Path(name or method).expanduser())
    if not path.is_file():
        raise UserError(
            f"there is no rubric {name!r}: neither a file nor a shipped one ({', '.join(shipped)})."
        )
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"rubric {name} cannot be read as TOML: {error}.") from error
    rubric = Rubric.read(name or method, table)
    if rubric.method != method:
        raise UserError(
            f"rubric {name} is one to {rubric.method}; with the method {method} use another one."
        )
    return rubric


def _text(name: str, table: Mapping[str, Any], key: str) -> str:
    text = table.get(key)
    if not isinstance(text, str) or not text.strip():
        raise UserError(f"rubric {name}: {key} is {text!r}; write a text.")
    return text.strip()


def _templates(name: str, method: str, table: Mapping[str, Any]) -> dict[str, str]:
    instruction = _text(name, table, "instruction")
    several = table.get("questions")
    if (several is None) == ("question" not in table):
        raise UserError(f"rubric {name}: write either `question` or a table `[questions]`.")
    if several is None:
        questions = {"question": _text(name, table, "question")}
    elif isinstance(several, dict) and several:
        questions = {key: _text(name, several, key) for key in several}
    else:
        raise UserError(f"rubric {name}: questions is {several!r}; write a table of texts.")
    templates = {key: f"{instruction}\n\n{text}" for key, text in questions.items()}
    for key, template in templates.items():
        _check_placeholders(name, key, template, PLACEHOLDERS[method])
    return templates


def _contexts(name: str, table: Mapping[str, Any]) -> dict[str, str]:
    """Both contexts, each followed by the reply. Line breaks at their ends count, so they stay."""
    contexts: dict[str, str] = {}
    for key, placeholders in (("context", ("seeker_post",)), ("neutral", ())):
        _text(name, table, key)
        _check_placeholders(name, key, table[key], placeholders)
        contexts[key] = table[key] + "{response}"
    return contexts


def _check_placeholders(name: str, key: str, template: str, wanted: tuple[str, ...]) -> None:
    try:
        parsed = [piece for piece in Formatter().parse(template) if piece[1] is not None]
    except ValueError as error:
        raise UserError(
            f"rubric {name}: the braces of {key} do not match ({error}); double a brace that is "
            "no placeholder."
        ) from error
    shown = ", ".join(f"{{{one}}}" for one in wanted) or "none"
    for _, placeholder, layout, conversion in parsed:
        if placeholder not in wanted or layout or conversion:
            raise UserError(
                f"rubric {name}: {key} holds the placeholder {{{placeholder}}}; there is: {shown}."
            )
    missing = [one for one in wanted if one not in {piece[1] for piece in parsed}]
    if missing:
        raise UserError(
            f"rubric {name}: {key} lacks the placeholder {{{missing[0]}}}; it needs {shown}."
        )


def _letters(name: str, table: Mapping[str, Any]) -> tuple[str, ...]:
    scale = table.get("scale", ["A", "B"])
    fits = isinstance(scale, list) and len(scale) == 2 and scale[0] != scale[1]
    if not fits or not all(isinstance(one, str) and len(one) == 1 for one in scale):
        raise UserError(
            f'rubric {name}: scale is {scale!r}; to compare, write two characters, as ["A", "B"].'
        )
    return tuple(scale)


def _digits(name: str, table: Mapping[str, Any]) -> tuple[str, ...]:
    scale = table.get("scale")
    if isinstance(scale, list) and len(scale) == 2 and all(type(one) is int for one in scale):
        least, greatest = scale
        if 0 <= least < greatest <= 9:
            return tuple(str(grade) for grade in range(least, greatest + 1))
    raise UserError(
        f"rubric {name}: scale is {scale!r}; to grade, write the least and the greatest grade, "
        "whole numbers from 0 to 9, as [0, 6]. Every grade has to be one digit."
    )
