"""What an identifier that reads sentences with their post pays for, by hand, and its folder."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from rewards.identifiers.joint import JointIdentifier
from rewards.identifiers.named import load_identifier
from rewards.reading.sense_model import BARS, SenseModel, SenseReading
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS
from tests.rewards.fakes import ODD_TEXTS
from tests.rewards.reading.tiny import in_half_precision, write_tiny_bert

BARS_BY_HAND = ((0.5, 0.5, 0.7), (0.5, 0.5, 0.5))


class FakeModel:
    """A sentence shows interpretations where the post holds its last word; a question asks."""

    def read(self, pairs: Sequence[tuple[str, str]]) -> list[SenseReading]:
        return [self._reading(post, text) for post, text in pairs]

    def _reading(self, post: str, text: str) -> SenseReading:
        fits = 0.9 if text.rstrip(".?").split()[-1] in post else 0.1
        asks = 0.6 if text.endswith("?") else 0.0
        return SenseReading(1.0, 1.0, 0.0, (0.0, fits, asks), (0.2, 0.8, 0.9))


@pytest.fixture
def identifier() -> JointIdentifier:
    return JointIdentifier(FakeModel(), BARS_BY_HAND)  # type: ignore[arg-type]


def levels(identifier: JointIdentifier, post: str, response: str) -> list[int]:
    (found,) = identifier.assess([post], [response])
    return [found.judgements[mechanism].level for mechanism in MECHANISMS]


def test_the_same_words_count_where_they_are_true(identifier: JointIdentifier) -> None:
    response = "Take a walk. You are alone."
    assert levels(identifier, "I am alone.", response) == [0, 2, 0]
    assert levels(identifier, "I am never by myself.", response) == [0, 0, 0]


def test_probabilities_and_rationales_are_those_of_the_best_sentence(
    identifier: JointIdentifier,
) -> None:
    (found,) = identifier.assess(["I am alone."], ["Take a walk. You are alone."])
    judgement = found.judgements["interpretations"]
    assert judgement.probabilities == pytest.approx((0.1, 0.9 * 0.2, 0.9 * 0.8))
    assert judgement.rationales == ("You are alone.",)
    (found,) = identifier.assess(["I am alone."], ["You are alone."], rationales=False)
    assert found.judgements["interpretations"].rationales == ()


def test_each_mechanism_has_its_bar(identifier: JointIdentifier) -> None:
    assert levels(identifier, "A", "Why me?") == [0, 0, 0]  # 0.6 is below 0.7
    identifier.bars = ((0.5,) * 3, (0.5,) * 3)
    assert levels(identifier, "A", "Why me?") == [0, 0, 2]


def test_nothing_shows_nothing(identifier: JointIdentifier) -> None:
    assert levels(identifier, "A", "") == [0, 0, 0]
    assert identifier.assess([], []) == []


def test_a_folder_with_bars_is_an_identifier(tmp_path: Path) -> None:
    encoder = write_tiny_bert(tmp_path / "encoder")
    model = in_half_precision(SenseModel(str(encoder), rank=2, max_tokens=32)).eval()
    model.save(tmp_path / "plain")
    with pytest.raises(UserError, match="no levels were fitted"):
        JointIdentifier.load(tmp_path / "plain")
    model.save(tmp_path / "fitted", **{BARS: BARS_BY_HAND})
    found = load_identifier(str(tmp_path / "fitted"))
    assert isinstance(found, JointIdentifier)
    assert found.bars == BARS_BY_HAND
    posts = [text[:200] for text in ODD_TEXTS]
    together = found.assess(posts, posts)
    assert [found.assess([post], [post])[0] for post in posts] == together


@pytest.mark.integration
def test_the_shipped_one_asks_the_model_of_the_reward_and_of_the_gate() -> None:
    found = load_identifier("joint")
    assert isinstance(found, JointIdentifier)
    assert found.model is SenseModel.shared()
