"""Fluency and perplexity against log-probabilities taken token by token."""

import math

import pytest

from rewards.terms.fluency import Fluency, Perplexity
from rewriting.runtime.language_models.backbone import Backbone
from tests.rewriting.runtime.language_models.test_backbone import change, one_by_one
from tests.tiny_lm import tiny_llama, tiny_tokenizer

TEXTS = ["I am sorry.", "Hm", "That must have been really hard for you.", "Hm"]


@pytest.fixture(scope="module")
def backbone() -> Backbone:
    return Backbone(tiny_llama(), tiny_tokenizer(), name="tiny")


def test_fluency_is_the_geometric_mean_probability(backbone: Backbone) -> None:
    for value, text in zip(Fluency(backbone)(completions=TEXTS), TEXTS, strict=True):
        product = math.prod(math.exp(log_prob) for log_prob in one_by_one(backbone, "", text))
        assert value == pytest.approx(product ** (1 / len(text)), rel=1e-4)
        assert 0 < value <= 1


def test_its_logarithm_is_minus_the_log_perplexity(backbone: Backbone) -> None:
    found = Fluency(backbone, log=True)(completions=TEXTS)
    perplexity = Perplexity(backbone)(completions=TEXTS)
    assert found == pytest.approx([-math.log(value) for value in perplexity])


def test_perplexity_is_its_inverse(backbone: Backbone) -> None:
    fluency, perplexity = Fluency(backbone), Perplexity(backbone)
    columns = {"completions": TEXTS, "seeker_post": [""] * 4, "response_post": [""] * 4}
    for a, b in zip(fluency(**columns), perplexity(**columns), strict=True):
        assert a * b == pytest.approx(1)
    assert (fluency.__name__, perplexity.__name__) == ("fluency", "perplexity")


def test_messages_are_read_as_text(backbone: Backbone) -> None:
    fluency = Fluency(backbone)
    messages = [[{"role": "assistant", "content": text}] for text in TEXTS]
    assert fluency(completions=messages) == fluency(completions=TEXTS)


def test_an_empty_completion_has_a_finite_score(backbone: Backbone) -> None:
    (value,) = Fluency(backbone)(completions=[""])
    assert 0 < value < 1


def test_a_role_of_its_own() -> None:
    backbone = Backbone(tiny_llama(), tiny_tokenizer())
    backbone.add("supporter", rank=2)
    change(backbone, "supporter")
    bare = Fluency(backbone)(completions=TEXTS)
    assert Fluency(backbone, role="supporter", name="f2")(completions=TEXTS) != bare
    assert Fluency(backbone)(completions=TEXTS) == bare
