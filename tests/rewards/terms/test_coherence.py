"""Which sentences are compared, and that the model tells coherent from incoherent ones."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rewards.terms.coherence import (
    COSINE_SCALE,
    Coherence,
    CoherenceHead,
    CoherenceModel,
    sentence_pairs,
)
from rewriting.data import load_exchanges
from rewriting.errors import UserError
from rewriting.sentences import split_sentences

RESPONSE = "Ann came. Bob left."


class HandMade:
    """An encoder of two topics: cats point one way, cars the other. Counts what it encodes."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, sentences: Sequence[str], **_: Any) -> np.ndarray:
        self.encoded += sentences
        rows = [[1.0, 0.0] if "cat" in sentence else [0.0, 1.0] for sentence in sentences]
        return np.array(rows, dtype=np.float32)


def dot_product_head() -> CoherenceHead:
    """logit = 8 · u·v − 4: by hand, +4 for one topic and −4 for two."""
    head = CoherenceHead(width=2, hidden=1, dropout=0.0)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
        head.layers[0].weight[0, -1] = 1 / COSINE_SCALE
        head.layers[3].weight.fill_(8.0)
        head.layers[3].bias.fill_(-4.0)
    return head


@pytest.fixture
def model() -> CoherenceModel:
    return CoherenceModel(HandMade(), dot_product_head(), encoder_name="hand-made")


@pytest.mark.parametrize(
    ("completion", "sentence", "expected"),
    [
        ("Ann came. New. Bob left.", None, [("Ann came.", "New."), ("New.", "Bob left.")]),
        ("Ann came. New. Bob left.", "New.", [("Ann came.", "New."), ("New.", "Bob left.")]),
        ("Ann came. New.", "New", [("Ann came.", "New.")]),
        # The column wins over the comparison: this Bob is the new one.
        ("Ann came. Bob left.", "Bob left.", [("Ann came.", "Bob left.")]),
        # A sentence said twice is new once.
        (
            "Ann came. Ann came. Bob left.",
            None,
            [("Ann came.", "Ann came."), ("Ann came.", "Bob left.")],
        ),
        ("Ann came. Bob left.", None, [("Ann came.", "Bob left.")]),
        ("All is new. And this.", None, [("All is new.", "And this.")]),
        ("Ann came.", None, []),
        ("One sentence.", "One sentence.", []),
        ("", None, []),
    ],
)
def test_the_new_meets_the_existing(
    completion: str, sentence: str | None, expected: list[tuple[str, str]]
) -> None:
    assert sentence_pairs(completion, RESPONSE, sentence) == expected


def test_the_sign_on_hand_made_embeddings(model: CoherenceModel) -> None:
    values = Coherence(model)(
        completions=["My cat came. Your cat left.", "My cat came. Your car left.", "A cat."],
        response_post=["My cat came.", "My cat came.", "A cat."],
    )
    assert values == [pytest.approx(0.98201, abs=1e-4), pytest.approx(0.01799, abs=1e-4), 0.5]


SAME, OTHER = pytest.approx(0.98201, abs=1e-4), pytest.approx(0.01799, abs=1e-4)
ONE: dict[str, Any] = {
    "completions": ["A cat sat.", "A car.", "My cat.", "My cat.", "My cat. A cat sat."],
    "response_post": ["My cat."] * 5,
    "sentence": ["A cat sat.", "A car.", "My cat.", None, "A cat sat."],
}
"""A reply of one sentence: replaced twice, replaced by itself, kept, and with another one."""


def test_replacing_the_only_sentence_is_paid_as_inserting_beside_it_is(
    model: CoherenceModel,
) -> None:
    replaced, off_topic, copied, kept, inserted = Coherence(model)(**ONE)
    assert replaced == inserted == SAME
    assert off_topic == OTHER
    assert copied == kept == 0.5


def test_tables_leave_replies_of_one_sentence_out(model: CoherenceModel) -> None:
    assert Coherence(model, neutral=None)(**ONE) == [None, None, None, None, SAME]


def test_nothing_is_compared_with_a_blank_reply_or_one_that_was_written_anew(
    model: CoherenceModel,
) -> None:
    values = Coherence(model)(
        completions=["A cat.", "", "A cat."],
        response_post=["", "My cat.", "My car."],
        sentence=["A cat.", None, None],
    )
    assert values == [None, None, 0.5]


def test_the_mean_over_the_existing_sentences(model: CoherenceModel) -> None:
    term = Coherence(model, name="c")
    (value,) = term(
        completions=["My cat came. New cat. Your car left."],
        response_post=["My cat came. Your car left."],
        sentence=["New cat."],
        seeker_post=["Help."],
    )
    assert value == pytest.approx(0.5)
    assert term.__name__ == "c"


def test_equal_sentences_are_encoded_once(model: CoherenceModel) -> None:
    pairs = [("a cat", "a car"), ("a cat", "a cat"), ("a car", "a cat")]
    first = model.probabilities(pairs)
    assert model.probabilities(pairs) == first
    assert first[0] == first[2]  # no order
    assert sorted(model.encoder.encoded) == ["a car", "a cat"]
    assert model.probabilities([]) == []


def test_a_saved_model_gives_the_same_numbers(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = CoherenceModel(HandMade(), CoherenceHead(2, 3), temperature=1.7, encoder_name="x")
    model.save(tmp_path)
    again = CoherenceModel.load(tmp_path, encoder=HandMade())
    pairs = [("a cat", "a car"), ("a cat", "a cat")]
    assert again.probabilities(pairs) == model.probabilities(pairs)
    assert (again.temperature, again.encoder_name) == (1.7, "x")
    with pytest.raises(UserError, match="no coherence model"):
        CoherenceModel.load(tmp_path / "nowhere")


@pytest.mark.integration
def test_the_shipped_model_tells_what_belongs_together() -> None:
    """Above chance by far on responses it has never seen: the card claims 67 to 76 of AUROC."""
    posts = [split_sentences(e.response_post).texts for e in load_exchanges("sample:test")]
    posts = [sentences for sentences in posts if len(sentences) > 1]
    same = [(one[0], one[1]) for one in posts]
    other = [(one[0], two[1]) for one, two in zip(posts, posts[37:] + posts[:37], strict=True)]
    model = CoherenceModel.load()
    together, apart = model.probabilities(same), model.probabilities(other)
    above = sum((a > b) + 0.5 * (a == b) for a in together for b in apart)
    assert above / (len(together) * len(apart)) > 0.6


def test_the_head_has_no_order() -> None:
    torch.manual_seed(0)
    head = CoherenceHead(4, 8).eval()
    u_BD, v_BD = torch.randn(5, 4), torch.randn(5, 4)
    assert torch.allclose(head(u_BD, v_BD), head(v_BD, u_BD), atol=1e-6)
