"""The two terms of contrast, against numbers worked out by hand."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from rewards.named import Models, build_rewards
from rewards.reading.reader import Reading
from rewards.terms.contrast import PROMPT, Contrast, LanguageModelContrast, sample_posts
from rewriting.data import load_exchanges
from rewriting.errors import UserError
from tests.rewards.fakes import FakeIdentifier

VALUES = {"Rex is gone.": (2.0, -0.5), "Poor Rex.": (1.0, 0.25), "I see.": (0.0, -3.0)}
"""contrast and worth of a sentence that stands under a post about Rex."""


class FakeReader:
    """Reads the numbers above; under another post the contrast is −4, in a reply that says "Hi."
    the reply counts 0.5; the critics lie 0.25 either side of both. Keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.replies: list[str] = []

    def read(self, pairs: Sequence[tuple[str, str]], replies: Sequence[str]) -> list[Reading]:
        self.asked += pairs
        self.replies += replies
        return [self._one(*pair, reply) for pair, reply in zip(pairs, replies, strict=True)]

    @staticmethod
    def _one(post: str, sentence: str, reply: str) -> Reading:
        contrast, worth = VALUES[sentence]
        own = contrast if "Rex" in post else -4.0
        zeros = (0.0, 0.0, 0.0)
        fits_reply = 0.5 if reply == "Hi." else 0.0
        return Reading(own, worth, 0.0, zeros, zeros, fits_reply, 0.25, -0.25)


COLUMNS = {
    "completions": ["Hi. Rex is gone. Poor Rex.", "Hi.", "I see. Hi.", "Poor Rex. Hi."],
    "seeker_post": ["Rex died.", "Rex died.", "Rex died.", "I failed."],
    "response_post": ["Hi.", "Hi.", "Hi.", "Hi."],
}


def doubt(worth: float) -> float:
    """The log-probability of an answer, by hand: the logit less the two nats of the decoys."""
    return math.log(1 / (1 + math.exp(2 - worth)))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # (2 + 1) / 2; nothing new; stock; meant for somebody else.
        ({"worth": 0, "reply": 0}, [1.5, 0.0, 0.0, -4.0]),
        ({"worth": 0}, [1.75, 0.0, 0.25, -3.75]),
        ({"worth": 0, "reply": 2}, [2.5, 0.0, 1.0, -3.0]),
        # What one critic says more for the post, it says less for the reply.
        ({"worth": 0, "reply": 1, "pessimism": 2}, [2.0, 0.0, 0.5, -3.5]),
        ({"worth": 0, "reply": 0, "pessimism": 2}, [1.0, 0.0, -0.5, -4.5]),
        ({"worth": 0, "reply": 3, "pessimism": 1}, [2.5, 0.0, 1.0, -3.0]),
        (
            {"worth": 1, "reply": 0},
            [1.5 + (doubt(-0.5) + doubt(0.25)) / 2, 0.0, doubt(-3), doubt(0.25) - 4],
        ),
    ],
)
def test_the_mean_over_the_new_sentences(options: dict[str, float], expected: list[float]) -> None:
    options = {"zero": 0} | options
    assert Contrast(FakeReader(), **options)(**COLUMNS) == pytest.approx(expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("worth", "counted"), [(60.0, 0.0), (2.0, -math.log(2)), (-3.0, doubt(-3)), (-99.0, -6.0)]
)
def test_a_sure_answer_loses_nothing_and_a_sure_decoy_six_nats(
    worth: float, counted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(VALUES, "Poor Rex.", (0.5, worth))
    (value,) = Contrast(FakeReader(), worth=2.0, zero=0.0)(  # type: ignore[arg-type]
        completions=["Poor Rex."], seeker_post=["Rex died."], response_post=[""]
    )
    assert value == pytest.approx(0.5 + 2 * counted)


def test_what_is_better_than_a_sentence_for_somebody_else_is_better_than_nothing() -> None:
    """Two nats above the plain numbers, in rows with a new sentence; keeping the reply earns 0."""
    values = Contrast(FakeReader(), worth=0, reply=0)(**COLUMNS)  # type: ignore[arg-type]
    assert values == pytest.approx([3.5, 0.0, 2.0, -2.0])


def test_only_new_sentences_are_read_each_under_its_own_post() -> None:
    reader = FakeReader()
    Contrast(reader)(**COLUMNS)  # type: ignore[arg-type]
    assert reader.asked == [
        ("Rex died.", "Rex is gone."),
        ("Rex died.", "Poor Rex."),
        ("Rex died.", "I see."),
        ("I failed.", "Poor Rex."),
    ]
    assert reader.replies == ["Hi."] * 4


def test_the_rest_of_the_reply_is_what_is_kept_of_it() -> None:
    reader = FakeReader()
    Contrast(reader)(  # type: ignore[arg-type]
        completions=["Poor Rex. I would call. Bye.", "Poor Rex."],
        seeker_post=["Rex died."] * 2,
        response_post=["Hi. I would call. Bye.", "Hi."],
    )
    assert reader.replies == ["I would call. Bye.", ""]


def test_the_column_says_what_is_new() -> None:
    (value,) = Contrast(FakeReader(), worth=0.0, reply=0.0, zero=0.0)(  # type: ignore[arg-type]
        completions=["Rex is gone. Poor Rex."],
        seeker_post=["Rex died."],
        response_post=["Hi."],
        sentence=["Poor Rex."],
    )
    assert value == 1.0


def test_messages_are_read_as_texts() -> None:
    messages = [[{"role": "assistant", "content": "Hi. Rex is gone."}]]
    (value,) = Contrast(FakeReader(), worth=0.0, reply=0.0, zero=0.0)(  # type: ignore[arg-type]
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
    rewards = build_rewards(
        {"contrast": {"worth": 0, "reply": 0, "zero": 0}, "language_model_contrast": 0}, models
    )
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


def test_an_echo_of_the_post_or_of_the_reply_earns_nothing() -> None:
    class Fitting:
        def read(self, pairs: Sequence[tuple[str, str]], replies: Sequence[str]) -> list[Reading]:
            return [Reading(4.5, 60.0, 1.0, (0.0,) * 3, (0.0,) * 3, 3.0) for _ in pairs]

    values = Contrast(Fitting(), zero=0)(  # type: ignore[arg-type]
        completions=["Ok. You failed the test.", "Ok. That must sting.", "Call him now. Call him."],
        seeker_post=["I failed the test."] * 3,
        response_post=["Ok.", "Ok.", "Call him now."],
    )
    # Too short to hold three words in a row, the last one is not known for an echo.
    assert values == [0.0, 6.0, 6.0]
    (value,) = Contrast(Fitting(), zero=0)(  # type: ignore[arg-type]
        completions=["Please call him now. Do call him now."],
        seeker_post=["I failed the test."],
        response_post=["Please call him now."],
    )
    assert value == pytest.approx(3.0)  # one of its two triples is copied


@pytest.mark.parametrize("option", ["worth", "reply", "pessimism", "zero"])
def test_options_are_numbers(option: str) -> None:
    with pytest.raises(UserError, match=f"{option} is a number"):
        Contrast(FakeReader(), **{option: "1"})  # type: ignore[arg-type]
