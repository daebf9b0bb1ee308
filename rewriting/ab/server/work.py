"""A rater's work: what falls to them, how far they are, and what returns to the pool.

The study's assignments never change. Items that a rater left behind are handed over to another one
who asks for more; a hand-over is a row in the store, and a rater's list is the planned one, less
what went away, plus what came.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

from rewriting.ab.study.schedule import lead_of, random_side
from rewriting.ab.study.store import Handover, Store
from rewriting.ab.study.study import Assignment, Study
from rewriting.runtime.seeds import derive_seed

CONSENT, DECLINED, INSTRUCTED = "consent", "declined", "instructed"
STOPPED, RESUMED = "stopped", "resumed"
SHEET = "sheet"  # was sent a sheet (sheet.py), and gives no sign while filling it in
LEFT = (DECLINED, STOPPED)
CHECK_EVERY = 5  # pairs between two attention checks of a rater who was added later


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a rater stands. `position` is the first pair without a vote, from 1, or None."""

    rater: int
    assigned: tuple[Assignment, ...]
    voted: frozenset[str]
    consented: bool
    instructed: bool
    stopped: bool

    @property
    def position(self) -> int | None:
        numbered = enumerate(self.assigned, start=1)
        return next((number for number, one in numbered if one.item not in self.voted), None)

    @property
    def done(self) -> int:
        return sum(one.item in self.voted for one in self.assigned)

    @property
    def reachable(self) -> int:
        """The last pair that may be looked at: the first one without a vote, or the last of all."""
        return self.position or len(self.assigned)


def list_of_added(study: Study, rater: int, came: Sequence[Assignment]) -> Iterator[Assignment]:
    """The list of a rater who was added later: practice, then what came, with checks in between.

    It only ever grows at its end, so that places which were answered stay.
    """

    def own(kind: str) -> Iterator[Assignment]:
        for item in study.of_kind(kind):
            seed = derive_seed(study.seed, "added", rater, item.id)
            yield random_side(item, random.Random(seed))

    yield from own("practice")
    checks = own("attention")
    for number, one in enumerate(came, start=1):
        yield one
        if number % CHECK_EVERY == 0:
            yield from islice(checks, 1)


class Work:
    """The study and its store together. `return_after`: idle work returns to the pool."""

    def __init__(self, study: Study, store: Store, return_after: timedelta) -> None:
        self.study, self.store, self.return_after = study, store, return_after

    def assigned(
        self, rater: int, handovers: list[Handover] | None = None
    ) -> tuple[Assignment, ...]:
        handovers = self.store.handovers() if handovers is None else handovers
        came = [Assignment(one.item, one.left) for one in handovers if one.to_rater == rater]
        gone = {one.item for one in handovers if one.from_rater == rater}
        if rater in self.study.assignments:
            mine = [*self.study.assignments[rater], *came]
        else:
            mine = list(list_of_added(self.study, rater, came))
        return tuple(one for one in mine if one.item not in gone)

    def progress(self, rater: int) -> Progress:
        kinds = [event.kind for event in self.store.events(rater)]
        turns = [kind for kind in kinds if kind in (CONSENT, RESUMED, *LEFT)]
        return Progress(
            rater=rater,
            assigned=self.assigned(rater),
            voted=frozenset(self.store.items_voted_on(rater)),
            consented=CONSENT in kinds,
            instructed=INSTRUCTED in kinds,
            stopped=bool(turns) and turns[-1] in LEFT,
        )

    def raters(self) -> list[int]:
        """Everybody who was planned for or was given a link since."""
        return sorted({*self.study.assignments, *self.store.linked_raters()})

    def has_left(self, rater: int, now: datetime) -> bool:
        """Stopped, declined, link revoked, or idle for too long without having a sheet."""
        progress = self.progress(rater)
        if progress.stopped or not self.store.linked_raters().get(rater, True):
            return True
        if any(event.kind == SHEET for event in self.store.events(rater)):
            return False
        last = self.store.last_seen(rater)
        return last is not None and now - datetime.fromisoformat(last) > self.return_after

    def pool(self, now: datetime | None = None) -> list[tuple[int, str]]:
        """(rater, item) that nobody is working on any more. Checks and repeats do not return."""
        now = now or datetime.now(UTC)
        left: list[tuple[int, str]] = []
        for rater in self.raters():
            if self.has_left(rater, now):
                progress = self.progress(rater)
                left += [
                    (rater, one.item)
                    for one in progress.assigned
                    if one.item not in progress.voted and self._counts(one.item)
                ]
        return left

    def _counts(self, item: str) -> bool:
        return self.study.items[item].kind == "item"

    def on_offer(self, rater: int) -> list[tuple[int, str]]:
        """What of the pool this rater may take: no item twice, and none they gave away."""
        handovers = self.store.handovers()
        had = {one.item for one in self.assigned(rater, handovers)}
        had |= {one.item for one in handovers if one.from_rater == rater}
        offered: dict[str, int] = {}
        for owner, item in self.pool():
            if item not in had and owner != rater:
                offered.setdefault(item, owner)
        return [(owner, item) for item, owner in offered.items()]

    def take_more(self, rater: int, count: int) -> int:
        """Hand over up to so many items to a rater; the emptiest items first, sides kept even."""
        with self.store.transaction():
            offered = self.on_offer(rater)
            votes = Counter(vote.item for vote in self.store.votes())
            offered.sort(key=lambda one: votes[one[1]])
            counted = [one for one in self.assigned(rater) if self._counts(one.item)]
            lead = lead_of(counted, self.study.items)
            for owner, item in offered[:count]:
                left = min(sorted(self.study.items[item].replies), key=lambda name: lead[name])
                lead[left] += 1
                lead[self.study.items[item].other(left)] -= 1
                self.store.hand_over(Handover(item, owner, rater, left))
            return len(offered[:count])
