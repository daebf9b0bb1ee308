"""Mutual information against log-probabilities taken token by token, in both roles."""

from pathlib import Path

import pytest

from rewards.terms.mutual_information import BACKWARD_PREFIX, FORWARD_PREFIX, MutualInformation
from rewriting.errors import UserError
from rewriting.runtime.language_models.backbone import Backbone
from tests.rewriting.runtime.language_models.test_backbone import change, one_by_one
from tests.tiny_lm import tiny_llama, tiny_tokenizer

SEEKERS = ["I lost my job.", "My cat died yesterday and I cry."]
REWRITTEN = ["Losing a job is hard.", "I am sorry."]


@pytest.fixture(scope="module")
def backbone() -> Backbone:
    backbone = Backbone(tiny_llama(), tiny_tokenizer(), name="tiny")
    backbone.add("reverse_lm", rank=2)
    change(backbone, "reverse_lm")
    return backbone


def expected(backbone: Backbone, weight: float, normalise: bool) -> list[float]:
    values = []
    for seeker, rewritten in zip(SEEKERS, REWRITTEN, strict=True):
        forward = one_by_one(backbone, FORWARD_PREFIX.format(seeker), rewritten)
        with backbone.role("reverse_lm"):
            backward = one_by_one(backbone, BACKWARD_PREFIX.format(rewritten), seeker)
        there, back = sum(forward), sum(backward)
        if normalise:
            there, back = there / len(rewritten), back / len(seeker)
        values.append(weight * there + (1 - weight) * back)
    return values


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_both_directions_are_weighed(backbone: Backbone, weight: float, normalise: bool) -> None:
    term = MutualInformation(backbone, forward_weight=weight, normalise=normalise)
    values = term(completions=[f"\n{text} " for text in REWRITTEN], seeker_post=SEEKERS)
    assert values == pytest.approx(expected(backbone, weight, normalise), rel=1e-4)


def test_a_saved_adapter_and_another_order_give_the_same(
    backbone: Backbone, tmp_path: Path
) -> None:
    backbone.save("reverse_lm", tmp_path)
    term = MutualInformation(Backbone(tiny_llama(), tiny_tokenizer()), adapter=tmp_path)
    other = MutualInformation(backbone)
    there = term(completions=REWRITTEN, seeker_post=SEEKERS)
    back = other(completions=REWRITTEN[::-1], seeker_post=SEEKERS[::-1])
    assert there == pytest.approx(back[::-1], rel=1e-4)


def test_an_empty_rewrite_is_not_free(backbone: Backbone) -> None:
    (value,) = MutualInformation(backbone)(completions=[""], seeker_post=SEEKERS[:1])
    assert value < -0.5


@pytest.mark.integration
def test_the_shipped_adapter_prefers_what_is_about_the_post() -> None:
    post = "My dog died last night and the house feels so empty without him."
    specific = "Losing your dog must be heartbreaking, and the empty house makes it harder."
    generic, other = "This must have been really hard for you.", "I hope the exam went well."
    term = MutualInformation(forward_weight=0.0)
    values = term(completions=[specific, generic, other], seeker_post=[post] * 3)
    assert values[0] > values[1]
    assert values[0] > values[2]


def test_mistakes_are_named(tmp_path: Path) -> None:
    backbone = Backbone(tiny_llama(), tiny_tokenizer())
    with pytest.raises(UserError, match="no adapter folder"):
        MutualInformation(backbone, adapter=tmp_path)
    with pytest.raises(UserError, match="from 0 to 1"):
        MutualInformation(backbone, forward_weight=1.5)
