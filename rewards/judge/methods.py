"""From a judge's answers to numbers: compare, grade, and the likelihood of a reply.

Each method says by how much the second of two replies to a post is better: `changes`. Every method
gives 0 for a reply that was left as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rewards.judge.question import Numbers, Question
from rewards.judge.rubric import Rubric
from rewriting.errors import UserError

Ask = Callable[[Sequence[Question]], list[Numbers]]
Row = tuple[str, str, str]
"""A seeker post, a reply, and the reply that is held against it."""


@dataclass(frozen=True, slots=True)
class Change:
    """By how much a reply is better than another.

    orders: of a comparison, p(A) with the reply in question as A, and p(A) with it as B; None where
    the judge was not asked. Their mean is 0.5 for a judge that does not mind the order.
    """

    value: float
    orders: tuple[float, float] | None = None

    @property
    def position_bias(self) -> float | None:
        """p(A) − 0.5, over both orders: 0.5 for a judge that always says A."""
        return None if self.orders is None else sum(self.orders) / 2 - 0.5


class Method(Protocol):
    """Says of rows by how much the second reply is better than the first."""

    def changes(self, rows: Sequence[Row]) -> list[Change]: ...


def normalised(probabilities: Numbers) -> Numbers:
    """Probabilities of the allowed answers that sum to 1."""
    total = math.fsum(probabilities)
    if not total > 0:
        raise UserError(
            f"the judge gave its allowed answers the probabilities {probabilities}: it never "
            "answers as the rubric asks. Use an instruction-tuned model, or a clearer rubric."
        )
    return tuple(one / total for one in probabilities)


def expected_value(probabilities: Numbers, answers: Sequence[str]) -> float:
    """Σ grade · p(grade), the probabilities taken among the allowed answers."""
    grades = (float(answer) for answer in answers)
    return math.fsum(g * p for g, p in zip(grades, normalised(probabilities), strict=True))


def preference(as_a: Numbers, as_b: Numbers) -> Change:
    """How far a reply is preferred, from what the judge said with it as A and with it as B.

    The mean of p(it wins) over both orders, mapped from 0..1 to −1..1. With p(A) in either order
    that is p(A | it is A) − p(A | it is B): what the judge gives to the place alone cancels out.
    """
    orders = normalised(as_a)[0], normalised(as_b)[0]
    return Change(orders[0] - orders[1], orders)


class Compare:
    """Which of two replies is better? Asked in both orders, always; −1 to 1, 0 is a tie.

    Equal replies tie and a blank one loses, without a question.
    """

    def __init__(self, ask: Ask, rubric: Rubric) -> None:
        self.ask = ask
        self.rubric = rubric

    def changes(self, rows: Sequence[Row]) -> list[Change]:
        plain = [(post.strip(), old.strip(), new.strip()) for post, old, new in rows]
        asked = [row for row in plain if row[1] and row[2] and row[1] != row[2]]
        numbers = self.ask([question for row in asked for question in self._both_orders(row)])
        pairs = zip(numbers[::2], numbers[1::2], strict=True)
        found = {row: preference(*pair) for row, pair in zip(asked, pairs, strict=True)}
        return [
            found.get(row) or Change(float(bool(row[2])) - float(bool(row[1]))) for row in plain
        ]

    def _both_orders(self, row: Row) -> tuple[Question, Question]:
        post, old, new = row

        def question(response_a: str, response_b: str) -> Question:
            return self.rubric.question(
                "question", seeker_post=post, response_a=response_a, response_b=response_b
            )

        return question(new, old), question(old, new)


class Grade:
    """How good is a reply, after minus before? The sum of the expected grades of all questions.

    A blank reply has the least grade, without a question.
    """

    def __init__(self, ask: Ask, rubric: Rubric) -> None:
        self.ask = ask
        self.rubric = rubric

    def changes(self, rows: Sequence[Row]) -> list[Change]:
        before = self.grades([(post, old) for post, old, _ in rows])
        after = self.grades([(post, new) for post, _, new in rows])
        return [Change(new - old) for old, new in zip(before, after, strict=True)]

    def grades(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The grade of each reply to its post."""
        answers = self.rubric.answers
        return [
            math.fsum(expected_value(numbers, answers) for numbers in found.values())
            for found in self.probabilities(pairs)
        ]

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> list[Mapping[str, Numbers]]:
        """The probability of each grade, by question, for each pair of post and reply."""
        plain = [(post.strip(), reply.strip()) for post, reply in pairs]
        names = list(self.rubric.templates)
        asked = [(name, pair) for pair in plain if pair[1] for name in names]
        numbers = self.ask(
            [self.rubric.question(name, seeker_post=p, response=r) for name, (p, r) in asked]
        )
        found = dict(zip(asked, map(normalised, numbers), strict=True))
        least = (1.0, *(0.0 for _ in self.rubric.answers[1:]))
        return [{name: found.get((name, pair), least) for name in names} for pair in plain]


class Likelihood:
    """How much likelier does the post make the reply, per token, after minus before?

    log p(reply | post) − log p(reply | neutral context), in nats per token: pointwise mutual
    information. A sentence that suits everybody is as likely without the post and gains nothing.
    A blank reply has 0.
    """

    def __init__(self, ask: Ask, rubric: Rubric) -> None:
        self.ask = ask
        self.rubric = rubric

    def changes(self, rows: Sequence[Row]) -> list[Change]:
        before = self.gains([(post, old) for post, old, _ in rows])
        after = self.gains([(post, new) for post, _, new in rows])
        return [Change(new - old) for old, new in zip(before, after, strict=True)]

    def gains(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The gain in log-probability per token that each post gives to its reply."""
        plain = [(post.strip(), reply.strip()) for post, reply in pairs]
        asked = [pair for pair in plain if pair[1]]
        numbers = self.ask([question for pair in asked for question in self._both_contexts(*pair)])
        informed, neutral = numbers[::2], numbers[1::2]
        found = {
            pair: with_post[0] - without[0]
            for pair, with_post, without in zip(asked, informed, neutral, strict=True)
        }
        return [found.get(pair, 0.0) for pair in plain]

    def _both_contexts(self, post: str, reply: str) -> tuple[Question, Question]:
        return (
            self.rubric.question("context", seeker_post=post, response=reply),
            self.rubric.question("neutral", response=reply),
        )
