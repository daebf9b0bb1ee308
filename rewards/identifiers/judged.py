"""The identifier `judge:MODEL`: a language model grades each mechanism of empathy from 0 to 2.

identifier = load_identifier("judge:qwen2.5-coder-1.5b")
identifier = load_identifier("judge:{model: NAME, endpoint: URL, api_key_env: VARIABLE}")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Self

from rewards.identifiers.assessment import Assessment, Judgement
from rewards.judge.client import CONCURRENCY, RETRIES, TIMEOUT
from rewards.judge.methods import Ask, Grade
from rewards.judge.named import judge_options, open_judge
from rewards.judge.options import check_judge
from rewards.judge.rubric import Rubric, load_rubric
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS

RUBRIC: Final = "mechanisms"
LEVELS: Final = ("0", "1", "2")


class JudgeIdentifier:
    """Assesses pairs of posts by what a judge answers; its probabilities are not calibrated.

    rubric: one that grades with a question for each mechanism, from 0 to 2. There are no
    rationales: a judge says how strong a mechanism is, not where it stands.
    """

    def __init__(self, ask: Ask, rubric: Rubric, *, name: str = "judge") -> None:
        _check_rubric(rubric)
        self.grade = Grade(ask, rubric)
        self.name = name

    @staticmethod
    def check(text: str) -> None:
        """Say what is wrong with a model's name, or with options as YAML; nothing is loaded."""
        options = {"method": "grade", "rubric": RUBRIC} | judge_options(text, JudgeIdentifier.open)
        check_judge(options)
        _check_rubric(load_rubric(options["rubric"], "grade"))

    @classmethod
    def load(cls, text: str) -> Self:
        """The identifier of a model's name, or of options as YAML."""
        options = judge_options(text, cls.open)
        return cls.open(**options)

    @classmethod
    def open(
        cls,
        model: str = "",
        *,
        rubric: str = RUBRIC,
        endpoint: str = "",
        api_key_env: str = "",
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        concurrency: int = CONCURRENCY,
        cache: str = "",
        batch_size: int = 0,
    ) -> Self:
        """The identifier that these options describe; they are those of the reward term."""
        checked_rubric = load_rubric(rubric, "grade")  # before a model is loaded for nothing
        ask = open_judge(
            model,
            endpoint=endpoint,
            api_key_env=api_key_env,
            timeout=timeout,
            retries=retries,
            concurrency=concurrency,
            cache=cache,
            batch_size=batch_size,
        )
        return cls(ask, checked_rubric, name=f"judge:{model}")

    def assess(
        self,
        seeker_posts: Sequence[str],
        response_posts: Sequence[str],
        *,
        rationales: bool = True,
    ) -> list[Assessment]:
        """Assess pairs of posts. Rationales stay empty, whether they are asked for or not."""
        pairs = list(zip(seeker_posts, response_posts, strict=True))
        return [
            Assessment({m: _judgement(found[m]) for m in MECHANISMS})
            for found in self.grade.probabilities(pairs)
        ]


def _check_rubric(rubric: Rubric) -> None:
    if set(rubric.templates) != set(MECHANISMS) or rubric.answers != LEVELS:
        raise UserError(
            f"rubric {rubric.name}: an identifier needs `scale = [0, 2]` and a table "
            f"`[questions]` of {', '.join(MECHANISMS)}."
        )


def _judgement(probabilities: Sequence[float]) -> Judgement:
    none, weak, strong = probabilities
    level = max(range(3), key=lambda level: probabilities[level])
    return Judgement(level, (none, weak, strong))
