"""Language models that fill a gap: of three kinds, tiny ones, made on the spot."""

from pathlib import Path
from typing import Any

import pytest
import torch

from rewards.appraisals.appraiser import load_appraiser
from rewards.appraisals.models import ClassifierAppraiser, appraiser_by_name
from rewards.appraisals.prompts import (
    GapFiller,
    PromptAppraiser,
    few_shot,
    first_tokens,
    prompt_of,
    with_tokens,
)
from rewards.appraisals.units import LABELS, Unit
from rewriting.errors import UserError
from rewriting.runtime.models.named import kind_of
from tests.tiny_lm import CHARACTERS, tiny_tokenizer, write_tiny_llama
from tests.tiny_t5 import tiny_t5, tiny_t5_tokenizer

FILLERS = dict(zip(LABELS, "abcdefghij", strict=True))
UNITS = [
    Unit(f"sentence {n} of {label.lower()}", "target" if n % 2 else "observer", label)
    for label in LABELS
    for n in range(2)
]


def write_bert(folder: Path, kind: str = "masked", **options: Any) -> Path:
    from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

    torch.manual_seed(0)
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"mask_token": "[MASK]"})
    config = BertConfig(
        vocab_size=len(CHARACTERS) + 3,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=512,
        initializer_range=0.5,
        **options,
    )
    built = BertForMaskedLM if kind == "masked" else BertForSequenceClassification
    built(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_t5(folder: Path) -> Path:
    tiny_t5().save_pretrained(folder)
    tiny_t5_tokenizer().save_pretrained(folder)
    return folder


WRITERS = {"causal": write_tiny_llama, "seq2seq": write_t5, "masked": write_bert}


@pytest.fixture(params=WRITERS)
def filler(request: pytest.FixtureRequest, tmp_path: Path) -> GapFiller:
    folder = WRITERS[request.param](tmp_path)
    assert kind_of(str(folder)) == request.param
    return GapFiller.load(str(folder), fillers=FILLERS)


def test_the_prompt_says_who_speaks() -> None:
    prompt = prompt_of("It was\n my fault.", "target")
    assert prompt == 'A person in distress wrote: "It was my fault."\nThis sentence is about'
    assert prompt_of("Rest.", "observer").startswith("A peer answered")
    assert len(prompt_of("so sad " * 5000, "target").split()) < 120


def test_examples_are_answered_questions_of_every_label() -> None:
    examples = few_shot(UNITS, 1, FILLERS, seed=0)
    assert examples == few_shot(UNITS, 1, FILLERS, seed=0)
    for letter in FILLERS.values():
        assert examples.count(f"is about {letter}.\n\n") == 1
    assert few_shot(UNITS, 0, FILLERS, seed=0) == ""


def test_fillers_must_begin_apart() -> None:
    tokenizer = tiny_tokenizer()
    shared, firsts = first_tokens(tokenizer, ["cat", "dog"])
    assert tokenizer.convert_ids_to_tokens(shared) == [" "]  # which belongs to the prompt
    assert tokenizer.convert_ids_to_tokens(firsts) == ["c", "d"]
    with pytest.raises(UserError, match="same token"):
        first_tokens(tokenizer, ["cat", "cow", "dog"])


def test_tokens_go_after_the_end_of_each_row() -> None:
    ids, mask, ends = with_tokens(
        torch.tensor([[5, 6, 7], [8, 0, 0]]), torch.tensor([[1, 1, 1], [1, 0, 0]]), [9]
    )
    assert ids.tolist() == [[5, 6, 7, 9], [8, 9, 0, 0]]
    assert mask.tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
    assert ends.tolist() == [3, 1]


def test_padding_and_order_change_no_answer(filler: GapFiller) -> None:
    prompts = ["It is about", "Somebody said a lot more than that, and it is about"]
    filler.eval()
    with torch.no_grad():
        together = filler(prompts)
        alone = torch.cat([filler([prompt]) for prompt in prompts])
    assert together.shape == (2, 10)
    assert torch.allclose(together, alone, atol=1e-4)
    assert not torch.allclose(together[0], together[1], atol=1e-3)


def test_a_prompt_that_does_not_fit_is_told(tmp_path: Path) -> None:
    short = GapFiller.load(str(write_bert(tmp_path)), fillers=FILLERS)  # 512 positions
    examples = few_shot(UNITS, 2, FILLERS, seed=0)
    with pytest.raises(UserError, match=r"tokens long, and .* reads 512: take fewer --shots"):
        PromptAppraiser(short, examples=examples).probabilities(["Oh."], ["target"])


def test_a_causal_model_is_read_where_the_filler_would_stand(tmp_path: Path) -> None:
    filler = GapFiller.load(str(write_tiny_llama(tmp_path)), fillers=FILLERS)
    ids = filler.tokenizer("It is about ", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        expected = filler.model(input_ids=ids).logits[0, -1, filler.filler_ids]
        found = filler(["It is about"])[0]
    assert torch.allclose(found, expected, atol=1e-4)


def test_contextual_calibration_evens_out_what_says_nothing(filler: GapFiller) -> None:
    from rewards.appraisals.prompts import CONTENT_FREE

    appraiser = PromptAppraiser(filler)
    before = appraiser.probabilities(["N/A"], ["target"])
    appraiser.calibrate()
    logits = appraiser.logits(CONTENT_FREE, ["target"] * 3).softmax(dim=-1).mean(dim=0)
    evened = (logits.log() + appraiser.bias[0]).softmax(dim=-1)
    assert evened.tolist() == pytest.approx([0.1] * 10, abs=1e-5)
    assert not torch.allclose(before, appraiser.probabilities(["N/A"], ["target"]), atol=1e-3)


@pytest.mark.parametrize("rank", [0, 2])
def test_a_saved_appraiser_gives_the_same_numbers(tmp_path: Path, rank: int) -> None:
    name = str(write_t5(tmp_path / "t5"))
    filler = GapFiller.load(name, fillers=FILLERS, rank=rank)
    with torch.no_grad():
        for parameter in (p for p in filler.parameters() if p.requires_grad):
            parameter.normal_(std=0.3)
    examples = few_shot(UNITS, 1, FILLERS, seed=0)
    appraiser = PromptAppraiser(filler, examples=examples, temperature=2.0)
    appraiser.calibrate()
    appraiser.save(tmp_path / "model")
    again = load_appraiser(str(tmp_path / "model"))
    same = again.probabilities(["My fault.", "Oh."], ["target", "observer"])
    found = appraiser.probabilities(["My fault.", "Oh."], ["target", "observer"])
    assert torch.equal(same, found)
    assert any("lora" in n for n, p in filler.named_parameters() if p.requires_grad) == bool(rank)


def test_a_classifier_is_read_by_the_names_of_its_labels(tmp_path: Path) -> None:
    names = {0: "advice", 1: "self-other agency", 2: "TROPE"}
    folder = write_bert(tmp_path / "named", "classifier", id2label=names, num_labels=3)
    appraiser = appraiser_by_name(str(folder))
    assert isinstance(appraiser, ClassifierAppraiser)
    found = appraiser.probabilities(["Rest."], ["observer"])
    assert found[0, [LABELS.index(n) for n in ("Advice", "Self-Other Agency", "Trope")]].sum() == (
        pytest.approx(1.0)
    )
    other = write_bert(tmp_path / "other", "classifier", num_labels=2)
    with pytest.raises(UserError, match="no appraisal of ALOE"):
        appraiser_by_name(str(other))


def test_an_encoder_without_a_head_cannot_be_asked(tmp_path: Path) -> None:
    from transformers import BertConfig, BertModel

    BertModel(
        BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
    ).save_pretrained(tmp_path)
    with pytest.raises(UserError, match="no language-model head"):
        GapFiller.load(str(tmp_path))
