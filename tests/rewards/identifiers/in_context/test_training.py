"""Fitting a gate on toys: need is learnt from posts, fit from replies that were moved."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from rewards.identifiers.assessment import Assessment, Judgement
from rewards.identifiers.in_context.gate import ContextGate, pairs_of, term_shares, words_of
from rewards.identifiers.in_context.training import (
    Material,
    Posts,
    fit_gate,
    fit_need,
    held_out_logits,
    known_terms,
    term_features,
)
from rewards.identifiers.seed_sentences import SentenceVectors
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange, Label

TOPICS = ("exam", "dog", "rent", "leg")


class Encoder:
    """One number for pain, one for calm, one per topic."""

    def encode(self, texts: list[str], **_: Any) -> np.ndarray[Any, Any]:
        words = ("pain", "calm", *TOPICS)
        return np.array([[0.1 + text.count(word) for word in words] for text in texts])


class Inner:
    """Calls every reply strong; its sentences that say sorry carry it."""

    name = "inner"

    def assess(
        self, seeker_posts: Sequence[str], response_posts: Sequence[str], *, rationales: bool = True
    ) -> list[Assessment]:
        words = [tuple(p for p in reply.split(". ") if "sorry" in p) for reply in response_posts]
        return [
            Assessment(dict.fromkeys(MECHANISMS, Judgement(2, (0.0, 0.0, 1.0), found)))
            for found in words
        ]


def reply(place: int) -> Exchange:
    topic = TOPICS[place % 4]
    labels = dict.fromkeys(MECHANISMS, Label(2, ("sorry",)))
    post = f"pain with my {topic} {place}"
    return Exchange(post, f"so sorry for the {topic}. Rest.", labels=labels)


REPLIES = [reply(place) for place in range(24)]
CALM = [f"calm about the {TOPICS[place % 4]} {place}" for place in range(24)]


@pytest.fixture(scope="module")
def fitted() -> tuple[ContextGate, dict[str, Any]]:
    vectors = SentenceVectors(Encoder(), name="toy", batch_size=8)
    material = Material({"forum": REPLIES}, {"chat": CALM})
    return fit_gate(Inner(), vectors, material, REPLIES, passing=0.75)


def verdict(gate: ContextGate, post: str, text: str) -> Any:
    return gate([(post, text, [[text], [], []])])[0][0]


def test_pain_counts_and_calm_does_not(fitted: tuple[ContextGate, dict[str, Any]]) -> None:
    gate, figures = fitted
    assert verdict(gate, "pain and pain with my dog", "sorry for the dog").counts
    assert not verdict(gate, "calm about the dog", "sorry for the dog").counts
    assert figures["need"]["chat"] == {"posts": 24, "passing": 0.0}
    assert figures["need"]["forum"]["passing"] >= 70


def test_words_about_the_post_weigh_more(fitted: tuple[ContextGate, dict[str, Any]]) -> None:
    gate, figures = fitted
    own = verdict(gate, "pain and pain with my dog", "sorry for the dog").gate
    other = verdict(gate, "pain and pain with my dog", "sorry for the rent").gate
    assert own > 4 * other
    assert min(figures["fit_auroc"].values()) > 90
    assert figures["fit_pairs"] == 24 * 3


def test_sharpness_multiplies_the_logits_of_fit(fitted: tuple[ContextGate, dict[str, Any]]) -> None:
    plain, _ = fitted
    material = Material({"forum": REPLIES}, {"chat": CALM})
    sharp, _ = fit_gate(Inner(), plain.vectors, material, REPLIES, passing=0.75, sharpness=3.0)
    for name in ("fit_slopes_2", "fit_biases_2"):
        assert getattr(sharp.weights, name) == pytest.approx(3 * getattr(plain.weights, name))
    assert sharp.weights.need_bias == plain.weights.need_bias


def test_every_source_weighs_alike_and_painful_chats_little() -> None:
    few = [Exchange("only post", "reply")]
    material = Material({"large": REPLIES[:16], "small": few}, {"chat": CALM}, ["ouch"])
    posts = Posts.of(material)
    weights = dict(zip(posts.sources, posts.weights, strict=True))
    assert weights == {"large": 1.0, "small": 16.0, "chat": 1.0, "painful": 1.6}
    assert sum(posts.needs) == 18


def test_a_text_is_not_judged_by_itself() -> None:
    # One text comes six times and is a one every time; all others say the opposite of its feature.
    features = np.array([[1.0]] * 6 + [[0.9]] * 10 + [[0.0]] * 10)
    is_one = np.array([1] * 6 + [0] * 10 + [1] * 10)
    texts = ["same"] * 6 + [f"other {place}" for place in range(20)]
    logits = held_out_logits(features, is_one, np.ones(26), texts, 100.0)
    assert logits[0] < 0
    assert np.ptp(logits[:6]) == 0


def test_posts_without_english_words_are_told() -> None:
    posts = [f"{number} 你好" for number in range(30)]
    material = Material({"forum": [Exchange(post, "好") for post in posts[:15]]}, {"c": posts[15:]})
    with pytest.raises(UserError, match="no English word"):
        fit_need(SentenceVectors(Encoder(), name="toy"), material, 0.9)


def test_only_frequent_terms_are_known() -> None:
    texts = ["so sad", "so glad", "So so", "so", "so long", "sad", "so"]
    assert known_terms(texts, words_of) == ("so",)
    assert known_terms(texts, pairs_of) == ("^ so",)
    found = term_features(["so sad", "glad", ""], ("so",), words_of)
    assert found.tolist() == [[2**-0.5], [0.0], [0.0]]


def test_a_gate_reads_terms_as_its_training_did() -> None:
    text = "so sad, so sad. Really?"
    known = (*words_of(text), *pairs_of(text))
    apart = [term_features([text], known, terms_of)[0] for terms_of in (words_of, pairs_of)]
    assert dict(zip(known, sum(apart), strict=True)) == term_shares(text)
