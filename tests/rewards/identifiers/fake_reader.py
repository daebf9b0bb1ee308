"""A reader that reads its numbers off words, and a grounding that takes them as they are."""

from collections.abc import Sequence

from rewards.identifiers.grounded.grounding import FEATURES, Grounding, Rule
from rewards.reading.reader import Reading

WORDS = ("sorry", "see", "why")
SURE = 4.0


class FakeReader:
    """A mechanism's form is there with its word, strongly so with `so`; `for you` fits; a post
    that says calm needs nothing. Keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def read(self, pairs: Sequence[tuple[str, str]], *, alone: bool) -> list[Reading]:
        assert alone  # levels do not need the second opinion
        self.asked += pairs
        return [self._one(post.lower(), sentence.lower()) for post, sentence in pairs]

    @staticmethod
    def _one(post: str, sentence: str) -> Reading:
        strong = SURE if "so " in sentence else -SURE
        return Reading(
            contrast=3.0 if "for you" in sentence else -3.0,
            worth=0.0,
            need=-5.0 if "calm" in post else 5.0,
            some=tuple(SURE if word in sentence else -SURE for word in WORDS),
            strong=(strong,) * 3,
        )


def rule(bias: float = 0.0, **weights: float) -> Rule:
    assert weights.keys() <= set(FEATURES)
    return Rule((*(weights.get(name, 0.0) for name in FEATURES), bias))


def by_form() -> Grounding:
    """Levels by form alone: some at the logit of some, strong at that of strong."""
    return Grounding((rule(some=1.0),) * 3, (rule(strong=1.0),) * 3)
