"""An identifier that calls empathic what says sorry, in place of the shipped one."""

from collections.abc import Sequence

from rewards.identifiers import named
from rewards.identifiers.assessment import Assessment, Judgement
from rewriting.exchange import MECHANISMS


class Words:
    name = "words"

    def assess(
        self, seeker_posts: Sequence[str], response_posts: Sequence[str], *, rationales: bool = True
    ) -> list[Assessment]:
        return [self._one("sorry" in response) for response in response_posts]

    @staticmethod
    def _one(empathic: bool) -> Assessment:
        strong, none = Judgement(2, (0.0, 0.0, 1.0), ("sorry",)), Judgement(0, (1.0, 0.0, 0.0))
        return Assessment(dict.fromkeys(MECHANISMS, strong if empathic else none))


def install() -> None:
    """Make it the identifier of every name."""
    named.load_identifier = lambda name="words", **_: Words()  # type: ignore[assignment]
