"""The small grammar in which a chat model edits a reply, and how its answer is read.

    INSERT 2: You must be tired.     a new sentence before sentence 2
    REPLACE 1: I hear you.           a new sentence in place of sentence 1
    KEEP                             the reply stays as it is

Sentences are numbered from 1, as a person reads them, and every number is one of the original
reply, however many edits there are. In a reply of n sentences, INSERT n + 1 appends. So INSERT i
is `Edit.insert(i - 1)` and REPLACE i is `Edit.replace(i - 1)`, each moved on by the insertions that
stand before it, because an Edit counts the sentences at the time it is applied.

An answer is read whole or not at all: one wrong line, and the reply is kept. Lines that are no edit
("Here are my edits:") are passed over, as long as there is one that is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rewriting import Edit, Exchange, Rewrite, apply_edits, split_sentences
from rewriting.edits import Operation
from rewriting.sentences import STOPS

EDIT_LINE: Final = re.compile(
    r"[\s>*`_#•-]*(?:\d+[.)]\s+)?[*`_]*"  # a list or Markdown around it
    r"(?P<operation>insert|replace)\s+(?P<number>-?\d+)[*`_]*\s*(?:[:)–—]|[.-](?!\d))[*`_]*"
    r"(?P<sentence>.*)",
    re.IGNORECASE,
)
KEEP_LINE: Final = re.compile(r"\W*keep\W*", re.IGNORECASE)
QUOTATIONS: Final = (('"', '"'), ("“", "”"), ("«", "»"), ("'", "'"), ("‘", "’"))
CLOSERS: Final = "\"'”’»)]*_`\ufe0f\u200d"

NO_EDIT: Final = "no line is an edit"
NO_PLACE: Final = "there is no such sentence"
EMPTY: Final = "a sentence is empty"
CUT_OFF: Final = "the answer is cut off"
KEEPS_AND_EDITS: Final = "it keeps and edits"
TWO_IN_ONE_PLACE: Final = "two sentences replace one"


@dataclass(frozen=True, slots=True)
class Parsed:
    """The edits of an answer in the order in which they are applied; none where it keeps.

    problem: why the answer could not be read, empty where it could. The reply is then kept.
    """

    edits: tuple[Edit, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the grammar, its place counted from 0 in the original reply."""

    operation: Operation
    place: int
    sentence: str

    @property
    def order(self) -> tuple[int, bool]:
        """By place; what is inserted before a sentence stands before what replaces it."""
        return self.place, self.operation is Operation.REPLACE


def parse_edits(answer: str, sentences: Sequence[str]) -> Parsed:
    """Read an answer to the sentences of a reply.

    A last line that does not end as a sentence does was cut off by the limit of tokens, and is left
    out. A line that stands there twice counts once, and a sentence that replaces itself not at all.
    """
    texts = [text for text in answer.splitlines() if text.strip()]
    keeps = any(KEEP_LINE.fullmatch(text) for text in texts)
    matches = [match for text in texts if (match := EDIT_LINE.fullmatch(text))]
    cut = bool(matches) and matches[-1].string == texts[-1] and _is_cut_off(answer)
    if cut:
        matches = matches[:-1]
    lines = list(dict.fromkeys(_line(match) for match in matches))  # each once, in their order
    problem = _problem(lines, keeps, cut, len(sentences))
    if problem:
        return Parsed(problem=problem)
    return Parsed(_applied_in_turn([line for line in lines if not _is_idle(line, sentences)]))


def _line(match: re.Match[str]) -> _Line:
    sentence = " ".join(unquoted(match["sentence"]).split())
    return _Line(Operation(match["operation"].lower()), int(match["number"]) - 1, sentence)


def _problem(lines: Sequence[_Line], keeps: bool, cut: bool, num_sentences: int) -> str:
    if not lines:
        return "" if keeps and not cut else CUT_OFF if cut else NO_EDIT
    if keeps:
        return KEEPS_AND_EDITS
    for line in lines:
        places = num_sentences + (line.operation is Operation.INSERT)
        if not 0 <= line.place < places:
            return NO_PLACE
        if not any(character.isalnum() for character in line.sentence):
            return EMPTY
    replaced = [line.place for line in lines if line.operation is Operation.REPLACE]
    return TWO_IN_ONE_PLACE if len(set(replaced)) < len(replaced) else ""


def _is_idle(line: _Line, sentences: Sequence[str]) -> bool:
    """Whether it replaces a sentence by the same one: that would be paid for as a new one."""
    if line.operation is not Operation.REPLACE:
        return False
    return line.sentence == " ".join(sentences[line.place].split())


def _applied_in_turn(lines: Sequence[_Line]) -> tuple[Edit, ...]:
    """Edits from left to right, their positions counted when each is applied."""
    edits: list[Edit] = []
    inserted = 0
    for line in sorted(lines, key=lambda line: line.order):
        edits.append(Edit(line.operation, line.place + inserted, line.sentence))
        inserted += line.operation is Operation.INSERT
    return tuple(edits)


def unquoted(text: str) -> str:
    """A sentence without the Markdown and the quotation marks that stand around it."""
    text = text.strip().strip("*`_").strip()
    for opening, closing in QUOTATIONS:
        inside = text[1:-1]
        if len(text) > 1 and text[0] == opening and text[-1] == closing:
            if opening not in inside or opening != closing:
                return inside.strip()
        elif text.startswith(opening) and closing not in text[1:] and opening not in "'‘":
            return text[1:].strip()  # never closed; a single one may be 'cause
    return text


def _is_cut_off(answer: str) -> bool:
    """Whether the end of an answer is not the end of a sentence: a stop, an emoji or a new line."""
    if answer.endswith("\n"):
        return False
    core = answer.rstrip().rstrip(CLOSERS)
    return not core or not (core[-1] in STOPS or unicodedata.category(core[-1]).startswith("S"))


def write_edits(edits: Sequence[Edit], num_sentences: int) -> str:
    """The answer that says these edits, which are applied one after the other.

    What a later edit replaced is left out: only what stands in the end can be said.
    """
    items: list[tuple[int | None, str]] = [(place, "") for place in range(num_sentences)]
    for edit in edits:
        if edit.position is None:
            continue
        if edit.operation is Operation.INSERT:
            items.insert(edit.position, (None, edit.sentence))
        else:
            items[edit.position] = (items[edit.position][0], edit.sentence)
    lines, passed = [], 0  # how many of the original sentences stand before
    for place, sentence in items:
        verb = "INSERT" if place is None else "REPLACE"
        if sentence:
            lines.append(f"{verb} {passed + 1}: {' '.join(sentence.split())}")
        passed += place is not None
    return "\n".join(lines) or "KEEP"


def rewrite_of(exchange: Exchange, answer: str) -> tuple[Rewrite, str]:
    """The rewrite that an answer leads to, and what is wrong with the answer, if anything is."""
    parsed = parse_edits(answer, split_sentences(exchange.response_post).texts)
    text = apply_edits(exchange.response_post, parsed.edits)
    return Rewrite(exchange, text, parsed.edits), parsed.problem
