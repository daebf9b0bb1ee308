"""`evaluate.py audit --rewrites`: are an agent's own sentences worth anything to somebody else?

Every rewrite is scored at home, under its post. Then its new sentences are said to another person:
put in front of the reply to another post, as drawn with the seed. What the rewards pay for that,
above what they pay for the reply as it was, ought to be far less. A sentence that earns as much
everywhere is stock, whoever wrote it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared.tables import print_table
from rewriting.data.rows import raise_bad_row, read_rows
from rewriting.edits import Edit, apply_edit
from rewriting.errors import UserError
from rewriting.sentences import split_sentences

if TYPE_CHECKING:
    from rewards.reward_sum import RewardSum

FIELDS = ("seeker_post", "response_post", "rewritten_response", "edits")


def audit_rewrites(path: Path, rewards: RewardSum, seed: int) -> dict[str, Any]:
    """The figures of the rewrites in a file that `rewriting rewrite` has written."""
    read = read_rewrites(path)
    changed = [row for row in read if row["sentences"]]
    if len({row["seeker_post"] for row in changed}) < 2:
        raise UserError(f"{path}: an audit needs changed rewrites under at least two posts.")
    hosts = other_rows(changed, seed)
    moved = [said_to(host, row) for host, row in zip(hosts, changed, strict=True)]
    both = (changed, [row["rewritten_response"] for row in changed]), (hosts, moved)
    if rewards.moments:  # terms with a scale are measured over all that is scored
        for rows, replies in both:
            paid(rewards, rows, replies, update=True)
    home, away = (paid(rewards, rows, replies) for rows, replies in both)
    pairs = [(a, b) for a, b in zip(home, away, strict=True) if a is not None and b is not None]
    if not pairs:
        raise UserError(f"{path}: the rewards do not apply to any of these rewrites.")
    mean_home, mean_away = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
    return {
        "rewrites": len(read),
        "changed": len(changed),
        "earned_at_home": mean_home,
        "earned_elsewhere": mean_away,
        "lost_elsewhere": 100 * (1 - mean_away / mean_home) if mean_home > 0 else None,
        "home_wins": 100 * sum(a > b for a, b in pairs) / len(pairs),
        "questions": 100 * share_of_questions(changed),
    }


def read_rewrites(path: Path) -> list[dict[str, Any]]:
    """The rows of the file, with the sentences that its edits brought; a bad row is named."""
    found = []
    for read in read_rows(path, raise_bad_row):
        row = read.cells
        where = f"{path}, line {read.line}"
        if missing := [name for name in FIELDS if name not in row]:
            raise UserError(
                f"{where}: {missing[0]} is missing; `rewriting rewrite` writes files that have it."
            )
        check_types(row, where)
        sentences = [edit["sentence"] for edit in row["edits"] if edit.get("sentence")]
        standing = [text for text in sentences if text in row["rewritten_response"]]
        found.append({**row, "sentences": standing})
    return found


def check_types(row: Mapping[str, Any], where: str) -> None:
    """Posts are texts, and edits a list of mappings."""
    for name in FIELDS[:-1]:
        if not isinstance(row[name], str):
            raise UserError(f"{where}: {name} is {row[name]!r}; it must be a text.")
    edits = row["edits"]
    if not isinstance(edits, list) or not all(isinstance(edit, Mapping) for edit in edits):
        raise UserError(f"{where}: edits is {edits!r}; it must be a list of edits.")


def other_rows(rows: Sequence[Mapping[str, Any]], seed: int) -> list[Mapping[str, Any]]:
    """For every row one with another post, drawn at random."""
    chooser = random.Random(seed)
    return [
        chooser.choice([other for other in rows if other["seeker_post"] != row["seeker_post"]])
        for row in rows
    ]


def said_to(host: Mapping[str, Any], guest: Mapping[str, Any]) -> str:
    """The reply of a row with the new sentences of another one in front of it."""
    reply = split_sentences(host["response_post"])
    for sentence in reversed(guest["sentences"]):
        reply = apply_edit(reply, Edit.insert(0, sentence))
    return str(reply)


def paid(
    rewards: RewardSum,
    rows: Sequence[Mapping[str, Any]],
    replies: Sequence[str],
    *,
    update: bool = False,
) -> list[float | None]:
    """What is paid for replies above what is paid for those that stood there.

    update: terms with a scale count the values.
    """
    from rewriting.new_sentences import new_sentences

    before = [row["response_post"] for row in rows]
    totals = []
    for texts in (replies, before):
        new = [" ".join(new_sentences(t, b)) or None for t, b in zip(texts, before, strict=True)]
        scores = rewards.score(
            completions=list(texts),
            seeker_post=[row["seeker_post"] for row in rows],
            response_post=before,
            sentence=new,
            update=update,
        )
        totals.append(scores.totals)
    return [
        None if after is None or first is None else after - first
        for after, first in zip(*totals, strict=True)
    ]


def share_of_questions(rows: Sequence[Mapping[str, Any]]) -> float:
    sentences = [sentence for row in rows for sentence in row["sentences"]]
    return sum("?" in sentence for sentence in sentences) / len(sentences)


def show_rewrites(found: Mapping[str, Any], path: str) -> None:
    lost = found["lost_elsewhere"]
    rows = [
        ["rewrites that changed", f"{found['changed']} of {found['rewrites']}"],
        ["paid at home, above the reply as it was", f"{found['earned_at_home']:.2f}"],
        ["paid under another post", f"{found['earned_elsewhere']:.2f}"],
        ["lost there, %", "–" if lost is None else f"{lost:.0f}"],
        ["paid more at home, % of rewrites", f"{found['home_wins']:.0f}"],
        ["new sentences that ask, %", f"{found['questions']:.0f}"],
    ]
    print_table(f"{path}: the same sentences, said to somebody else", ["", ""], rows)
