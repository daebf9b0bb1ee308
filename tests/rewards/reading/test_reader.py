"""The reader's numbers: InfoNCE by hand, what it reads off its vectors, in and out of a folder."""

import json
import math
from dataclasses import astuple
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from rewards.named import Models
from rewards.reading.critic import SecondOpinion
from rewards.reading.reader import SETTINGS, WEIGHTS, Reading, SentenceReader
from rewriting.errors import UserError
from rewriting.runtime.language_models.tuned_encoder import TunedEncoder
from tests.rewards.fakes import ODD_TEXTS, FakeIdentifier
from tests.rewards.reading.tiny import in_half_precision, write_tiny_bert
from tests.rewriting.runtime.files.test_model_files import unsealed

POSTS = ["My dog died.", "I failed the exam.", "Nobody calls."]
REST = ["Get another.", "", "Sleep first."]
REPLIES = ["Call them.", "Sleep on it."]
PAIRS = [(POSTS[0], "Poor dog."), (POSTS[1], "Poor dog."), (POSTS[0], "What exam?")]


def numbers(readings: list[Reading]) -> list[float]:
    """All numbers of some readings in one row."""
    return [
        number
        for one in readings
        for part in astuple(one)
        for number in (part if isinstance(part, tuple) else (part,))
    ]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny_bert(tmp_path_factory.mktemp("reader")))


@pytest.fixture
def reader(encoder: str) -> SentenceReader:
    reader = in_half_precision(SentenceReader(encoder, rank=2, max_tokens=48)).eval()
    reader.second = SecondOpinion(encoder, max_tokens=32).eval()
    reader.set_banks(POSTS[1:], REPLIES)
    for name, buffer in reader.named_buffers():
        if name.endswith("_KD"):
            buffer.copy_(buffer.half().float())
    return reader


class HandMade(TunedEncoder):
    """Unit vectors of two topics by hand, in place of an encoder."""

    def __init__(self) -> None:
        torch.nn.Module.__init__(self)
        self.width = 2

    def forward(self, texts: list[str]) -> torch.Tensor:  # type: ignore[override]
        rows = [[1.0, 0.0] if "dog" in text else [0.0, 1.0] for text in texts]
        return torch.tensor(rows)


class Constant(HandMade):
    """The same vector for every text."""

    def forward(self, texts: list[str]) -> torch.Tensor:  # type: ignore[override]
        return torch.tensor([[1.0, 0.0]] * len(texts))


@pytest.fixture
def by_hand(encoder: str) -> SentenceReader:
    """s = log 3, W the identity, worth = (1, −1)·t, need = (2, −2)·p, forms of the first axis."""
    reader = SentenceReader(encoder, rank=2)
    reader.encode = HandMade()
    reader.map = torch.nn.Linear(2, 2, bias=False)
    reader.worth, reader.need = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    reader.form = torch.nn.Sequential(torch.nn.Dropout(0.9), torch.nn.Linear(2, 6))
    with torch.no_grad():
        reader.map.weight.copy_(torch.eye(2))
        reader.worth.weight.copy_(torch.tensor([[1.0, -1.0]]))
        reader.need.weight.copy_(torch.tensor([[2.0, -2.0]]))
        reader.form[1].weight.copy_(torch.tensor([[float(row), 0.0] for row in range(6)]))
        for head in (reader.worth, reader.need, reader.form[1]):
            head.bias.zero_()
        reader.log_scale.fill_(math.log(math.log(3)))
    reader.set_banks(["A dog.", "An exam.", "A test."], ["See a vet.", "dog food!"])
    return reader


def test_readings_by_hand(by_hand: SentenceReader) -> None:
    """Fits are e^s = 3 on the same topic and 1 on another, so the means are over 3, 1 and 1 of
    the bank and the own post."""
    found = by_hand.train().read([("My dog.", "dog!"), ("My exam.", "dog!"), ("My exam.", "Hm.")])
    zeros = (0.0, 0.0, 0.0)
    assert numbers(found) == pytest.approx(
        numbers(
            [
                Reading(math.log(3 / (8 / 4)), 1.0, 2.0, (0.0, 1.0, 2.0), (3.0, 4.0, 5.0)),
                Reading(math.log(1 / (6 / 4)), 1.0, -2.0, (0.0, 1.0, 2.0), (3.0, 4.0, 5.0)),
                Reading(math.log(3 / (10 / 4)), -1.0, -2.0, zeros, zeros),
            ]
        ),
        abs=1e-5,
    )


def test_the_rest_of_a_reply_by_hand(by_hand: SentenceReader) -> None:
    """Replies of the bank fit "dog!" with e^s of 1 and 3; where there is no rest, it counts 0."""
    pairs = [("My dog.", "dog!")] * 3
    found = by_hand.read(pairs, ["Your dog.", "Eat.", " "])
    expected = [math.log(3 / (7 / 3)), math.log(1 / (5 / 3)), 0.0]
    assert [one.reply for one in found] == pytest.approx(expected, abs=1e-6)
    gaps = [gap for one in found for gap in (one.contrast_gap, one.reply_gap)]
    assert gaps == [0.0] * 6  # nobody else was asked


def test_a_second_opinion_is_averaged(by_hand: SentenceReader, encoder: str) -> None:
    """It sees no difference between the topics, so its contrasts are 0."""
    by_hand.second = SecondOpinion(encoder)
    by_hand.second.encode = Constant()
    by_hand.second.worth = torch.nn.Linear(2, 1, bias=False)
    by_hand.second.worth.weight.data = torch.tensor([[0.25, 7.0]])
    by_hand.set_banks(["A dog.", "An exam.", "A test."], ["See a vet.", "dog food!"])
    (found,) = by_hand.read([("My dog.", "dog!")], ["Your dog."])
    own, reply = math.log(3 / (8 / 4)), math.log(3 / (7 / 3))
    assert found.contrast == pytest.approx(own / 2, abs=1e-6)
    assert found.reply == pytest.approx(reply / 2, abs=1e-6)
    assert found.contrast_gap == pytest.approx(own / 2, abs=1e-6)
    assert found.reply_gap == pytest.approx(reply / 2, abs=1e-6)
    assert found.worth == pytest.approx(1.0 + 0.25)
    (alone,) = by_hand.read([("My dog.", "dog!")], ["Your dog."], alone=True)
    assert (alone.contrast, alone.worth) == pytest.approx((own, 1.0), abs=1e-6)


def test_fits_of_every_post_with_every_sentence(by_hand: SentenceReader) -> None:
    posts_ND, sentences_ND = torch.tensor([[1.0, 0.0], [0.6, 0.8]]), torch.tensor([[0.0, 5.0]])
    fits_NN = by_hand.fits(posts_ND, sentences_ND) / math.log(3)
    assert torch.allclose(fits_NN, torch.tensor([[0.0], [0.8]]))  # the sentence's length is gone


def test_a_saved_reader_gives_the_same_numbers(reader: SentenceReader, tmp_path: Path) -> None:
    expected = numbers(reader.read(PAIRS, REST))
    reader.save(tmp_path / "model", grounding={"a": 1})
    again = SentenceReader.load(tmp_path / "model")
    assert numbers(again.read(PAIRS, REST)) == pytest.approx(expected, abs=1e-4)
    assert len(set(expected)) > len(expected) // 2  # the texts are told apart
    assert torch.equal(again.bank_KD, reader.bank_KD)
    assert not any(parameter.requires_grad for parameter in again.parameters())
    unsealed(tmp_path / "model" / SETTINGS)
    settings = json.loads((tmp_path / "model" / SETTINGS).read_text())
    assert settings == {
        "encoder": reader.encode.name,
        "rank": 2,
        "max_tokens": 48,
        "second": {"encoder": reader.encode.name, "max_tokens": 32},
        "grounding": {"a": 1},
    }
    # The pretrained weights are not in the file: only what was trained, and the bank.
    names = set(load_file(tmp_path / "model" / WEIGHTS))
    heads = {"map.weight", "worth.weight", "worth.bias", "need.weight", "need.bias", "log_scale"}
    heads |= {"form.1.weight", "form.1.bias", "bank_KD", "replies_KD"}
    heads |= {"second.posts_KD", "second.replies_KD", "second.scale", "second.worth.weight"}
    assert heads < names
    assert all("lora" in name for name in names - heads)
    assert Models(reader=tmp_path / "model", identifier=FakeIdentifier()).reader.read([]) == []


def test_the_second_opinion_is_loaded_when_it_is_asked(
    reader: SentenceReader, tmp_path: Path
) -> None:
    reader.save(tmp_path)
    again = SentenceReader.load(tmp_path)
    again.read(PAIRS, alone=True)
    assert again.second is None
    again.read(PAIRS)
    assert isinstance(again.second, SecondOpinion)
    assert not any(parameter.requires_grad for parameter in again.second.parameters())


def test_a_reading_does_not_depend_on_the_company(reader: SentenceReader) -> None:
    together = reader.read(PAIRS)
    alone = [reader.read([pair])[0] for pair in reversed(PAIRS)]
    assert numbers(alone[::-1]) == pytest.approx(numbers(together), abs=1e-5)


def test_a_reading_does_not_depend_on_the_past(reader: SentenceReader) -> None:
    """Bit by bit: a resumed run starts with an empty memory."""
    together = reader.read(PAIRS)
    for cache in (reader._posts, reader._sentences):
        cache.known.forget()
    reader.read([("A much longer post that came first.", "Poor dog."), PAIRS[2]])
    assert reader.read(PAIRS) == together


def test_equal_texts_are_encoded_once(
    reader: SentenceReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[str] = []
    forward = TunedEncoder.forward

    def counting(self: TunedEncoder, texts: list[str]) -> torch.Tensor:
        encoded.extend(texts)
        return forward(self, texts)

    monkeypatch.setattr(TunedEncoder, "forward", counting)
    assert reader.read(PAIRS) == reader.read(PAIRS)
    # By two encoders; the rest of a reply is blank here.
    assert sorted(encoded) == sorted(2 * [*POSTS[:2], "Poor dog.", "What exam?", ""])


def test_any_text_can_be_read(reader: SentenceReader) -> None:
    odd = reader.read([(text, text) for text in ODD_TEXTS])
    assert all(math.isfinite(number) for number in numbers(odd))
    assert reader.read([]) == []


def test_encoding_in_a_batch_and_alone_is_the_same(reader: SentenceReader) -> None:
    texts = ["a", "a longer text than the first", "", "mid length"]
    with torch.no_grad():
        together_ND = reader.encode(texts)
        alone_ND = torch.cat([reader.encode([text]) for text in texts])
    assert torch.allclose(together_ND, alone_ND, atol=1e-5)
    assert torch.allclose(together_ND.norm(dim=-1), torch.ones(4))


def test_mistakes_are_named(reader: SentenceReader, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no reader"):
        SentenceReader.load(tmp_path)
    reader.save(tmp_path)
    save_file(load_file(tmp_path / WEIGHTS) | {"tail": torch.zeros(1)}, tmp_path / WEIGHTS)
    unsealed(tmp_path / SETTINGS)
    with pytest.raises(UserError, match="tail is in its weights alone"):
        SentenceReader.load(tmp_path)
    tensors = load_file(tmp_path / WEIGHTS)
    save_file(
        {n: t for n, t in tensors.items() if n not in ("tail", "need.bias")}, tmp_path / WEIGHTS
    )
    with pytest.raises(UserError, match=r"need\.bias is in its settings alone"):
        SentenceReader.load(tmp_path)


def test_a_reader_with_merged_weights_is_not_saved(reader: SentenceReader, tmp_path: Path) -> None:
    reader.save(tmp_path)
    with pytest.raises(ValueError, match="merged"):
        SentenceReader.load(tmp_path).save(tmp_path / "again")
