"""A sheet for raters without a server: one HTML file that works offline and gives a results file.

The sheet is as blind as the served pages: it holds posts, replies A and B, and opaque ids, and
neither names nor which pairs are checks or repeats. What A and B stand for is in the study alone,
so a results file means something only there. A key that follows from the study's secret and the
rater's number keeps results of another study, or under another number, out.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rewriting.ab.study.store import Store
from rewriting.ab.study.study import TIE, Assignment, Study, Vote
from rewriting.errors import UserError

HERE = Path(__file__).parent
FORMAT = 1
LARGEST_FILE = 50_000_000
LONGEST_COMMENT = 2000
LONGEST_SECONDS = 7 * 24 * 3600.0


def assigned_to(study: Study, store: Store, rater: int) -> tuple[Assignment, ...]:
    """What falls to a rater now: as planned, less what was handed over, plus what came."""
    handovers = store.handovers()
    gone = {one.item for one in handovers if one.from_rater == rater}
    came = [Assignment(one.item, one.left) for one in handovers if one.to_rater == rater]
    return tuple(one for one in (*study.assignments[rater], *came) if one.item not in gone)


def sheet_key(store: Store, rater: int) -> str:
    secret = store.setting("secret") or ""
    return hmac.new(secret.encode(), f"sheet {rater}".encode(), hashlib.sha256).hexdigest()[:32]


def sheet_data(study: Study, store: Store, rater: int) -> dict[str, Any]:
    """Everything that the sheet of a rater holds."""
    if rater not in study.assignments:
        raise UserError(
            f"the study has no rater {rater}: it has 1 to {max(study.raters, default=0)}."
        )
    pages = []
    for one in assigned_to(study, store, rater):
        item = study.items[one.item]
        page: dict[str, Any] = {
            "item": item.id,
            "history": list(item.history),
            "post": item.seeker_post,
            "a": item.replies[one.left],
            "b": item.replies[item.other(one.left)],
        }
        if item.kind == "practice":
            page |= {"practice": True, "note": item.note}
        pages.append(page)
    return {
        "format": FORMAT,
        "rater": rater,
        "key": sheet_key(store, rater),
        "ties": study.allow_ties,
        "criteria": [{"name": one.name, "question": one.question} for one in study.criteria],
        "pages": pages,
    }


def render_sheet(study: Study, store: Store, rater: int) -> str:
    """The file of a rater."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (HERE / "sheet.js").read_text(encoding="utf-8")
    data = json.dumps(sheet_data(study, store, rater), ensure_ascii=True)
    return environment.get_template("sheet.html").render(
        title=study.title,
        rater=rater,
        consent=study.consent,
        instructions=study.instructions,
        help_resources=study.help_resources,
        style=(HERE / "pages" / "style.css").read_text(encoding="utf-8"),
        script=script,
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=Markup(data.replace("<", "\\u003c")),  # no tag can end the element it stands in
    )


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of the answers of a results file."""

    new: int = 0
    known: int = 0
    outdated: int = 0
    handed_over: int = 0


def import_results(study: Study, store: Store, path: Path) -> Imported:
    """Take the answers of a results file into the log. Twice is once.

    The whole file is checked before anything is written. An answer that is there already, or is
    older than the one that is, changes nothing; a newer one is a revision.
    """
    row = read_results(path)
    rater = row.get("rater")
    if type(rater) is not int or rater not in study.assignments:
        raise UserError(f"{path}: the study has no rater {rater!r}.")
    if not hmac.compare_digest(
        str(row.get("key")).encode("utf-8", "replace"), sheet_key(store, rater).encode()
    ):
        raise UserError(f"{path}: these are not results of a sheet of this study and rater.")
    answers = row.get("answers")
    if not isinstance(answers, list):
        raise UserError(f"{path}: there is no list of answers.")
    planned = {one.item: one for one in assigned_to(study, store, rater)}
    gone = {one.item for one in store.handovers() if one.from_rater == rater}
    ballots = []
    for number, answer in enumerate(answers, start=1):
        where = f"{path}, answer {number}"
        item = answer.get("item") if isinstance(answer, dict) else None
        if not isinstance(item, str) or (item not in planned and item not in gone):
            raise UserError(f"{where}: the pair {item!r} was not given to rater {rater}.")
        if item not in gone:
            ballots.append(read_answer(study, planned[item], rater, answer, where))
    if len({ballot[0].item for ballot in ballots}) < len(ballots):
        raise UserError(f"{path}: a pair is answered twice.")
    counts = {"new": 0, "known": 0, "outdated": 0}
    with store.transaction():
        for ballot in ballots:
            counts[_take(store, ballot)] += 1
        if counts["new"]:
            _note_events(store, rater)
    return Imported(**counts, handed_over=len(answers) - len(ballots))


def _take(store: Store, ballot: Sequence[Vote]) -> str:
    """Append a ballot unless it, or a newer one, is in the log."""
    first = ballot[0]
    content = [[v.criterion, v.winner, v.seconds, v.time, v.comment, v.harmful] for v in ballot]
    text = json.dumps([first.rater, first.item, content])
    key = f"sheet-{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    if store.has_key(key):
        return "known"
    before = store.votes(rater=first.rater, item=first.item)
    if before and datetime.fromisoformat(before[0].time) >= datetime.fromisoformat(first.time):
        return "outdated"
    revision = before[0].revision + 1 if before else 0
    store.append([replace(vote, revision=revision) for vote in ballot], key=key)
    return "new"


def _note_events(store: Store, rater: int) -> None:
    """A sheet begins with consent and instructions: the log says so, once."""
    known = {event.kind for event in store.events(rater)}
    for kind in ("consent", "instructed"):
        if kind not in known:
            store.add_event(rater, kind)


def read_results(path: Path) -> dict[str, Any]:
    """The JSON of a results file."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UserError(f"{path} is larger than any results file.")
        row = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"cannot read {path}: {error}.") from error
    if not isinstance(row, dict) or row.get("format") != FORMAT:
        raise UserError(f"{path} is not a results file of a sheet.")
    if row.get("consent") is not True:
        raise UserError(f"{path}: the rater has not agreed to take part.")
    return row


def read_answer(
    study: Study, assigned: Assignment, rater: int, answer: Mapping[str, Any], where: str
) -> list[Vote]:
    """The votes of one answer, or what is wrong with it."""
    right = study.items[assigned.item].other(assigned.left)
    meaning = {"A": assigned.left, "B": right} | ({"tie": TIE} if study.allow_ties else {})
    choices, names = answer.get("answers"), [one.name for one in study.criteria]
    if not isinstance(choices, dict) or set(choices) != set(names):
        raise UserError(f"{where}: it needs an answer to each of {', '.join(names)}.")
    for name, choice in choices.items():
        if not isinstance(choice, str) or choice not in meaning:
            raise UserError(f"{where}: {choice!r} is no answer to {name}.")
    comment, harmful = answer.get("comment", ""), answer.get("harmful", False)
    if not isinstance(comment, str) or len(comment) > LONGEST_COMMENT:
        raise UserError(f"{where}: a comment is a text of {LONGEST_COMMENT} characters at most.")
    if not isinstance(harmful, bool):
        raise UserError(f"{where}: harmful is true or false.")
    seconds, time = _seconds(answer.get("seconds"), where), _time(answer.get("time"), where)
    # Lone surrogates are legal in JSON, and neither in SQLite nor in UTF-8.
    comment = comment.encode("utf-8", "replace").decode()
    return [
        Vote(
            rater,
            assigned.item,
            name,
            meaning[choices[name]],
            assigned.left,
            right,
            seconds,
            time,
            comment=comment,
            harmful=harmful,
        )
        for name in names
    ]


def _seconds(value: Any, where: str) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not 0 <= value <= LONGEST_SECONDS:
        raise UserError(f"{where}: {value!r} is no number of seconds.")
    return float(value)


def _time(value: Any, where: str) -> str:
    """The rater's clock, in UTC: a sheet has no other."""
    try:
        time = datetime.fromisoformat(value)
        if time.tzinfo is None:
            raise ValueError("no time zone")
        return time.astimezone(UTC).isoformat(timespec="milliseconds")
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(f"{where}: {value!r} is no time (ISO 8601 with a zone).") from error
