"""Votes for other programs: tables (CSV, JSON lines) and preferences to train on (TRL).

Posts, replies and comments lose mail addresses, phone numbers, handles and links on the way out,
unless the caller keeps them. Names stay: rewriting/safety says why.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rewriting.ab.results.analysis import last_revisions, rater_figures
from rewriting.ab.study.study import TIE, Item, Study, Vote
from rewriting.errors import UserError
from rewriting.runtime.files.disk import disk_errors

FORMULA_STARTS: Final = tuple("=+-@\t\r\n＝＋－＠|")
"""What makes a spreadsheet run a cell instead of showing it."""


def vote_rows(
    study: Study, votes: Sequence[Vote], *, scrub: bool = True, all_revisions: bool = False
) -> Iterator[dict[str, Any]]:
    """A row per vote, of every kind of pair, with the texts as the rater saw them.

    votes: every revision, since the time of a pair is that of all of them.
    """
    clean = cleaner(scrub)
    excluded = excluded_raters(study, votes)
    for vote in votes if all_revisions else last_revisions(votes):
        item = study.items[vote.item]
        yield {
            "rater": vote.rater,
            "excluded": vote.rater in excluded,
            "item": vote.item,
            "kind": item.kind,
            "repeat_of": item.repeat_of,
            "exchange_id": clean(item.exchange_id),
            "criterion": vote.criterion,
            "winner": vote.winner,
            "left": vote.left,
            "right": vote.right,
            "seconds": vote.seconds,
            "time": vote.time,
            "revision": vote.revision,
            "harmful": vote.harmful,
            "comment": clean(vote.comment),
            "seeker_post": clean(item.seeker_post),
            "left_reply": clean(item.replies[vote.left]),
            "right_reply": clean(item.replies[vote.right]),
        }


def preference_rows(
    study: Study,
    votes: Sequence[Vote],
    criterion: str,
    *,
    majority: bool = True,
    conversational: bool = False,
    scrub: bool = True,
) -> Iterator[dict[str, Any]]:
    """TRL's preference format: prompt, chosen, rejected, for RewardTrainer and DPOTrainer.

    majority: one row per pair that has a majority; otherwise one row per decided vote. Excluded
    raters, pairs flagged as harmful by anybody (also when they came again), and everything but
    items are left out. votes: every revision; the last ones count.
    """
    clean = cleaner(scrub)
    excluded = excluded_raters(study, votes)
    votes = last_revisions(votes)
    flagged = {study.items[v.item].repeat_of or v.item for v in votes if v.harmful}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for vote in votes:
        counted = study.items[vote.item].kind == "item" and vote.item not in flagged
        if counted and vote.criterion == criterion and vote.rater not in excluded:
            counts[vote.item][vote.winner] += 1
    for key, count in counts.items():
        item = study.items[key]
        for chosen in item.replies:
            rejected = item.other(chosen)
            times = int(count[chosen] > count[rejected]) if majority else count[chosen]
            for _ in range(times):
                yield {
                    **preference(item, chosen, rejected, clean, conversational),
                    "item": key,
                    "criterion": criterion,
                    "votes_chosen": count[chosen],
                    "votes_rejected": count[rejected],
                    "votes_tie": count[TIE],
                }


def preference(
    item: Item, chosen: str, rejected: str, clean: Any, conversational: bool
) -> dict[str, Any]:
    """The three columns of TRL, as plain texts or as messages that end with the seeker's."""
    turns = [clean(turn) for turn in (*item.history, item.seeker_post)]
    texts = [clean(item.replies[name]) for name in (chosen, rejected)]
    if not conversational:
        return {"prompt": "\n\n".join(turns), "chosen": texts[0], "rejected": texts[1]}
    roles = ("user", "assistant")
    prompt = [
        {"role": roles[(len(turns) - 1 - place) % 2], "content": turn}
        for place, turn in enumerate(turns)
    ]
    answers = [[{"role": "assistant", "content": text}] for text in texts]
    return {"prompt": prompt, "chosen": answers[0], "rejected": answers[1]}


def excluded_raters(study: Study, votes: Sequence[Vote]) -> set[int]:
    return {row["rater"] for row in rater_figures(study, votes) if row["excluded_because"]}


def cleaner(scrub: bool) -> Any:
    """The function that cleans a text before it is exported: the scrubber, or none."""
    if not scrub:
        return lambda text: text
    from rewriting.safety import scrub as remove

    return remove


def csv_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as CSV; a cell that a spreadsheet would run gets an apostrophe in front."""
    rows = list(rows)
    if not rows:
        return ""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(rows[0]))  # CRLF: else a bare CR would not be quoted
    writer.writeheader()
    writer.writerows({key: harmless(value) for key, value in row.items()} for row in rows)
    return file.getvalue()


def harmless(value: Any) -> Any:
    """A cell that is shown, not run. Numbers stay numbers, negative ones too."""
    if isinstance(value, str) and value.lstrip(" \u00a0\ufeff").startswith(FORMULA_STARTS):
        return "'" + value
    return value


def json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_text(path: Path, text: str) -> None:
    """Write by way of a temporary file beside the target. Lone surrogates become question marks."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(text.encode("utf-8", "replace"))
        temporary.replace(path)


def check_criterion(study: Study, name: str | None) -> str:
    """A criterion of the study; its first one where none is named."""
    names = [one.name for one in study.criteria]
    if name is not None and name not in names:
        raise UserError(f"the study has no criterion {name!r}. It has: {', '.join(names)}.")
    return names[0] if name is None else name
