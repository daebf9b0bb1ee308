"""The admin page: how far everybody is, whether raters agree, what was flagged.

It shows no result and no system's name: who runs a study should not see it lean before it is
complete.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import combinations
from statistics import median
from typing import Any

from rewriting.ab.server.work import DECLINED, Progress, Work
from rewriting.ab.study.store import now
from rewriting.ab.study.study import Study, Vote

SHOWN_FLAGS = 50
OLDEST = 60.0  # seconds after which the page is made anew although nobody has voted
SHARE = 0.1  # of the time that may be spent on the page


class Overview:
    """What the admin page shows, made in a thread, so that no rater waits for it.

    It has a store of its own. It is made anew when the votes have changed, and not so often that it
    would take more than a tenth of the time; whoever asks meanwhile gets the last one.
    """

    def __init__(self, work: Work, clock: Callable[[], float] = time.monotonic) -> None:
        self._work, self._clock = work, clock
        self._busy = asyncio.Lock()
        self._shown: dict[str, Any] = {}
        self._state = -1
        self._made = self._not_before = -math.inf

    async def latest(self) -> dict[str, Any]:
        async with self._busy:
            now = self._clock()
            state = self._work.store.changes()
            is_old = state != self._state or now - self._made > OLDEST
            if not self._shown or (is_old and now >= self._not_before):
                self._shown = await asyncio.to_thread(overview, self._work)
                self._state, self._made = state, self._clock()
                self._not_before = self._made + (self._made - now) / SHARE
            return self._shown

    def close(self) -> None:
        self._work.store.close()


def overview(work: Work) -> dict[str, Any]:
    """Everything on the page."""
    votes = work.store.votes()
    by_rater: dict[int, list[Vote]] = defaultdict(list)
    for vote in votes:
        by_rater[vote.rater].append(vote)
    judged = {(v.rater, v.item) for v in votes if work.study.items[v.item].kind == "item"}
    per_item = Counter(item for _, item in judged)
    items = [item.id for item in work.study.of_kind("item")]
    counts = [per_item[item] for item in items]
    wanted = work.study.votes_per_item
    return {
        "time": now(),
        "raters": [rater_row(work, rater, by_rater[rater]) for rater in work.raters()],
        "judged": sum(counts),
        "wanted": wanted * len(items),
        "complete": sum(count >= wanted for count in counts),
        "items": len(items),
        "fewest": min(counts, default=0),
        "most": max(counts, default=0),
        "waiting": len(work.pool()),
        "agreement": agreement(work.study, votes),
        "flagged": len({(vote.rater, vote.item) for vote in votes if vote.harmful}),
        "flags": flags(work.study, votes)[:SHOWN_FLAGS],
    }


def rater_row(work: Work, rater: int, votes: Sequence[Vote]) -> dict[str, Any]:
    progress = work.progress(rater)
    checks = [vote for vote in votes if work.study.items[vote.item].kind == "attention"]
    times = {vote.item: vote.seconds for vote in votes}
    return {
        "number": rater,
        "state": state_of(work, progress),
        "done": progress.done,
        "total": len(progress.assigned),
        "seconds": f"{median(times.values()):.0f}" if times else "–",
        "attention": checks_passed(work.study, checks),
        "flags": len({vote.item for vote in votes if vote.harmful}),
        "last_seen": (work.store.last_seen(rater) or "–")[:16].replace("T", " "),
    }


def checks_passed(study: Study, checks: Iterable[Vote]) -> str:
    """Attention checks answered as expected on every criterion, of those answered."""
    right: dict[str, bool] = {}
    for vote in checks:
        right[vote.item] = (
            right.get(vote.item, True) and vote.winner == study.items[vote.item].expected
        )
    return f"{sum(right.values())} of {len(right)}" if right else "–"


def state_of(work: Work, progress: Progress) -> str:
    """Where a rater stands, in a word or two."""
    linked = work.store.linked_raters().get(progress.rater)
    if linked is None:
        return "no link yet"
    if not linked:
        return "link revoked"
    if progress.stopped:
        kinds = [event.kind for event in work.store.events(progress.rater)]
        return "declined" if kinds[-1] == DECLINED else "stopped"
    if progress.consented and progress.position is None:
        return "finished"
    if work.has_left(progress.rater, datetime.now(UTC)):
        return "away too long"
    if not progress.consented:
        return "invited"
    return "rating" if progress.instructed else "reading the instructions"


def agreement(study: Study, votes: Sequence[Vote]) -> list[dict[str, Any]]:
    """Per criterion: of all pairs of raters who judged the same item, how many say the same."""
    rows = []
    for criterion in study.criteria:
        winners: dict[str, list[str]] = defaultdict(list)
        for vote in votes:
            if vote.criterion == criterion.name and study.items[vote.item].kind == "item":
                winners[vote.item].append(vote.winner)
        pairs = [a == b for one in winners.values() for a, b in combinations(one, 2)]
        share = f"{100 * sum(pairs) / len(pairs):.0f} %" if pairs else "–"
        rows.append({"question": criterion.question, "share": share, "pairs": len(pairs)})
    return rows


def flags(study: Study, votes: Sequence[Vote]) -> list[dict[str, Any]]:
    """What raters flagged as harmful, the newest first, with the replies as they saw them."""
    seen: dict[tuple[int, str], Vote] = {}
    for vote in reversed(votes):
        if vote.harmful:
            seen.setdefault((vote.rater, vote.item), vote)
    return [
        {
            "rater": vote.rater,
            "comment": vote.comment,
            "seeker_post": study.items[vote.item].seeker_post,
            "a": study.items[vote.item].replies[vote.left],
            "b": study.items[vote.item].replies[vote.right],
        }
        for vote in seen.values()
    ]
