"""The two terms of contrast, against numbers worked out by hand."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from rewards.contrast import PROMPT, Contrast, LanguageModelContrast, sample_posts
from rewards.named import Models, build_rewards
from rewards.reading.reader import Reading
from rewriting.data import load_exchanges
from rewriting.errors import UserError
from tests.rewards.fakes import FakeIdentifier

VALUES = {"Rex is gone.": (2.0, -0.5), "Poor Rex.": (1.0, 0.25), "I see.": (0.0, -3.0)}
"""contrast and worth of a sentence that stands under a post about Rex."""


class FakeReader:
    """Reads the numbers above; under another post the contrast is −4. Keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def read(self, pairs: Sequence[tuple[str, str]]) -> list[Reading]:
        self.asked += pairs
        return [self._one(*pair) for pair in pairs]

    @staticmethod
    def _one(post: str, sentence: str) -> Reading:
        contrast, worth = VALUES[sentence]
        zeros = (0.0, 0.0, 0.0)
        return Reading(contrast if "Rex" in post else -4.0, worth, 0.0, zeros, zeros)


COLUMNS = {
    "completions": ["Hi. Rex is gone. Poor Rex.", "Hi.", "I see. Hi.", "Poor Rex. Hi."],
    "seeker_post": ["Rex died.", "Rex died.", "Rex died.", "I failed."],
    "response_post": ["Hi.", "Hi.", "Hi.", "Hi."],
}


@pytest.mark.parametrize(
    ("worth", "expected"),
    [
        # (2 + 1) / 2 and (−0.5 + 0.25) / 2; nothing new; stock; meant for somebody else.
        (0.0, [1.5, 0.0, 0.0, -4.0]),
        (1.0, [1.375, 0.0, -3.0, -3.75]),
        (2.0, [1.25, 0.0, -6.0, -3.5]),
    ],
)
def test_the_mean_over_the_new_sentences(worth: float, expected: list[float]) -> None:
    assert Contrast(FakeReader(), worth=worth)(**COLUMNS) == pytest.approx(expected)  # type: ignore[arg-type]


def test_worth_counts_once_unless_told() -> None:
    assert Contrast(FakeReader())(**COLUMNS) == pytest.approx([1.375, 0.0, -3.0, -3.75])  # type: ignore[arg-type]


@pytest.mark.parametrize(("worth", "counted"), [(9.0, 3.0), (3.0, 3.0), (-2.5, -2.5), (-9.0, -3.0)])
def test_worth_is_bounded(worth: float, counted: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VALUES, "Poor Rex.", (0.5, worth))
    (value,) = Contrast(FakeReader(), worth=2.0)(  # type: ignore[arg-type]
        completions=["Poor Rex."], seeker_post=["Rex died."], response_post=[""]
    )
    assert value == 0.5 + 2 * counted


def test_only_new_sentences_are_read_each_under_its_own_post() -> None:
    reader = FakeReader()
    Contrast(reader)(**COLUMNS)  # type: ignore[arg-type]
    assert reader.asked == [
        ("Rex died.", "Rex is gone."),
        ("Rex died.", "Poor Rex."),
        ("Rex died.", "I see."),
        ("I failed.", "Poor Rex."),
    ]


def test_the_column_says_what_is_new() -> None:
    (value,) = Contrast(FakeReader(), worth=0.0)(  # type: ignore[arg-type]
        completions=["Rex is gone. Poor Rex."],
        seeker_post=["Rex died."],
        response_post=["Hi."],
        sentence=["Poor Rex."],
    )
    assert value == 1.0


def test_messages_are_read_as_texts() -> None:
    messages = [[{"role": "assistant", "content": "Hi. Rex is gone."}]]
    (value,) = Contrast(FakeReader(), worth=0.0)(  # type: ignore[arg-type]
        completions=messages, seeker_post=["Rex died."], response_post=["Hi."]
    )
    assert value == 2.0


@dataclass
class Score:
    total: float


class FakeBackbone:
    """log p is 0 where the post of the prompt names the sentence's last word, else log 1/4."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def scores(self, prefixes: Sequence[str], continuations: Sequence[str]) -> list[Score]:
        self.asked += zip(prefixes, continuations, strict=True)
        words = [text.rstrip(".").split()[-1] for text in continuations]
        return [
            Score(0.0 if word in prefix else math.log(1 / 4))
            for prefix, word in zip(prefixes, words, strict=True)
        ]


OTHERS = ["I failed my exam.", "My boss shouts.", "No sleep."]


def test_a_language_model_as_critic_by_hand() -> None:
    backbone = FakeBackbone()
    values = LanguageModelContrast(backbone, posts=OTHERS)(  # type: ignore[arg-type]
        completions=["Hi. Poor Rex.", "Hi. Poor exam.", "Hi. Poor thing.", "Hi.", "Rex. Exam. Hi."],
        seeker_post=[" Rex died.\n"] * 5,
        response_post=["Hi."] * 5,
    )
    # Fits this post alone: 1 over the mean of 1, 1/4, 1/4, 1/4. Fits another: 1/4 over the same.
    own, other = math.log(1 / (7 / 16)), math.log((1 / 4) / (7 / 16))
    # "Exam" is written with a capital nowhere: equal after all posts, so 0.
    assert values == pytest.approx([own, other, 0.0, 0.0, own / 2])
    assert backbone.asked[:4] == [
        (PROMPT.format(post), "Poor Rex.") for post in ("Rex died.", *OTHERS)
    ]
    assert len(backbone.asked) == 5 * 4


class Certain(FakeBackbone):
    """The sentence is certain after its post and out of the question after any other."""

    def scores(self, prefixes: Sequence[str], continuations: Sequence[str]) -> list[Score]:
        return [Score(0.0 if "Rex" in prefix else -1e6) for prefix in prefixes]


def test_no_sentence_is_worth_more_than_the_log_of_the_number_of_posts() -> None:
    def value(post: str) -> float:
        (found,) = LanguageModelContrast(Certain(), posts=OTHERS)(  # type: ignore[arg-type]
            completions=["Poor Rex."], seeker_post=[post], response_post=[""]
        )
        return found

    assert value("Rex died.") == pytest.approx(math.log(4))
    assert value("I failed.") == pytest.approx(0.0)  # as unlikely after all of them: no overflow


def test_the_posts_to_contrast_with_are_of_different_topics() -> None:
    topics = {e.seeker_post: e.extra["topic"] for e in load_exchanges("sample:train")}
    posts = LanguageModelContrast(FakeBackbone(), num_posts=5).posts  # type: ignore[arg-type]
    assert posts == sample_posts(5)
    assert len({topics[post] for post in posts}) == 5
    for count in (0, 13):
        with pytest.raises(UserError, match=f"num_posts is 1 to 12, not {count}"):
            sample_posts(count)


def test_the_terms_by_name() -> None:
    backbone = FakeBackbone()
    models = Models(reader=FakeReader(), language_model=backbone)
    rewards = build_rewards({"contrast": {"worth": 0}, "language_model_contrast": 0}, models)
    scores = rewards.score(**COLUMNS)
    assert scores.terms["contrast"] == [1.5, 0.0, 0.0, -4.0]
    assert len(backbone.asked) == 4 * (1 + 6)  # four new sentences after seven posts each
    assert scores.totals == [1.5, 0.0, 0.0, -4.0]


def test_the_reader_is_that_of_the_identifier_unless_one_is_given() -> None:
    class Grounded(FakeIdentifier):
        reader = FakeReader()

    own = FakeReader()
    assert Models(identifier=Grounded()).reader is Grounded.reader
    assert Models(identifier=Grounded(), reader=own).reader is own


def test_an_echo_of_the_post_earns_nothing() -> None:
    class Fitting:
        def read(self, pairs: Sequence[tuple[str, str]]) -> list[Reading]:
            return [Reading(4.5, 3.0, 1.0, (0.0,) * 3, (0.0,) * 3) for _ in pairs]

    term = Contrast(Fitting())  # type: ignore[arg-type]
    values = term(
        completions=["Ok. You failed the test.", "Ok. That must sting."],
        seeker_post=["I failed the test.", "I failed the test."],
        response_post=["Ok.", "Ok."],
    )
    assert values == [0.0, 7.5]


def test_worth_is_a_number() -> None:
    with pytest.raises(UserError, match="worth is a number"):
        Contrast(FakeReader(), worth="1")  # type: ignore[arg-type]
