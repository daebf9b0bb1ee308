"""`empathy_change`: how much more empathy the rewritten response communicates than the original."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from rewards.identifiers.assessment import Assessment, Identifier
from rewards.protocol import texts
from rewriting.exchange import MECHANISMS
from rewriting.runtime.cache import BatchedScores

Pair = tuple[str, str]
Levels = tuple[float, ...]
"""Of each mechanism, in the order of MECHANISMS."""
NOTHING: Final[Levels] = (0.0,) * len(MECHANISMS)


class EmpathyChange:
    """Total empathy after minus total empathy before, each on 0..6: PARTNER's first reward.

    PARTNER (arXiv 2101.07714) takes the levels that the classifier calls; `argmax=True` does that.
    By default the expected levels count, Σ level · probability: a policy that comes nearer to the
    next level sees that it does, where the called levels stand still.

    In: completions, seeker_post, response_post. Out: −6 to 6; 0 for an unchanged response. A blank
    response communicates nothing and has empathy 0, whatever an identifier would say of it. The
    change of each mechanism is logged as a part: a rise by questions alone is to be seen.
    batch_size: with 1, originals are assessed one by one and remembered; with more, together with
    the rewrites, at every call.

        EmpathyChange(identifier)(completions=["Oh no! That hurts."], seeker_post=["I failed."],
                                  response_post=["Oh."])
    """

    def __init__(
        self,
        identifier: Identifier,
        *,
        argmax: bool = False,
        batch_size: int = 1,
        name: str = "empathy_change",
    ) -> None:
        self.__name__ = name
        self.identifier = identifier
        self.argmax = argmax
        self._before = BatchedScores(self._assess) if batch_size == 1 else None

    def __call__(
        self,
        *,
        completions: Sequence[Any],
        seeker_post: Sequence[str],
        response_post: Sequence[str],
        log_extra: Callable[[str, Any], None] | None = None,
        **_: Any,
    ) -> list[float]:
        before = list(zip(seeker_post, response_post, strict=True))
        after = list(zip(seeker_post, texts(completions), strict=True))
        levels = self._both(before, after)
        if log_extra is not None:
            for place, mechanism in enumerate(MECHANISMS):
                log_extra(mechanism, [now[place] - earlier[place] for earlier, now in levels])
        return [sum(now) - sum(earlier) for earlier, now in levels]

    def _both(self, before: list[Pair], after: list[Pair]) -> list[tuple[Levels, Levels]]:
        """The levels of every original and of its rewrite."""
        if self._before is None:
            # In one call: most sentences of a rewrite stand in the original too, and are read once.
            pairs = list(dict.fromkeys([*before, *after]))
            found = dict(zip(pairs, self._assess(pairs), strict=True))
            return [(found[old], found[new]) for old, new in zip(before, after, strict=True)]
        known = self._before(before)
        changed = [new for old, new in zip(before, after, strict=True) if new != old]
        unique = list(dict.fromkeys(changed))
        found = dict(zip(unique, self._assess(unique), strict=True))
        rows = zip(before, after, known, strict=True)
        return [(levels, levels if new == old else found[new]) for old, new, levels in rows]

    def _assess(self, pairs: list[Pair]) -> list[Levels]:
        """The level of each mechanism."""
        written = [pair for pair in pairs if pair[1].strip()]
        if not written:
            return [NOTHING] * len(pairs)
        seekers, responses = zip(*written, strict=True)
        found = self.identifier.assess(seekers, responses, rationales=False)
        known = dict(zip(written, map(self._levels, found), strict=True))
        return [known.get(pair, NOTHING) for pair in pairs]

    def _levels(self, assessment: Assessment) -> Levels:
        judgements = [assessment.judgements[mechanism] for mechanism in MECHANISMS]
        return tuple(float(j.level) if self.argmax else j.expected_level for j in judgements)
