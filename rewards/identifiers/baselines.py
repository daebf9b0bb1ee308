"""Two identifiers to beat: the most frequent level, and words without order.

Both look at the response alone, are fitted in seconds and are not saved: they are rows of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewards.identifiers.assessment import Assessment, Judgement
from rewriting.errors import UserError
from rewriting.exchange import LEVELS, MECHANISMS, Exchange
from rewriting.sentences import split_sentences


@dataclass(frozen=True, slots=True)
class Majority:
    """Calls each mechanism's most frequent level, with the shares of the levels as probabilities.

    It gives no rationales, and so shows how much of a rationale score comes from examples that
    have none.
    """

    judgements: dict[str, Judgement]
    name: str = "majority"

    @classmethod
    def fit(cls, exchanges: Sequence[Exchange]) -> Majority:
        shares = {mechanism: level_shares(exchanges, mechanism) for mechanism in MECHANISMS}
        return cls({m: Judgement(int(s.argmax()), _three(s)) for m, s in shares.items()})

    def assess(
        self, seeker_posts: Sequence[str], response_posts: Sequence[str], *, rationales: bool = True
    ) -> list[Assessment]:
        pairs = zip(seeker_posts, response_posts, strict=True)
        return [Assessment(self.judgements) for _ in pairs]


@dataclass(frozen=True, slots=True)
class WordWeights:
    """Logistic regression on tf-idf of the response's words and pairs of words.

    Levels weigh alike in the fit, or the rare ones would never be called; the probabilities are
    turned back to the shares of the training rows. Where a level above 0 is called, the sentence
    with the highest weight for it is the rationale.
    """

    words: Any
    models: dict[str, Any]
    shares: dict[str, np.ndarray[Any, Any]]
    name: str = "tf-idf logistic regression"

    @classmethod
    def fit(cls, exchanges: Sequence[Exchange], *, strength: float = 1.0) -> WordWeights:
        """strength: scikit-learn's C, the inverse of the regularisation."""
        from sklearn.dummy import DummyClassifier
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression

        words = TfidfVectorizer(
            ngram_range=(1, 2), min_df=2, sublinear_tf=True, token_pattern=r"\w+|\?"
        )
        words.fit([exchange.response_post for exchange in exchanges])
        models, shares = {}, {}
        for mechanism in MECHANISMS:
            shares[mechanism] = level_shares(exchanges, mechanism)
            rows = [exchange for exchange in exchanges if mechanism in exchange.labels]
            model = LogisticRegression(C=strength, class_weight="balanced", max_iter=2000)
            if np.count_nonzero(shares[mechanism]) < 2:  # the regression refuses a single level
                model = DummyClassifier()
            counts = words.transform([exchange.response_post for exchange in rows])
            models[mechanism] = model.fit(counts, [e.labels[mechanism].level for e in rows])
        return cls(words, models, shares)

    def assess(
        self, seeker_posts: Sequence[str], response_posts: Sequence[str], *, rationales: bool = True
    ) -> list[Assessment]:
        posts = [response for _, response in zip(seeker_posts, response_posts, strict=True)]
        if not posts:
            return []
        counts = self.words.transform(posts)
        judged: list[dict[str, Judgement]] = [{} for _ in posts]
        for mechanism in MECHANISMS:
            balanced = self._probabilities(mechanism, counts)
            honest = balanced * self.shares[mechanism]
            honest /= honest.sum(axis=1, keepdims=True)
            for row, post in enumerate(posts):
                level = int(balanced[row].argmax())
                pieces = self._rationales(mechanism, level, post) if rationales and level else ()
                judged[row][mechanism] = Judgement(level, _three(honest[row]), pieces)
        return [Assessment(judgements) for judgements in judged]

    def _probabilities(self, mechanism: str, counts: Any) -> np.ndarray[Any, Any]:
        """[N, 3], as if the levels were equally frequent; 0 for a level that never occurred."""
        model = self.models[mechanism]
        found = np.zeros((counts.shape[0], len(LEVELS)))
        found[:, model.classes_] = model.predict_proba(counts)
        return found

    def _rationales(self, mechanism: str, level: int, post: str) -> tuple[str, ...]:
        sentences = split_sentences(post).texts
        if not sentences:
            return ()
        weights = self._probabilities(mechanism, self.words.transform(sentences))[:, level]
        return (sentences[int(weights.argmax())],)


BASELINES: dict[str, Callable[[Sequence[Exchange]], Majority | WordWeights]] = {
    "majority": Majority.fit,
    "tf-idf logistic regression": WordWeights.fit,
}


def level_shares(exchanges: Sequence[Exchange], mechanism: str) -> np.ndarray[Any, Any]:
    """[3]: how often each level is among the labelled exchanges."""
    levels = [e.labels[mechanism].level for e in exchanges if mechanism in e.labels]
    if not levels:
        raise UserError(f"no exchange is labelled for {mechanism}: there is nothing to learn from.")
    return np.bincount(levels, minlength=len(LEVELS)) / len(levels)


def _three(values: Any) -> tuple[float, float, float]:
    none, weak, strong = (float(value) for value in values)
    return none, weak, strong
