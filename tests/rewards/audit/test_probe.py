"""The audit counts what an identifier calls empathic, and tells what rises."""

from collections.abc import Sequence

import pytest

from rewards.audit.probe import (
    context_sensitivity,
    insertion_probe,
    mismatch_probe,
    rising_terms,
    with_seed,
)
from rewards.identifiers.assessment import Assessment, Judgement
from rewards.identifiers.moved_posts import moved
from rewards.identifiers.seed_sentences import SEEDS
from rewriting.exchange import MECHANISMS, Exchange, Label
from rewriting.sentences import split_sentences


class Naive:
    """Calls a response empathic when it holds a word of feeling, whatever the post says."""

    name = "naive"

    def level(self, seeker_post: str, response_post: str) -> int:
        return 2 if "feel" in response_post else 0

    def assess(
        self,
        seeker_posts: Sequence[str],
        response_posts: Sequence[str],
        *,
        rationales: bool = True,
    ) -> list[Assessment]:
        found = []
        for seeker_post, response_post in zip(seeker_posts, response_posts, strict=True):
            high = self.level(seeker_post, response_post) == 2
            judgement = Judgement(2 * high, (1.0 - high, 0.0, float(high)))
            found.append(Assessment(dict.fromkeys(MECHANISMS, judgement)))
        return found


class Careful(Naive):
    """Wants the feeling to be about the post's own subject as well."""

    name = "careful"

    def level(self, seeker_post: str, response_post: str) -> int:
        return 2 if "feel" in response_post and seeker_post.split()[-1] in response_post else 0


CHATS = [Exchange(f"I like topic{i}", "Me too. It rains here.", id=str(i)) for i in range(20)]


def test_shares_before_and_after_per_seed() -> None:
    figures = insertion_probe(Naive(), CHATS)
    reactions = figures["emotional_reactions"]
    assert reactions["flagged_before"] == 0
    assert reactions["seeds"] == {
        "I know how you feel.": 100,
        "I'm sorry.": 0,
        "I feel you.": 100,
    }
    assert reactions["flagged_after"] == pytest.approx(200 / 3)
    assert figures["explorations"]["flagged_after"] == pytest.approx(100 / 3)
    assert {one["n"] for one in figures.values()} == {20}


def test_the_seed_is_inserted_whole_at_various_places() -> None:
    places = set()
    for chat in CHATS:
        sentences = split_sentences(with_seed(chat, "I'm sorry.")).texts
        assert len(sentences) == 3
        places.add(sentences.index("I'm sorry."))
    assert places == {0, 1, 2}
    assert with_seed(CHATS[0], "Why?") == with_seed(CHATS[0], "Why?")


def test_nobody_keeps_their_own_post() -> None:
    replies = [Exchange(f"post {i // 2}", f"reply {i}") for i in range(9)]
    for exchange, post in zip(replies, moved(replies), strict=True):
        assert post != exchange.seeker_post
    assert sorted(moved(replies)) == sorted(exchange.seeker_post for exchange in replies)


def empathic(i: int) -> Exchange:
    labels = {mechanism: Label(2) for mechanism in MECHANISMS}
    return Exchange(f"I lost my thing{i}", f"I feel for you and thing{i}", labels=labels)


def test_moved_replies_unmask_an_identifier_that_reads_the_surface() -> None:
    replies = [empathic(i) for i in range(10)]
    surface, context = mismatch_probe(Naive(), replies), mismatch_probe(Careful(), replies)
    assert surface["interpretations"] == {
        "flagged_in_place": 100,
        "flagged_moved": 100,
        "expected_in_place": 2,
        "expected_moved": 2,
        "auroc": 50,
        "n": 10,
    }
    assert context["interpretations"]["flagged_moved"] == 0
    assert context["interpretations"]["auroc"] == 100


def test_replies_without_the_mechanism_do_not_count() -> None:
    plain = Exchange("a", "b", labels={mechanism: Label(0) for mechanism in MECHANISMS})
    assert mismatch_probe(Naive(), [plain, plain]) == {}


def test_context_sensitivity_is_the_mean_over_mechanisms() -> None:
    inserted = {"a": {"flagged_before": 0.0, "flagged_after": 90.0}}
    inserted["b"] = {"flagged_before": 10.0, "flagged_after": 100.0}
    moved_away = {"a": {"expected_in_place": 1.0, "expected_moved": 0.5, "auroc": 75.0, "n": 3}}
    found = context_sensitivity(inserted, moved_away)
    assert found == {
        "flagged_before": 5.0,
        "flagged_after": 95.0,
        "expected_in_place": 1.0,
        "expected_moved": 0.5,
        "auroc": 75.0,
    }
    assert set(context_sensitivity(inserted, {})) == {"flagged_before", "flagged_after"}


def test_which_terms_rise() -> None:
    def length(completions: Sequence[str], **_: object) -> list[float]:
        return [float(len(completion)) for completion in completions]

    def shorter(completions: Sequence[str], **_: object) -> list[float | None]:
        return [None if i else -float(len(text)) for i, text in enumerate(completions)]

    rises = rising_terms({"length": length, "shorter": shorter}, CHATS)
    assert rises["length"].share_rising == 100
    assert rises["length"].n == 20
    assert rises["shorter"].share_rising == 0
    assert rises["shorter"].n == 1
    # The first context gets the first seed and a space.
    first = next(iter(SEEDS.values()))[0]
    assert rises["shorter"].mean_change == -(len(first) + 1)
