"""From the outputs of systems to a frozen study: which pairs are in it, and which are left out."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from rewriting.ab.study import texts
from rewriting.ab.study.assignment import assign_items
from rewriting.ab.study.schedule import BETTER, WORSE, opaque_id, repeat_of, schedule
from rewriting.ab.study.study import CRITERIA, TIE, Criterion, Exclusion, Item, Study
from rewriting.errors import UserError

SHORTEST_NAME = 3  # a system called "a" or "b" leaks nothing when a reply says "a"
RESERVED = (TIE, BETTER, WORSE)


@dataclass(frozen=True, slots=True)
class Output:
    """A system's reply to an exchange. `where` says, for messages, where it stood."""

    exchange_id: str
    seeker_post: str
    reply: str
    history: tuple[str, ...] = ()
    where: str = ""
    response_post: str = ""
    """The reply that a rewrite was made from: a person's own words are not ours to reject."""


Answers = Mapping[str, Mapping[str, Output]]  # system → exchange → output


@dataclass(frozen=True, kw_only=True)
class Design:
    """How a study is made: who judges how much, what is asked, and what raters read.

    limit: take at most so many exchanges, drawn by the seed.
    """

    raters: int
    votes_per_item: int = 3
    seed: int = 0
    criteria: Sequence[Criterion] = CRITERIA
    allow_ties: bool = True
    practice: Sequence[Mapping[str, Any]] = texts.PRACTICE
    attention: Sequence[Mapping[str, Any]] = texts.ATTENTION
    repeats: int = 4
    limit: int | None = None
    title: str = texts.TITLE
    consent: str = texts.CONSENT
    instructions: str = texts.INSTRUCTIONS
    help_resources: Sequence[str] = texts.HELP_RESOURCES
    exclusion: Exclusion = field(default_factory=Exclusion)


def create_study(
    outputs: Mapping[str, Sequence[Output]],
    design: Design,
    *,
    crisis: Callable[[str], bool] | None = None,
    unsafe: Callable[[Output], bool] | None = None,
) -> Study:
    """A study of two or more systems: every pair of them on every exchange that all have answered.

    crisis: says whether a post is too grave for a study; exchanges are left out whose seeker post
        or history has one.
    unsafe: says whether a system's reply must not be shown; exchanges are left out to which any
        system has one. None: nobody looked, and the study says so.
    """
    check_names(outputs)
    check_criteria(design.criteria)
    check_leaks(outputs)
    shown = {
        "the title": design.title,
        "the consent text": design.consent,
        "the instructions": design.instructions,
    }
    check_texts(
        outputs,
        own_texts(shown, design.help_resources, design.criteria, design.practice, design.attention),
    )
    answered = by_exchange(outputs)
    shared, left_out = shared_exchanges(answered, crisis)
    safe = shared if unsafe is None else [key for key in shared if not hurts(answered, key, unsafe)]
    left_out["rejected by the output gate"] = len(shared) - len(safe)
    shared = safe
    shared = sorted(shared, key=lambda key: opaque_id(design.seed, "draw", key))[: design.limit]
    items = [item for key in shared for item in items_of(answered, key, design.seed)]
    left_out["identical replies"] = len(shared) * count_pairs(len(outputs)) - len(items)
    if not items:
        raise UserError(f"no pair is left to judge ({say(left_out)}).")
    shares = assign_items(
        items, raters=design.raters, votes_per_item=design.votes_per_item, seed=design.seed
    )
    by_id = {item.id: item for item in items}
    trials = own_items(design.practice, "practice", design.seed)
    checks = own_items(design.attention, "attention", design.seed)
    assignments = {
        rater: schedule(
            share,
            by_id,
            practice=trials,
            attention=checks,
            repeats=design.repeats,
            seed=design.seed,
            rater=rater,
        )
        for rater, share in shares.items()
    }
    used = {one.item for assigned in assignments.values() for one in assigned}
    again = [item for item in (repeat_of(one, design.seed) for one in items) if item.id in used]
    # In the order of their ids: the file itself gives no clue to what is a check or a repeat.
    everything = sorted([*items, *trials, *checks, *again], key=lambda item: item.id)
    return Study(
        systems=tuple(outputs),
        items={item.id: item for item in everything},
        assignments=assignments,
        title=design.title,
        seed=design.seed,
        data_hash=hash_of(outputs),
        criteria=tuple(design.criteria),
        allow_ties=design.allow_ties,
        votes_per_item=design.votes_per_item,
        consent=design.consent,
        instructions=design.instructions,
        help_resources=tuple(design.help_resources),
        exclusion=design.exclusion,
        left_out={reason: count for reason, count in left_out.items() if count},
        unsafe_candidates=unsafe is None,
    )


def check_names(outputs: Mapping[str, Sequence[Output]]) -> None:
    if len(outputs) < 2:
        raise UserError("a study compares two or more systems: give --system NAME=FILE twice.")
    for name in outputs:
        if name.lower() in RESERVED or not name.strip():
            raise UserError(f"no system may be called {name!r}: give it another name.")


def check_criteria(criteria: Sequence[Criterion]) -> None:
    if not criteria:
        raise UserError("a study asks at least one question: give --criterion name=question.")
    doubled = [n for n, count in Counter(one.name for one in criteria).items() if count > 1]
    bad = [one.name for one in criteria if not re.fullmatch(r"[A-Za-z][\w-]{0,39}", one.name)]
    if doubled or bad:
        raise UserError(
            f"criterion {(doubled or bad)[0]!r}: its name stands once and is a word of letters, "
            "digits, - and _, such as --criterion 'warm=Which reply is warmer?'."
        )


def check_leaks(outputs: Mapping[str, Sequence[Output]]) -> None:
    """Refuse replies that name a system: they would undo the blinding."""
    patterns = name_patterns(outputs)
    for system, rows in outputs.items():
        for row in rows:
            for name, pattern in patterns.items():
                found = pattern.search(row.reply)
                if found:
                    raise UserError(
                        f"{row.where or row.exchange_id}: the reply of system {system!r} says "
                        f"{found[0]!r}, which tells raters about the system {name!r}. Mend the "
                        "reply, or give the system a name that no reply has (--system x=FILE)."
                    )


def name_patterns(systems: Iterable[str]) -> dict[str, re.Pattern[str]]:
    return {name: name_pattern(name) for name in systems if len(name) >= SHORTEST_NAME}


def own_texts(
    shown: Mapping[str, str],
    help_resources: Sequence[str],
    criteria: Sequence[Criterion],
    practice: Sequence[Mapping[str, Any]],
    attention: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[str, str]]:
    """What a study's author wrote for raters to read: (what it is, the text).

    Not the built-in texts: they are older than any system, and cannot tell of one.
    """
    built_in = {texts.TITLE, texts.CONSENT, texts.INSTRUCTIONS, *texts.HELP_RESOURCES}
    yield from ((what, text) for what, text in shown.items() if text not in built_in)
    yield from (("a help resource", line) for line in help_resources if line not in built_in)
    for one in criteria:
        if one not in CRITERIA:
            yield from ((f"criterion {one.name!r}", text) for text in (one.name, one.question))
    for kind, rows, known in (
        ("a practice pair", practice, texts.PRACTICE),
        ("an attention check", attention, texts.ATTENTION),
    ):
        for row in rows:
            if row not in known:
                names = ("seeker_post", BETTER, WORSE, "note")
                yield from ((kind, str(row[name])) for name in names if row.get(name))


def check_texts(systems: Iterable[str], found: Iterable[tuple[str, str]]) -> None:
    """Refuse texts around the pairs that name a system."""
    patterns = name_patterns(systems)
    for what, text in found:
        for name, pattern in patterns.items():
            if pattern.search(text):
                raise UserError(
                    f"{what} names the system {name!r}, which raters must not know. Change the "
                    "text, or give the system another name (--system x=FILE)."
                )


def named_in_posts(study: Study) -> dict[str, int]:
    """System → pairs whose post or history says its name. People write what they write: to know."""
    found = {
        name: sum(
            any(pattern.search(text) for text in (item.seeker_post, *item.history))
            for item in study.of_kind("item")
        )
        for name, pattern in name_patterns(study.systems).items()
    }
    return {name: count for name, count in found.items() if count}


def name_pattern(name: str) -> re.Pattern[str]:
    """The name as a word, whatever its case and whatever joins its parts: my-model, My Model."""
    parts = [re.escape(part) for part in re.split(r"[\W_]+", name) if part]
    joined = r"[\W_]*".join(parts) or re.escape(name)
    return re.compile(rf"(?<![^\W_]){joined}(?![^\W_])", re.IGNORECASE)


def by_exchange(outputs: Mapping[str, Sequence[Output]]) -> Answers:
    """System → exchange → output; of several to one exchange, the first."""
    return {
        system: {row.exchange_id: row for row in reversed(rows)} for system, rows in outputs.items()
    }


def shared_exchanges(
    answered: Answers, crisis: Callable[[str], bool] | None
) -> tuple[list[str], dict[str, int]]:
    """The exchanges that all systems have answered and that are not a crisis; the rest counted."""
    reference, *_ = answered
    first = answered[reference]
    everywhere = [key for key in first if all(key in other for other in answered.values())]
    if not everywhere:
        raise UserError("the systems have no exchange in common: were they run on the same data?")
    for key in everywhere:
        for system, other in answered.items():
            if other[key].seeker_post != first[key].seeker_post:
                raise UserError(
                    f"exchange {key!r} has another seeker post in {system!r} "
                    f"({other[key].where}) than in {reference!r}."
                )
    replies = {key: [other[key].reply for other in answered.values()] for key in everywhere}
    blank = {key for key in everywhere if not all(reply.strip() for reply in replies[key])}
    grave = {
        key
        for key in everywhere
        if key not in blank
        and crisis is not None
        and any(crisis(text) for text in posts_of(answered, key))
    }
    left_out = {
        "not answered by all systems": len(set().union(*answered.values())) - len(everywhere),
        "empty reply": len(blank),
        "crisis or possible crisis": len(grave),
    }
    return [key for key in everywhere if key not in blank | grave], left_out


def hurts(answered: Answers, key: str, unsafe: Callable[[Output], bool]) -> bool:
    """Whether any system's reply to an exchange must not be shown."""
    return any(unsafe(replies[key]) for replies in answered.values())


def posts_of(answered: Answers, key: str) -> set[str]:
    """The seeker post and the turns before it, as any system's file has them."""
    rows = [replies[key] for replies in answered.values()]
    return {text for row in rows for text in (row.seeker_post, *row.history)}


def items_of(answered: Answers, key: str, seed: int) -> list[Item]:
    """The pairs of one exchange, without pairs of the same reply: there is nothing to judge."""
    rows = {name: replies[key] for name, replies in answered.items()}
    return [
        Item(
            id=opaque_id(seed, key, a, b),
            seeker_post=rows[a].seeker_post.strip(),
            replies={name: rows[name].reply.strip() for name in (a, b)},
            exchange_id=key,
            history=rows[a].history,
        )
        for a, b in combinations(rows, 2)
        if rows[a].reply.split() != rows[b].reply.split()
    ]


def own_items(rows: Sequence[Mapping[str, Any]], kind: str, seed: int) -> list[Item]:
    """Practice pairs and attention checks, from rows of seeker_post, better, worse and note."""
    for row in rows:
        missing = [name for name in ("seeker_post", BETTER, WORSE) if not row.get(name)]
        if missing:
            raise UserError(f"a {kind} row lacks {', '.join(missing)}: {json.dumps(dict(row))}.")
    return [
        Item(
            id=opaque_id(seed, kind, number),
            seeker_post=row["seeker_post"],
            replies={BETTER: row[BETTER], WORSE: row[WORSE]},
            kind=kind,
            expected=BETTER,
            note=row.get("note", "") if kind == "practice" else "",
        )
        for number, row in enumerate(rows)
    ]


def count_pairs(systems: int) -> int:
    return systems * (systems - 1) // 2


def hash_of(outputs: Mapping[str, Sequence[Output]]) -> str:
    """The SHA-256 of all replies and posts, in order."""
    digest = hashlib.sha256()
    for name, rows in outputs.items():
        for row in rows:
            line = json.dumps([name, row.exchange_id, row.seeker_post, row.history, row.reply])
            digest.update(line.encode())
    return digest.hexdigest()


def say(counts: Mapping[str, int]) -> str:
    """Counts in words: "3 identical replies, 1 crisis"."""
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.items() if count)
