"""Appraised exchanges: what a person and their peer say of a situation, and where the two meet.

ALOE's format (*Modeling Empathetic Alignment in Conversation*, arXiv 2405.00948): records of JSON
with target_text, observer_text, full_text = "target:\\n\\n…\\n\\nobserver:\\n\\n…", spans
[start, end, label] and alignments [[target start, end], [observer start, end]], all offsets into
full_text. Here offsets are into the two texts themselves, and an alignment is a pair of spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from rewriting.data.formats import APPRAISALS as APPRAISALS
from rewriting.data.load import SAMPLE, SAMPLE_SPLITS
from rewriting.data.rows import BadRow, OnBadRow, read_rows, stop_at_bad_row
from rewriting.data.split import Split, split_of
from rewriting.errors import UserError
from rewriting.exchange import Exchange
from rewriting.runtime.files.json_files import shown
from rewriting.sentences import split_sentences

NO_APPRAISAL: Final = "None"
"""What is said of a sentence that carries none: a question, a greeting, a fact of no one's."""

Role = Literal["target", "observer"]
"""Who speaks: the person whose situation it is, or the peer who answers."""

ROLES: Final[tuple[Role, ...]] = get_args(Role)
SAMPLE_FILE: Final = SAMPLE / "appraisals.jsonl"
HEADS: Final = {"target": "target:\n\n", "observer": "\n\nobserver:\n\n"}


@dataclass(frozen=True, slots=True)
class Span:
    """A part of one text, and the appraisal that it makes."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class AppraisedExchange:
    """Two texts, their spans in order, and alignments: (place of a target's span, an observer's).

    split: the part the data itself puts it in, or the one that `split_of` gives.
    """

    target_text: str
    observer_text: str
    target_spans: tuple[Span, ...]
    observer_spans: tuple[Span, ...]
    alignments: frozenset[tuple[int, int]]
    split: Split
    id: str = ""
    seeker_id: str = ""

    def text(self, role: Role) -> str:
        return self.target_text if role == "target" else self.observer_text

    def spans(self, role: Role) -> tuple[Span, ...]:
        return self.target_spans if role == "target" else self.observer_spans

    def words(self, role: Role, place: int) -> str:
        """The text of a span."""
        span = self.spans(role)[place]
        return self.text(role)[span.start : span.end]


def load_appraisals(
    source: str | Path, *, on_bad_row: OnBadRow = stop_at_bad_row
) -> Iterator[AppraisedExchange]:
    """Stream the appraised exchanges of a file in ALOE's format, or of `sample[:split]`."""
    name, _, part = str(source).partition(":")
    bundled = name == "sample" and not Path(source).exists()
    if bundled and part not in ("", *SAMPLE_SPLITS):
        raise UserError(f"{source}: the sample has the splits {', '.join(SAMPLE_SPLITS)}.")
    for row in read_rows(SAMPLE_FILE if bundled else Path(source).expanduser(), on_bad_row):
        try:
            exchange = exchange_of(row.cells)
        except (KeyError, TypeError, ValueError) as error:
            reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            on_bad_row(BadRow(row.file, row.line, reason, row.cells))
            continue
        if not part or exchange.split == part:
            yield exchange


def exchange_of(cells: Mapping[str, Any]) -> AppraisedExchange:
    """One record of ALOE's; a KeyError, TypeError or ValueError says what is wrong with it."""
    texts = {role: cells[f"{role}_text"] for role in ROLES}
    for role, text in texts.items():
        if not isinstance(text, str):
            raise TypeError(f"{role}_text is {shown(text)}, not text")
    full = "".join(HEADS[role] + texts[role] for role in ROLES)
    if cells["full_text"] != full:
        raise ValueError("full_text is not 'target:', the target_text, 'observer:', the other")
    starts = {
        "target": len(HEADS["target"]),
        "observer": len(full) - len(texts["observer"]),
    }
    spans: dict[str, list[Span]] = {role: [] for role in ROLES}
    for start, end, label in sorted(tuple(span) for span in cells["spans"]):
        if not isinstance(start, int) or not isinstance(end, int):
            raise TypeError(f"the span {[start, end]} is not of whole numbers")
        role = "observer" if start >= starts["observer"] else "target"
        begin = start - starts[role]
        if label not in APPRAISALS:
            raise ValueError(f"there is no appraisal {shown(label)}")
        if not 0 <= begin < end - starts[role] <= len(texts[role]):
            raise ValueError(f"the span {[start, end]} is not inside a text")
        spans[role].append(Span(begin, end - starts[role], label))
    alignments = frozenset(
        (
            _place(spans["target"], starts["target"], target),
            _place(spans["observer"], starts["observer"], observer),
        )
        for target, observer in map(_pair, cells["alignments"])
    )
    seeker = str(cells.get("seeker_id") or "")
    split = cells.get("split") or split_of(Exchange(texts["target"], "", seeker_id=seeker))
    if split not in SAMPLE_SPLITS:
        raise ValueError(f"split is one of {', '.join(SAMPLE_SPLITS)}, not {shown(split)}")
    return AppraisedExchange(
        texts["target"],
        texts["observer"],
        tuple(spans["target"]),
        tuple(spans["observer"]),
        alignments,
        split,
        str(cells.get("id") or ""),
        seeker,
    )


def _pair(alignment: Any) -> Sequence[Any]:
    if not isinstance(alignment, (list, tuple)) or len(alignment) != 2:
        raise ValueError(f"the alignment {shown(alignment)} is not a pair of spans")
    return alignment


def _place(spans: Sequence[Span], offset: int, bounds: Sequence[int]) -> int:
    """Which of the spans an alignment means."""
    start, end = (bound - offset for bound in bounds)
    for place, span in enumerate(spans):
        if (span.start, span.end) == (start, end):
            return place
    raise ValueError(f"the alignment of {list(bounds)} names no span")


def sentence_bounds(text: str) -> list[tuple[int, int]]:
    """Where the sentences of a text start and end."""
    sentences = split_sentences(text)
    bounds, at = [], len(sentences.gaps[0])
    for sentence, gap in zip(sentences.texts, sentences.gaps[1:], strict=True):
        bounds.append((at, at + len(sentence)))
        at += len(sentence) + len(gap)
    return bounds
