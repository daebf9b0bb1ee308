"""Fitting the gate of context: two small rules on one frozen encoder.

    need    posts of people who seek support, against posts in which nothing calls for it
    fit     empathic replies in place, against the same replies moved to another seeker's post

The bar of need is set so that nearly all posts of people who seek support pass, by logits from
folds that had not seen the post. Nothing of the probe is in it: no seed sentence, no inserted one.

Legend: N rows, D width of an embedding, V known terms, F features.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rewards.identifiers.assessment import Identifier
from rewards.identifiers.in_context.gate import ContextGate, GateWeights, Row, pairs_of, words_of
from rewards.identifiers.moved_posts import moved
from rewards.identifiers.seed_sentences import SentenceVectors
from rewriting.data.split import normalised
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange
from rewriting.statistics.classification import auroc

if TYPE_CHECKING:
    from numpy.typing import NDArray

PLEASANT: Final = frozenset(
    (
        *("joyful", "excited", "proud", "content", "confident", "prepared", "anticipating"),
        *("impressed", "trusting", "grateful"),
    )
)
PAINFUL: Final = frozenset(
    (
        *("sad", "devastated", "lonely", "afraid", "terrified", "anxious", "apprehensive"),
        *("ashamed", "guilty", "embarrassed", "disappointed"),
    )
)
"""EmpatheticDialogues' emotions (arXiv 1811.00207) of posts that call for no comfort, and of posts
that do. Anger, envy, disgust and nostalgia are in neither: they may be either."""

Terms = Callable[[str], list[str]]
FOLDS: Final = 5
PAINFUL_SHARE: Final = 0.1  # how much painful posts of chats weigh beside a source of support
NEED_PENALTY: Final = 3.0  # scikit-learn's C; the features are unit vectors
TERMS_PENALTY: Final = 3.0
RULE_PENALTY: Final = 100.0
FEWEST_POSTS: Final = 6  # in which a word or pair must be to be known


@dataclass(frozen=True, slots=True)
class Material:
    """What a gate is fitted on, by source.

    support: replies to people who seek support. neutral: posts that call for no empathy. painful:
    further posts that do, of chats: many tell of small troubles, so they weigh less.
    """

    support: Mapping[str, Sequence[Exchange]]
    neutral: Mapping[str, Sequence[str]]
    painful: Sequence[str] = ()

    @property
    def replies(self) -> list[Exchange]:
        return [exchange for exchanges in self.support.values() for exchange in exchanges]


@dataclass(frozen=True, slots=True)
class Posts:
    """Posts to learn need from. Every source of a side weighs alike, whatever its size: a family
    of posts that was never heard of is more like a small source than like the largest one."""

    texts: list[str] = field(default_factory=list)
    needs: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)

    def add(self, source: str, posts: Sequence[str], need: int, weight: float) -> None:
        self.texts.extend(posts)
        self.needs.extend([need] * len(posts))
        self.weights.extend([weight] * len(posts))
        self.sources.extend([source] * len(posts))

    @classmethod
    def of(cls, material: Material) -> Posts:
        asking = {
            source: list(dict.fromkeys(exchange.seeker_post for exchange in exchanges))
            for source, exchanges in material.support.items()
        }
        calm = {source: list(dict.fromkeys(posts)) for source, posts in material.neutral.items()}
        posts = cls()
        for need, side in ((1, asking), (0, calm)):
            most = max(len(texts) for texts in side.values())
            for source, texts in side.items():
                posts.add(source, texts, need, most / len(texts))
        most = max(len(texts) for texts in asking.values())
        weight = PAINFUL_SHARE * most / max(1, len(material.painful))
        posts.add("painful", material.painful, 1, weight)
        return posts


def fit_gate(
    identifier: Identifier,
    vectors: SentenceVectors,
    material: Material,
    replies: Sequence[Exchange],
    *,
    passing: float = 0.98,
    sharpness: float = 1.0,
) -> tuple[ContextGate, dict[str, Any]]:
    """The gate, and how well its rules do on posts that they had not seen.

    replies: the empathic ones that fit is learnt from. passing: the share of the posts of the
    largest source of support that must pass. What the identifier finds in support is kept that far,
    and the price is paid elsewhere. sharpness: multiplies the logits of fit. The gate then matters
    more beside the level, which a moved reply keeps.
    """
    weights, figures = fit_need(vectors, material, passing)
    gate = ContextGate(vectors, weights)
    own = rows_of(identifier, [(e.seeker_post, e.response_post) for e in replies])
    away = [(post, *row[1:]) for post, row in zip(moved(replies), own, strict=True)]
    empathic_NM = np.array([[e.labels[m].level > 0 for m in MECHANISMS] for e in replies])
    in_place_N2 = gate.features(own)[empathic_NM][:, 1:]
    moved_N2 = gate.features(away)[empathic_NM][:, 1:]
    is_own_N = np.repeat([1, 0], len(in_place_N2))
    slopes, biases = [], []
    for here_N, there_N in zip(in_place_N2.T, moved_N2.T, strict=True):
        fits_N1 = np.concatenate([here_N, there_N])[:, None]
        slope_1, bias = logistic(fits_N1, is_own_N, np.ones(len(is_own_N)), RULE_PENALTY)
        slopes.append(slope_1[0])
        biases.append(bias)
    figures["fit_auroc"] = {
        name: 100 * auroc(is_own_N, np.concatenate([here_N, there_N]))
        for name, here_N, there_N in zip(("reply", "words"), in_place_N2.T, moved_N2.T, strict=True)
    }
    figures["fit_pairs"] = len(in_place_N2)
    fitted = replace(
        weights,
        fit_slopes_2=sharpness * np.array(slopes),
        fit_biases_2=sharpness * np.array(biases),
    )
    return ContextGate(vectors, fitted), figures


def fit_need(
    vectors: SentenceVectors, material: Material, passing: float
) -> tuple[GateWeights, dict[str, Any]]:
    """The rule of need with its bar at 0, the means, and the shares that pass the bar by source."""
    posts = Posts.of(material)
    words, pairs = known_terms(posts.texts, words_of), known_terms(posts.texts, pairs_of)
    if not words or not pairs:
        raise UserError(
            f"no English word, or no pair of them, is in {FEWEST_POSTS} posts to learn need from."
        )
    need_N, weights_N = np.array(posts.needs), np.array(posts.weights)
    rules, biases, held = [], [], []
    for features_NF, penalty in (
        (np.stack(vectors(posts.texts)).astype(np.float64), NEED_PENALTY),
        (term_features(posts.texts, words, words_of), TERMS_PENALTY),
        (term_features(posts.texts, pairs, pairs_of), TERMS_PENALTY),
    ):
        rule_F, bias = logistic(features_NF, need_N, weights_N, penalty)
        rules.append(rule_F)
        biases.append(bias)
        held.append(held_out_logits(features_NF, need_N, weights_N, posts.texts, penalty))
    # How far each of the three is to be trusted, from what they say of posts they had not seen.
    trust_3, _ = logistic(np.stack(held, axis=1), need_N, weights_N, RULE_PENALTY)
    held_N = np.stack(held, axis=1) @ trust_3
    largest = max(material.support, key=lambda source: len(material.support[source]))
    source_N = np.array(posts.sources)
    bar = float(np.quantile(held_N[(source_N == largest) & (need_N == 1)], 1 - passing))
    weights = GateWeights(
        need_weights_D=trust_3[0] * rules[0],
        term_weights_V=np.concatenate([trust_3[1] * rules[1], trust_3[2] * rules[2]]),
        terms=(*words, *pairs),
        need_bias=float(trust_3 @ biases) - bar,
        mean_post_D=mean_vector(vectors, [e.seeker_post for e in material.replies]),
        mean_reply_D=mean_vector(vectors, [e.response_post for e in material.replies]),
        fit_slopes_2=np.zeros(2),
        fit_biases_2=np.zeros(2),
    )
    shares = {
        source: {
            "posts": int((source_N == source).sum()),
            "passing": 100 * float((held_N[source_N == source] > bar).mean()),
        }
        for source in dict.fromkeys(posts.sources)
    }
    return weights, {"need": shares}


def known_terms(texts: Sequence[str], terms_of: Terms) -> tuple[str, ...]:
    """The terms that several of the texts have, in the order of the alphabet."""
    counts = Counter(term for text in texts for term in terms_of(text))
    return tuple(sorted(term for term, count in counts.items() if count >= FEWEST_POSTS))


def term_features(texts: Sequence[str], known: Sequence[str], terms_of: Terms) -> NDArray[Any]:
    """[N, V]: the shares of the known terms, as `term_shares` has them."""
    places = {term: place for place, term in enumerate(known)}
    shares_NV = np.zeros((len(texts), len(known)))
    for row, text in enumerate(texts):
        terms = terms_of(text)
        found = [places[term] for term in terms if term in places]
        shares_NV[row, found] = len(terms) ** -0.5 if found else 0.0
    return shares_NV


def rows_of(identifier: Identifier, pairs: Sequence[tuple[str, str]]) -> list[Row]:
    """Posts and replies with the rationales of each mechanism, as the gate will get them."""
    assessments = identifier.assess([post for post, _ in pairs], [reply for _, reply in pairs])
    return [
        (post, reply, [found.judgements[m].rationales for m in MECHANISMS])
        for (post, reply), found in zip(pairs, assessments, strict=True)
    ]


def mean_vector(vectors: SentenceVectors, texts: Sequence[str]) -> NDArray[Any]:
    mean_D: NDArray[Any] = np.stack(vectors(list(dict.fromkeys(texts)))).mean(0, dtype=np.float64)
    return mean_D


def logistic(
    features_NF: NDArray[Any], is_one_N: NDArray[Any], weights_N: NDArray[Any], penalty: float
) -> tuple[NDArray[Any], float]:
    """Weights [F] and bias of a logistic regression; both sides weigh alike."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=penalty, max_iter=5000, class_weight="balanced")
    model.fit(features_NF, is_one_N, sample_weight=weights_N)
    return model.coef_[0], float(model.intercept_[0])


def held_out_logits(
    features_NF: NDArray[Any],
    is_one_N: NDArray[Any],
    weights_N: NDArray[Any],
    texts: Sequence[str],
    penalty: float,
) -> NDArray[Any]:
    """[N]: the logit of each row by a rule fitted without the row's text."""
    from sklearn.model_selection import GroupKFold

    groups = [normalised(text) for text in texts]
    logits_N = np.zeros(len(is_one_N))
    for rest, held in GroupKFold(FOLDS).split(features_NF, is_one_N, groups):
        rule, bias = logistic(features_NF[rest], is_one_N[rest], weights_N[rest], penalty)
        logits_N[held] = features_NF[held] @ rule + bias
    return logits_N
