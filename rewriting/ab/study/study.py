"""What a study is: the pairs to judge, who judges which, and the rules, all fixed in advance.

A study is frozen by `rewriting ab create`: STUDY_DIR/study.json holds it with a checksum, and
nothing writes to that file again. What raters do is in STUDY_DIR/votes.sqlite (store.py).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from rewriting.errors import UserError
from rewriting.runtime.files.disk import write_json
from rewriting.runtime.files.json_files import parse_json

STUDY_FILE: Final = "study.json"
VOTES_FILE: Final = "votes.sqlite"
FORMAT: Final = 1
TIE: Final = "tie"
"""The winner of a vote that says "no difference"; no system may be called so."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One question that is asked about every pair."""

    name: str
    question: str


CRITERIA: Final = (
    Criterion("empathic", "Which reply is more empathic?"),
    Criterion("fluent", "Which reply reads more fluently?"),
    Criterion("specific", "Which reply is more specific to this post?"),
)


@dataclass(frozen=True, slots=True)
class Item:
    """A pair of replies to judge.

    id: random-looking, derived from the study's seed; says nothing about the systems.
    replies: system → reply, exactly two.
    kind: item | practice | attention | repeat. Only `item` counts for the result.
    repeat_of: the id of the item that a repeat shows again, with its sides swapped.
    expected: of an attention check (and a practice pair): the key of the reply that an attentive
        rater prefers. Such pairs come from no system; their keys are `better` and `worse`.
    exchange_id: items on the same exchange form a cluster.
    history: earlier turns of the conversation, oldest first.
    note: what a rater reads after a practice pair.
    """

    id: str
    seeker_post: str
    replies: Mapping[str, str]
    kind: str = "item"
    repeat_of: str = ""
    expected: str = ""
    exchange_id: str = ""
    history: tuple[str, ...] = ()
    note: str = ""

    def other(self, system: str) -> str:
        """The system that stands against this one."""
        (other,) = (name for name in self.replies if name != system)
        return other


@dataclass(frozen=True, slots=True)
class Assignment:
    """An item that falls to a rater, and the system whose reply is shown as A (left)."""

    item: str
    left: str


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Whose votes are left out of the main result. Fixed before the first vote.

    minimum_attention: the smallest share of attention checks answered as expected.
    minimum_seconds: the smallest median time for a pair.
    """

    minimum_attention: float = 0.75
    minimum_seconds: float = 3.0


@dataclass(frozen=True, slots=True)
class Study:
    """A frozen study. Every field but the first has a default, so that tests can make small ones.

    items: by id, of every kind.
    assignments: rater number (from 1) → what falls to that rater, in order. Practice comes first.
    left_out: why exchanges of the input are not in the study → how many.
    unsafe_candidates: whether replies are shown that the output gate has not seen, as the
        researcher wished; studies of earlier releases, which no gate has seen, do not say.
    """

    systems: tuple[str, ...]
    items: Mapping[str, Item] = field(default_factory=dict)
    assignments: Mapping[int, tuple[Assignment, ...]] = field(default_factory=dict)
    title: str = "Comparing replies"
    seed: int = 0
    data_hash: str = ""
    criteria: tuple[Criterion, ...] = CRITERIA
    allow_ties: bool = True
    votes_per_item: int = 1
    consent: str = ""
    instructions: str = ""
    help_resources: tuple[str, ...] = ()
    exclusion: Exclusion = Exclusion()
    left_out: Mapping[str, int] = field(default_factory=dict)
    unsafe_candidates: bool | None = None

    @property
    def raters(self) -> tuple[int, ...]:
        """The raters that the study was planned for; more can be added while it runs."""
        return tuple(self.assignments)

    def of_kind(self, kind: str) -> list[Item]:
        return [item for item in self.items.values() if item.kind == kind]


@dataclass(frozen=True, slots=True)
class Vote:
    """One criterion of one item as judged by one rater.

    winner: a system's name (`better` or `worse` on attention checks), or "tie".
    seconds: from the page being sent to the vote arriving, by the server's clock.
    time: the server's, ISO 8601 in UTC. revision: 0, then one more for each change of mind.
    """

    rater: int
    item: str
    criterion: str
    winner: str
    left: str
    right: str
    seconds: float
    time: str
    revision: int = 0
    comment: str = ""
    harmful: bool = False


def study_json(study: Study) -> dict[str, Any]:
    """The study as JSON, without its checksum."""
    row = asdict(study)
    row["items"] = list(row["items"].values())
    row["assignments"] = {
        str(rater): [[one.item, one.left] for one in assigned]
        for rater, assigned in study.assignments.items()
    }
    return {"format": FORMAT, **row}


def checksum(row: Mapping[str, Any]) -> str:
    """The SHA-256 of the JSON, whatever its spaces and line ends are."""
    text = json.dumps(row, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def save_study(study: Study, folder: Path) -> None:
    """Freeze a study in a folder. A study, or votes, that are there already stay."""
    path = folder / STUDY_FILE
    if path.exists():
        raise UserError(f"{path} exists, and a study is frozen: give another --output.")
    if (folder / VOTES_FILE).exists():
        raise UserError(
            f"{folder / VOTES_FILE} holds the votes of another study: give another --output."
        )
    row = study_json(study)
    write_json(path, row | {"sha256": checksum(row)})


def saved_checksum(folder: Path) -> str | None:
    """The checksum in a folder's study file; empty where unreadable, None where there is none."""
    try:
        return str(parse_json((folder / STUDY_FILE).read_text(encoding="utf-8"))["sha256"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def load_study(folder: str | Path) -> Study:
    """The study of a folder; one that was changed after it was frozen is refused."""
    path = Path(folder).expanduser() / STUDY_FILE
    if not path.is_file():
        raise UserError(f"{folder}: there is no {STUDY_FILE}. Make one with rewriting ab create.")
    try:
        row = parse_json(path.read_text(encoding="utf-8"))
        expected = row.pop("sha256")
        if row["format"] != FORMAT:
            raise UserError(f"{path} has the format {row['format']}, not {FORMAT}.")
        if checksum(row) != expected:
            raise UserError(f"{path} was changed after it was frozen: restore it from a backup.")
        return study_of(row)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is not a study: {error!r}.") from error


def study_of(row: Mapping[str, Any]) -> Study:
    """The inverse of `study_json`."""
    items = [Item(**{**one, "history": tuple(one["history"])}) for one in row["items"]]
    fields = {key: value for key, value in row.items() if key != "format"}
    return Study(
        **fields
        | {
            "systems": tuple(row["systems"]),
            "items": {item.id: item for item in items},
            "assignments": {
                int(rater): tuple(Assignment(*one) for one in assigned)
                for rater, assigned in row["assignments"].items()
            },
            "criteria": tuple(Criterion(**one) for one in row["criteria"]),
            "help_resources": tuple(row["help_resources"]),
            "exclusion": Exclusion(**row["exclusion"]),
        }
    )
