"""Features, rules and bars by hand; that a fit finds what the rows hold."""

import json
import math
from collections.abc import Sequence

import numpy as np
import pytest

from rewards.identifiers.grounded.fit import (
    MOVED_WEIGHT,
    NOTHING,
    Row,
    fitted_grounding,
    rows_of,
    with_bars,
)
from rewards.identifiers.grounded.grounding import (
    FEATURES,
    Grounding,
    Rule,
    echoed,
    features,
)
from rewards.identifiers.grounded.identifier import GroundedIdentifier
from rewards.reading.blocks import KIND_LEVELS
from rewards.reading.reader import Reading
from rewriting.exchange import MECHANISMS, Exchange, Label
from tests.rewards.identifiers.fake_reader import FakeReader, by_form, rule


def sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


@pytest.mark.parametrize(
    ("sentence", "share"),
    [
        ("I lost my dog.", 1.0),
        ("You lost your dog?", 1.0),  # the persons are made one
        ("you LOST your, dog", 1.0),
        ("I lost my cat.", 0.5),  # i lost my; not lost my cat
        ("You’re sad and you lost your dog", 0.4),  # 2 of 5: i lost my, lost my dog
        ("My lost dog.", 0.0),  # the words, but not in their order
        ("Poor dog.", 0.0),  # too short for three words
        ("", 0.0),
    ],
)
def test_the_share_that_is_echoed(sentence: str, share: float) -> None:
    assert echoed("Today I'm sad: I lost my dog.", sentence) == pytest.approx(share)


def test_a_rule_by_hand() -> None:
    probabilities = Rule((2.0, -1.0, 0.5))(np.array([[1.0, 2.5], [0.0, 0.5], [1e9, 0.0]]))
    assert probabilities.tolist() == pytest.approx([0.5, 0.5, 1.0])
    assert Rule((2.0, -1.0, 0.5))(np.array([[math.log(3), 0.5]])) == pytest.approx([0.9])


def test_a_fitted_rule_tells_apart_and_is_in_plain_units() -> None:
    generator = np.random.default_rng(0)
    labels_N = np.arange(200) % 2 == 1
    features_NF = np.stack([100 + 5 * labels_N, np.full(200, 7.0)], 1)
    features_NF[:, 0] += generator.normal(0, 0.5, 200)
    fitted = Rule.fitted(features_NF, labels_N, np.ones(200))
    assert ((fitted(features_NF) > 0.5) == labels_N).all()
    assert fitted.weights[0] > 0
    assert fitted(np.array([[102.5, 7.0]])).item() == pytest.approx(0.5, abs=0.1)


def test_the_weights_of_rows_count() -> None:
    """Features that say nothing: the probability is the weighted share of the label."""
    labels_N = np.array([True, False])
    fitted = Rule.fitted(np.zeros((2, 1)), labels_N, np.array([3.0, 1.0]))
    assert fitted(np.zeros((1, 1))).item() == pytest.approx(0.75, abs=1e-3)


def reading(**values: float | tuple[float, ...]) -> Reading:
    base = {"contrast": 0.0, "worth": 0.0, "need": 0.0}
    forms = {"some": (0.0, 0.0, 0.0), "strong": (0.0, 0.0, 0.0)}
    return Reading(**(base | forms | values))  # type: ignore[arg-type]


def test_features_by_hand() -> None:
    """Odds of strong 3 to 1, so fit is split 3/4 to 1/4; what is beyond its bound is cut."""
    pair = ("I lost my dog.", "You lost your dog.")
    one = reading(contrast=2.0, some=(1.0, -2.0, 0.5), strong=(math.log(3), 9.0, 9.0))
    far = reading(contrast=-9.0, some=(9.0, 1.0, 2.0), strong=(math.log(3), 0.0, 0.0))
    found = features([one, far], [pair, ("Rain.", pair[1])], 0)
    log3 = math.log(3)
    assert found.shape == (2, len(FEATURES))
    assert found[0].tolist() == pytest.approx([1.0, log3, 1.5, 0.5, 1.0, 0.0, 1.0, 0.5])
    assert found[1].tolist() == pytest.approx([6.0, log3, -3.0, -1.0, -1.0, -3.0, 0.0, 2.0])


def test_features_are_each_mechanisms_own() -> None:
    one = reading(some=(1.0, 2.0, 3.0), strong=(-1.0, -2.0, -3.0))
    for m in range(3):
        row = dict(zip(FEATURES, features([one], [("", "")], m)[0].tolist(), strict=True))
        others = max(some for k, some in enumerate((1.0, 2.0, 3.0)) if k != m)
        assert (row["some"], row["strong"], row["others"]) == (m + 1.0, -m - 1.0, others)


def test_probabilities_by_hand() -> None:
    grounding = Grounding(
        some=tuple(rule(some=1.0, bias=m) for m in range(3)),
        strong=tuple(rule(strong=1.0, bias=-m) for m in range(3)),
        need_bar=1.0,
        need_slope=2.0,
    )
    found = grounding.probabilities([reading(need=1.0), reading(need=2.0)], [("", "")] * 2)
    for row, gate in enumerate((0.5, sigmoid(2.0))):
        for m in range(3):
            expected = [gate * sigmoid(m), sigmoid(-m)]  # need gates some, and not strong
            assert found[row, m].tolist() == pytest.approx(expected)


def test_a_grounding_goes_through_json() -> None:
    grounding = Grounding(
        some=(rule(1.0, some=0.1), rule(2.0), rule(3.0)),
        strong=(rule(4.0), rule(5.0, echoed=-7.0), rule(6.0)),
        some_bars=(0.1, 0.2, 0.3),
        strong_bars=(0.4, 0.5, 0.6),
        need_bar=-1.5,
        need_slope=3.0,
    )
    assert Grounding.from_json(json.loads(json.dumps(grounding.as_json()))) == grounding


def exchange(post: str, response: str, **given: tuple[int, str]) -> Exchange:
    labels = dict.fromkeys(MECHANISMS, Label(0))
    labels |= {m: Label(level, (text,)) for m, (level, text) in given.items()}
    return Exchange(post, response, labels=labels)


LABELLED = [
    exchange("Post one.", "I feel for you. See here.", emotional_reactions=(2, "I feel for you.")),
    exchange("Post two.", "Get some rest. Tell me why.", explorations=(1, "Tell me why.")),
]
COUNTERFACTUALS = [
    Exchange(post, "Hm.", extra={"sentences": [{"kind": k, "text": f"{k} {post}"} for k in kinds]})
    for post, kinds in (
        ("Post three.", ("question_strong", "wrong_feeling")),
        ("Post four.", ("reaction_weak", "echo")),
    )
]


def test_the_rows_of_a_fit() -> None:
    rows = rows_of(LABELLED, COUNTERFACTUALS)
    real = [
        Row("Post one.", "I feel for you.", (2, 0, 0)),
        Row("Post one.", "See here.", NOTHING),
        Row("Post two.", "Get some rest.", NOTHING),
        Row("Post two.", "Tell me why.", (0, 0, 1)),
        Row("Post two.", "I feel for you.", NOTHING, MOVED_WEIGHT),  # strong, at the wrong post
    ]
    ours = [
        Row("Post three.", "question_strong Post three.", KIND_LEVELS["question_strong"], 1.0),
        Row("Post three.", "wrong_feeling Post three.", NOTHING, 1.0),
        Row("Post four.", "reaction_weak Post four.", (1, 0, 0), 1.0),
        Row("Post four.", "echo Post four.", NOTHING, 1.0),
        Row("Post four.", "question_strong Post three.", NOTHING, MOVED_WEIGHT),
    ]
    assert rows == real + ours  # five each, so that the weights stay as they are
    fewer = rows_of(LABELLED[:2], [*COUNTERFACTUALS, *COUNTERFACTUALS])
    assert fewer[5].weight == pytest.approx(0.5)  # ten for five: each source weighs alike


def toy_rows() -> list[Row]:
    """Strong where `so` is said and fits; weak without `so`; nothing where it does not fit."""
    rows = []
    for m, word in enumerate(("sorry", "see", "why")):
        for text, level in (
            (f"so {word} for you", 2),
            (f"{word} for you", 1),
            (f"so {word}", 0),
            ("rain", 0),
        ):
            given = tuple(level if k == m else 0 for k in range(3))
            rows += [Row("I failed.", text, given)] * 20
    return rows


def called(grounding: Grounding, reader: FakeReader, texts: Sequence[str]) -> list[list[int]]:
    found = GroundedIdentifier(reader, grounding).assess(["I failed."] * len(texts), texts)  # type: ignore[arg-type]
    return [[one.judgements[m].level for m in MECHANISMS] for one in found]


def test_a_fit_earns_nothing_for_what_does_not_fit() -> None:
    reader = FakeReader()
    grounding = fitted_grounding(reader, toy_rows(), ["I failed."] * 9 + ["calm"], passing=0.95)  # type: ignore[arg-type]
    texts = ["so sorry for you", "see for you", "so why", "rain"]
    assert called(grounding, reader, texts) == [[2, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]]
    # −5 once and 5 nine times: at 5 % of the way through the ten, 0.45 of the first step up.
    assert grounding.need_bar == pytest.approx(-0.5)
    posts = [f"calm {n}" for n in range(9)] + ["I failed."]
    lower = fitted_grounding(reader, toy_rows(), posts, passing=0.95)  # type: ignore[arg-type]
    assert lower.need_bar == pytest.approx(-5.0)


class Shaky(FakeReader):
    """Sure of nothing: every logit a tenth, so that probabilities are 0.4 and 0.6."""

    def read(self, pairs: Sequence[tuple[str, str]], *, alone: bool) -> list[Reading]:
        return [
            reading(
                need=one.need * 9,
                some=tuple(logit / 4 - 0.6 for logit in one.some),  # 0.60 and 0.17
                strong=tuple(logit / 4 + 0.6 for logit in one.strong),  # 0.83 and 0.40
            )
            for one in super().read(pairs, alone=alone)
        ]


def test_bars_are_chosen_by_the_levels_called() -> None:
    rows = [
        exchange("Post.", "so sorry", emotional_reactions=(2, "so sorry")),
        exchange("Post.", "sorry", emotional_reactions=(1, "sorry")),
        exchange("Post.", "rain"),
        exchange("calm", "so sorry"),
    ] * 2
    identifier = GroundedIdentifier(Shaky(), by_form())  # type: ignore[arg-type]
    found = with_bars(identifier, rows)
    some, strong = found.some_bars[0], found.strong_bars[0]
    assert 0.17 < some < 0.60
    assert 0.40 < strong < 0.83
    assert found.some == identifier.grounding.some
    texts = ["so sorry", "sorry", "rain"]
    assert [row[0] for row in called(found, identifier.reader, texts)] == [2, 1, 0]  # type: ignore[arg-type]
