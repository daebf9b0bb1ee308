"""Several identifiers as one: means, medians, what disagreement costs, and the names of it all."""

import re
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path

import pytest

from rewards.identifiers import named
from rewards.identifiers.assessment import Assessment, Judgement
from rewards.identifiers.ensemble import (
    Disagreement,
    EnsembleIdentifier,
    EnsembleName,
    combined,
)
from rewards.identifiers.in_context.identifier import ContextualIdentifier
from rewards.identifiers.named import is_grounded, load_identifier
from rewards.models import Models
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS

NONE = Judgement(0, (1.0, 0.0, 0.0))
WEAK = Judgement(1, (0.5, 0.4, 0.1), ("poor you",))  # expected level 0.6
STRONG = Judgement(2, (0.0, 0.6, 0.4), ("so sorry",))  # expected level 1.4
MIXED = ((0.5 + 0.0) / 2, (0.4 + 0.6) / 2, (0.1 + 0.4) / 2)  # mean 1.0, deviation 0.4


class Says:
    """Gives one judgement wherever its word is in the response, none elsewhere, and counts."""

    def __init__(self, word: str, judgement: Judgement, name: str = "says") -> None:
        self.word, self.judgement, self.name = word, judgement, name
        self.asked: list[bool] = []

    def assess(
        self, seeker_posts: Sequence[str], response_posts: Sequence[str], *, rationales: bool = True
    ) -> list[Assessment]:
        self.asked.append(rationales)
        words = self.judgement.rationales if rationales else ()
        said = Judgement(self.judgement.level, self.judgement.probabilities, words)
        return [
            Assessment(dict.fromkeys(MECHANISMS, said if self.word in response else NONE))
            for response in response_posts
        ]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_probabilities_are_the_mean_over_the_members(mechanism: str) -> None:
    ensemble = EnsembleIdentifier([Says("a", WEAK), Says("b", STRONG)])
    both, one, neither = ensemble.assess(["post"] * 3, ["a b", "a", ""])
    assert both.judgements[mechanism].probabilities == pytest.approx((0.25, 0.5, 0.25))
    assert one.judgements[mechanism].probabilities == pytest.approx((0.75, 0.2, 0.05))
    assert neither.judgements[mechanism] == NONE
    assert both.expected_empathy == pytest.approx(3 * 1.0)


@pytest.mark.parametrize(
    ("judgements", "level"),
    [
        ([WEAK, STRONG], 1),
        ([STRONG, NONE], 0),
        ([NONE, STRONG, WEAK], 1),
        ([STRONG, NONE, STRONG], 2),
        ([STRONG, NONE, STRONG, WEAK], 1),
    ],
)
def test_the_level_called_is_the_lower_median(judgements: list[Judgement], level: int) -> None:
    assert combined(judgements).level == level
    assert combined(judgements, pessimism=9.0).level == level


def test_rationales_come_from_the_first_member_at_the_median_or_above() -> None:
    silent = Judgement(2, (0.0, 0.0, 1.0))  # as a judge, which has no rationales
    assert combined([NONE, STRONG, WEAK]).rationales == ("so sorry",)
    assert combined([WEAK, STRONG, STRONG]).rationales == ("so sorry",)
    assert combined([WEAK, STRONG]).rationales == ("poor you",)
    assert combined([silent, WEAK]).rationales == ("poor you",)
    assert combined([silent, silent]).rationales == ()
    assert combined([STRONG, NONE]).rationales == ()  # level 0
    assert combined([WEAK, STRONG], rationales=False).rationales == ()


def test_disagreement_is_of_the_expected_levels() -> None:
    apart = Disagreement.of([WEAK, STRONG])
    assert (apart.mean, apart.standard_deviation) == pytest.approx((1.0, 0.4))
    # of 1.4, 0 and 0: mean 1.4 / 3, deviation 1.4 · √2 / 3
    lonely = Disagreement.of([STRONG, NONE, NONE])
    assert lonely.mean == pytest.approx(0.466667, abs=1e-6)
    assert lonely.standard_deviation == pytest.approx(0.659966, abs=1e-6)
    assert Disagreement.of([WEAK, WEAK]).standard_deviation == 0


@pytest.mark.parametrize(
    ("pessimism", "expected"), [(0.0, 1.0), (0.5, 0.8), (1.0, 0.6), (2.5, 0.0), (99.0, 0.0)]
)
def test_pessimism_takes_deviations_off_the_expected_level(
    pessimism: float, expected: float
) -> None:
    found = combined([WEAK, STRONG], pessimism)
    assert found.expected_level == pytest.approx(expected, abs=1e-12)
    none, weak, strong = found.probabilities
    assert (weak, strong) == pytest.approx((expected * MIXED[1], expected * MIXED[2]), abs=1e-12)
    assert none == pytest.approx(1 - weak - strong)


def test_what_one_of_three_believes_in_is_not_paid() -> None:
    assert combined([STRONG, NONE, NONE], 1.0).probabilities == pytest.approx((1.0, 0.0, 0.0))
    assert combined([STRONG, STRONG, STRONG], 1.0).expected_level == pytest.approx(1.4)
    assert combined([NONE, NONE], 1.0) == NONE


def test_disagreement_by_row_and_mechanism() -> None:
    members = [Says("a", WEAK), Says("b", STRONG)]
    both, one = EnsembleIdentifier(members, pessimism=1).disagreement(["post"] * 2, ["a b", "b"])
    assert set(both) == set(one) == set(MECHANISMS)
    for mechanism in MECHANISMS:
        assert astuple(both[mechanism]) == pytest.approx((1.0, 0.4))
        assert astuple(one[mechanism]) == pytest.approx((0.7, 0.7))
    assert [member.asked for member in members] == [[False], [False]]


def test_members_are_asked_once_for_an_assessment_and_its_disagreement() -> None:
    members = [Says("a", WEAK), Says("b", STRONG)]
    ensemble = EnsembleIdentifier(members)
    texts = ["post"], ["a b"]
    (assessment,) = ensemble.assess(*texts)
    ensemble.disagreement(*texts)
    (plain,) = ensemble.assess(*texts, rationales=False)
    assert [member.asked for member in members] == [[True], [True]]
    assert assessment.judgements[MECHANISMS[0]].rationales == ("poor you",)
    assert plain.judgements[MECHANISMS[0]].rationales == ()
    ensemble.disagreement(["another post"], ["a b"])
    (again,) = ensemble.assess(["another post"], ["a b"])
    assert members[0].asked == [True, False, True]  # rationales were missing
    assert again == assessment


def test_batches_do_not_change_an_assessment() -> None:
    ensemble = EnsembleIdentifier([Says("a", WEAK), Says("b", STRONG)], pessimism=0.7)
    responses = ["a", "b", "a b", "", "ab"]
    posts = ["post"] * len(responses)
    together = ensemble.assess(posts, responses)
    alone = [ensemble.assess([post], [r])[0] for post, r in zip(posts, responses, strict=True)]
    assert together == alone
    assert ensemble.assess(posts, responses[::-1]) == together[::-1]
    assert ensemble.assess([], []) == []


def test_as_many_posts_as_responses() -> None:
    with pytest.raises(ValueError, match="zip"):
        EnsembleIdentifier([Says("a", WEAK), Says("b", STRONG)]).assess(["post"], [])


@pytest.mark.parametrize("pessimism", [-0.1, float("nan"), float("inf")])
def test_members_and_pessimism_are_checked(pessimism: float) -> None:
    members = [Says("a", WEAK), Says("b", STRONG)]
    with pytest.raises(UserError, match="write a finite number from 0 on"):
        EnsembleIdentifier(members, pessimism=pessimism)
    with pytest.raises(UserError, match="at least two members, not 1"):
        EnsembleIdentifier(members[:1])


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the members that were loaded; toys stand in for them."""
    names: list[str] = []
    whole = load_identifier

    def load(name: str, **_: object) -> object:
        if name.startswith("ensemble:"):
            return whole(name)
        names.append(name)
        return Says("a", WEAK, name)

    monkeypatch.setattr(named, "load_identifier", load)
    return names


def test_an_ensemble_by_name(loaded: list[str]) -> None:
    ensemble = load_identifier("ensemble:grounded, epitome,pessimism=1.5,in-context")
    assert isinstance(ensemble, EnsembleIdentifier)
    assert loaded == [member.name for member in ensemble.members]
    assert loaded == ["grounded", "epitome", "in-context"]
    assert ensemble.pessimism == 1.5
    assert ensemble.name == "ensemble:grounded, epitome,pessimism=1.5,in-context"
    assert load_identifier("ensemble:grounded,epitome").pessimism == 0  # type: ignore[attr-defined]


def test_folders_and_judges_are_members(tmp_path: Path) -> None:
    folder = tmp_path / "rate=0.1" / "model"
    folder.mkdir(parents=True)
    (folder / "micromodels.json").write_text("{}")
    judge = "judge:{model: any-model, endpoint: 'http://localhost:1/v1'}"
    name = EnsembleName.parse(f"{folder},{judge},grounded,judge:qwen2.5-coder-1.5b")
    assert name.members == (str(folder), judge, "grounded", "judge:qwen2.5-coder-1.5b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has an empty part"),
        ("grounded", "at least two members, and 'grounded' has 1"),
        ("pessimism=1", "at least two members, and 'pessimism=1' has 0"),
        ("grounded,pessimism=1", "at least two members"),
        ("grounded,,epitome", "has an empty part"),
        ("grounded,grounded", "holds one member twice: 'grounded', 'grounded'"),
        (f"grounded,{named.NAMES['grounded']}", "holds one member twice: 'grounded', '/"),
        ("judge:x,judge:{model: x}", "holds one member twice"),
        ("grounded,groundless", "'groundless' is no identifier"),
        ("grounded,judge:{modell: x}", "a judge has no option 'modell'"),
        ("grounded,judge:{model: x, endpoint: y", "the judge '{model: x' cannot be read as YAML"),
        ("grounded,ensemble:epitome,in-context", "cannot hold another one"),
        ("grounded,epitome,optimism=1", "no option 'optimism', only pessimism=NUMBER"),
        ("grounded,epitome,pessimism=1,pessimism=2", "one pessimism=NUMBER, not several"),
        ("grounded,epitome,pessimism=much", "pessimism is 'much'; write a finite number"),
        ("grounded,epitome,pessimism=", "pessimism is ''; write a finite number"),
        ("grounded,epitome,pessimism=-1", "pessimism is -1.0; write a finite number"),
        ("grounded,epitome,pessimism=nan", "pessimism is nan; write a finite number"),
        ("grounded,epitome,pessimism=inf", "pessimism is inf; write a finite number"),
    ],
)
def test_mistakes_in_the_name_are_told_in_a_line_before_anything_is_loaded(
    loaded: list[str], text: str, message: str
) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        load_identifier(f"ensemble:{text}")
    assert "\n" not in str(caught.value)
    assert loaded == []


def test_an_ensemble_has_no_reader_of_its_own() -> None:
    ensemble = EnsembleIdentifier([Says("a", WEAK), Says("b", STRONG)])
    for given in ("ensemble:grounded,epitome", f"ensemble:epitome,{'x' * 300}", ensemble):
        assert not is_grounded(given)


def test_the_shipped_reader_serves_contrast_beside_an_ensemble(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shipped = object()
    monkeypatch.setattr("rewards.models._load_reader", lambda *name, **_: shipped)
    assert Models(identifier="ensemble:grounded,epitome").reader is shipped
    assert Models(identifier=EnsembleIdentifier([Says("a", WEAK)] * 2)).reader is shipped


def test_the_gate_of_context_stands_beside_an_ensemble(monkeypatch: pytest.MonkeyPatch) -> None:
    from rewards.identifiers.in_context.gate import ContextGate, Verdict

    monkeypatch.setattr(
        ContextGate, "load", lambda *_, **__: lambda rows: [[Verdict(0.5, True)] * 3]
    )
    ensemble = EnsembleIdentifier([Says("a", WEAK), Says("b", STRONG)], pessimism=1.0)
    inside = Models(identifier=ensemble, sentence_encoder=object()).in_context
    assert isinstance(inside, ContextualIdentifier)
    (found,) = inside.assess(["post"], ["a b"])
    assert found.expected_empathy == pytest.approx(3 * 0.5 * 0.6)
