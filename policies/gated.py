"""Rewriting behind the safety gate: what is held back, what is rejected, what a line says of it.

A post that is a crisis, possibly one, or in a language that the gate cannot read, gets its reply
back as it was. A rewrite that says what a machine must not say, or has a new sentence that the
kindness model finds hurtful, that the sense model finds wrong for its post, or that speaks of
people whom nobody named, is rejected, and the next candidate is taken; where none is left, the
reply comes back as it was, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from policies.best_of import BestOf
from policies.named import load_bare_policy
from rewriting import Exchange, Rewrite
from rewriting.loop import Policy
from rewriting.new_sentences import new_sentences
from rewriting.runtime.seeds import derive_seed
from rewriting.safety import Gate, Verdict
from rewriting.safety.outputs.invented import invented
from rewriting.safety.verdict import gravest

DOUBTFUL: Final = frozenset(
    {"contempt", "insult", "minimising", "prying", "religion as a verdict", "sexual"}
)
"""What rules of words are often wrong about. What a machine must not say at all, such as a method,
advice on medication or a diagnosis, is not among them."""
SURELY_KIND: Final = 0.1
"""The probability of hurting below which the kindness model overrules such a rule. Chosen on the
dev writers, where eight of ten kind sentences that the rules stop are below it, and no hurtful one
that the model would let pass."""
TRIES = 4  # samples of a rewrite before its reply comes back as it was


class Kindness(Protocol):
    """Reads new sentences for hurt: the kindness model, which a recipe hands in."""

    def hurtful(self, sentences: Sequence[str]) -> list[str]: ...
    def probabilities(self, sentences: Sequence[str]) -> list[float]: ...


class Sense(Protocol):
    """Reads new sentences with their post: the sense model, which a recipe hands in."""

    def unfit(self, post: str, sentences: Sequence[str]) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Guard:
    """What stands around a policy: the gate, and who reads new sentences for hurt and for sense, if
    anybody."""

    gate: Gate
    kindness: Kindness | None = None
    sense: Sense | None = None
    allow_crisis: bool = False

    def check(self, rewrite: Rewrite) -> Verdict:
        """Whether a rewrite may be given out. A person's own words are not ours to reject."""
        if not rewrite.changed:
            return Verdict("clear")
        post, original = rewrite.exchange.seeker_post, rewrite.exchange.response_post
        new = new_sentences(rewrite.rewritten_response, original)
        verdict = self.by_rules(rewrite.rewritten_response, original, new)
        hurtful = self.kindness.hurtful(new) if self.kindness is not None else []
        unfit = self.sense.unfit(post, new) if self.sense is not None else []
        reasons = tuple(f'may hurt: "{sentence}"' for sentence in hurtful)
        reasons += tuple(f'wrong for this post: "{sentence}"' for sentence in unfit)
        told = f"{post}\n{original}"
        made_up = [words for sentence in new for words in invented(sentence, told)]
        reasons += tuple(f'nobody spoke of: "{words}"' for words in made_up)
        return gravest(verdict, Verdict("crisis" if reasons else "clear", reasons))

    def by_rules(self, text: str, original: str, new: Sequence[str]) -> Verdict:
        """What the rules say of a text. Their word against the model's: what they only think is
        unkind, such as "stop crying" in "you don't have to stop crying", stands unless the kindness
        model is sure that all new sentences are kind."""
        verdict = self.gate.check_output(text, original)
        doubtful = all(reason.split(":")[0] in DOUBTFUL for reason in verdict.reasons)
        if verdict.clear or not doubtful or self.kindness is None or not new:
            return verdict
        sure = max(self.kindness.probabilities(new)) < SURELY_KIND
        return Verdict("clear") if sure else verdict


Choice = tuple[Rewrite, Mapping[str, float | None]]
"""A candidate and its rewards."""


@dataclass(slots=True)
class Gated:
    """One exchange with the gate's verdict, and the rewrite that passed, if any."""

    exchange: Exchange
    verdict: Verdict
    rewrite: Rewrite | None = None
    rewards: Mapping[str, float | None] = field(default_factory=dict)
    rejected: dict[str, None] = field(default_factory=dict)
    """Why samples were rejected, each reason once, in order."""
    allowed: bool = False
    others: list[Choice] = field(default_factory=list)
    """Other candidates that may be given out, best first, where they were asked for."""

    @property
    def held_back(self) -> bool:
        return not self.verdict.clear and not self.allowed

    @property
    def reasons(self) -> tuple[str, ...]:
        """What the gate found in the post, and why no rewrite was good enough, if none was."""
        if self.held_back or self.rewrite is not None:
            return self.verdict.reasons
        rejected = (f"every rewrite was rejected, {reason}" for reason in self.rejected)
        return (*self.verdict.reasons, *rejected)

    def result(self) -> Rewrite:
        """The rewrite; or the reply as it was, with the reasons why it stays so."""
        exchange = self.exchange
        return self.rewrite or Rewrite(exchange, exchange.response_post, reasons=self.reasons)

    def row(self, help_text: str) -> dict[str, Any]:
        """The field `safety` of an output line."""
        row: dict[str, Any] = {"verdict": self.verdict.verdict, "reasons": list(self.reasons)}
        if not self.verdict.clear:
            row["help"] = help_text
        if self.rejected:
            row["rejected"] = list(self.rejected)
        if self.allowed:
            row["allow_crisis"] = True
        return row


class GatedPolicy:
    """A policy behind the safety gate, and a policy itself: `rewrite` gives out what has passed.

        policy = load_policy("bank")
        (rewrite,) = policy.rewrite([Exchange("I failed again.", "Study harder.")])

    Where the gate held a post back, or rejected every rewrite, the reply comes back as it was, and
    `rewrite.reasons` says why. `gated` gives the verdicts and rewards as well. `policy` is the
    bare policy, and `guard` what stands around it.
    """

    def __init__(self, policy: Policy | BestOf, guard: Guard) -> None:
        self.policy = policy
        self.guard = guard
        self.name = policy.name

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int = 0) -> list[Rewrite]:
        return [row.result() for row in self.gated(exchanges, seed=seed)]

    def gated(
        self, exchanges: Sequence[Exchange], *, seed: int = 0, others: bool = False
    ) -> list[Gated]:
        """The exchanges with verdict, rewrite and rewards; others: with other candidates too."""
        return rewrite_safely(self.policy, exchanges, self.guard, seed=seed, others=others)


def load_policy(name: str, *, gate: Gate | None = None) -> GatedPolicy:
    """The policy of that name or in that folder, behind the safety gate; models are loaded now.

    gate: by default the rules and the learned crisis reader; `Gate()` is the rules alone. What a
    machine must not say is rejected either way. `recipes.load_rewriter` adds the models that read
    new sentences for hurt and sense, and candidates ranked by rewards. Training and evaluation use
    the policy without a gate, `policies.load_bare_policy`.
    """
    policy = load_bare_policy(name)  # first: an unknown name is said before models are loaded
    return GatedPolicy(policy, Guard(Gate.load() if gate is None else gate))


def rewrite_safely(
    policy: Policy | BestOf,
    exchanges: Sequence[Exchange],
    guard: Guard,
    *,
    seed: int,
    others: bool = False,
) -> list[Gated]:
    """The exchanges, rewritten where the gate lets them, with what it said.

    A rejected row is sampled again with seeds that follow from the seed and the try, so the same
    seed gives the same rewrites. others: keep the other candidates too that may be given out.
    """
    rows = checked(exchanges, guard)
    left = [row for row in rows if not row.held_back]
    for number in range(TRIES):
        if not left:
            break
        again = derive_seed(seed, "again", number) if number else seed
        candidates = sampled(policy, [row.exchange for row in left], again)
        for row, choices in zip(left, candidates, strict=True):
            take_first_good(row, choices, guard)
            if others and row.rewrite is not None:
                row.others = [one for one in choices if may_stand_beside(row.rewrite, one, guard)]
        left = [row for row in left if row.rewrite is None]
    return rows


def checked(exchanges: Sequence[Exchange], guard: Guard) -> list[Gated]:
    """The exchanges with the verdict of the gate, before anything is written."""
    rows = [Gated(exchange, guard.gate.check_exchange(exchange)) for exchange in exchanges]
    for row in rows:
        row.allowed = guard.allow_crisis and not row.verdict.clear
    return rows


def sampled(
    policy: Policy | BestOf, exchanges: Sequence[Exchange], seed: int
) -> list[list[Choice]]:
    """The candidates of each exchange with their rewards, best first."""
    if isinstance(policy, BestOf):
        ranked = policy.ranked(exchanges, seed=seed)
        return [[(one.rewrite, one.rewards) for one in row] for row in ranked]
    return [[(rewrite, {})] for rewrite in policy.rewrite(exchanges, seed=seed)]


def take_first_good(row: Gated, choices: Sequence[Choice], guard: Guard) -> None:
    """Give a row the first candidate that may be given out; note why others may not.

    The reply as it was is no answer to a rejection: where it comes next after a better candidate
    that was rejected, the row is sampled again.
    """
    for place, (rewrite, rewards) in enumerate(choices):
        if place and not rewrite.changed:
            return
        verdict = guard.check(rewrite)
        if verdict.clear:
            row.rewrite, row.rewards = rewrite, rewards
            return
        row.rejected |= dict.fromkeys(verdict.reasons)


def may_stand_beside(taken: Rewrite, choice: Choice, guard: Guard) -> bool:
    """Whether a candidate is another one than the one taken, and may be given out."""
    rewrite, _ = choice
    return rewrite != taken and guard.check(rewrite).clear
