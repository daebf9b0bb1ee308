"""The loaders on toys, then on the real models."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
import torch

from rewriting.errors import UserError
from rewriting.runtime.models import convert, wheels
from rewriting.runtime.models import named as models
from tests.rewriting.runtime import tiny


def test_an_unreachable_hub_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AutoTokenizer

    def unreachable(*args: Any, **options: Any) -> None:
        raise OSError("We couldn't connect.\nCheckout your internet connection …")

    monkeypatch.setattr(models, "hub_problem", lambda name: "")  # it fails after it was asked
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", unreachable)
    with pytest.raises(
        UserError, match=r"\(We couldn't connect\)\. Connect to the hub, or"
    ) as error:
        models.load_causal("org/model")
    assert "\n" not in str(error.value)


def test_a_causal_model_gets_padding_on_the_left(tmp_path: Path) -> None:
    import torch

    tiny.write_llama(tmp_path)
    model, tokenizer = models.load_causal(str(tmp_path), device="cpu")
    assert (tokenizer.padding_side, tokenizer.pad_token) == ("left", "</s>")
    assert model.generation_config.pad_token_id == tokenizer.pad_token_id == 1
    assert not model.training
    assert model.dtype == torch.float32
    model, _ = models.load_causal(str(tmp_path), dtype=torch.float64, device="cpu")
    assert model.dtype == torch.float64


def test_a_tokenizer_keeps_its_own_pad_token_and_needs_some(tmp_path: Path) -> None:
    tiny.write_llama(tmp_path / "a", pad_token="<pad>")
    assert models.load_causal(str(tmp_path / "a"))[1].pad_token == "<pad>"
    tiny.write_llama(tmp_path / "b", eos_token=None)
    with pytest.raises(UserError, match="neither a pad nor an end token"):
        models.load_causal(str(tmp_path / "b"))


def test_a_model_of_the_wrong_kind_is_named(tmp_path: Path) -> None:
    tiny.write_llama(tmp_path / "llama")
    with pytest.raises(UserError, match="another kind of model"):
        models.load_seq2seq(str(tmp_path / "llama"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"no config\.json"):
        models.load_encoder(str(tmp_path / "empty"))


def test_missing_weights_are_an_error_not_random_numbers(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    tiny.write_llama(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["model.norm.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        UserError, match=r"cannot be a LlamaForCausalLM: it lacks model\.norm\.weight"
    ):
        models.load_causal(str(tmp_path))


def test_damaged_weights_are_one_line(tmp_path: Path) -> None:
    tiny.write_llama(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:200])
    with pytest.raises(UserError, match="are damaged"):
        models.load_causal(str(tmp_path))


def test_pickled_weights_are_not_loaded(tmp_path: Path) -> None:
    import torch

    tiny.write_llama(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save({}, tmp_path / "pytorch_model.bin")
    with pytest.raises(UserError, match="does not hold a loadable model"):
        models.load_causal(str(tmp_path))


@pytest.fixture(scope="module")
def tiny_t5(tmp_path_factory: pytest.TempPathFactory) -> str:
    source, target = tmp_path_factory.mktemp("onnx"), tmp_path_factory.mktemp("t5")
    tiny.write_t5_onnx(tiny.t5_reference(), source)
    tiny.write_tokenizer(source / "tokenizer.json")
    convert.t5_folder(source, target)
    return str(target)


def test_an_untied_output_layer_survives_tying(tiny_t5: str) -> None:
    import torch

    model, _ = models.load_seq2seq(tiny_t5)
    before = model.lm_head.weight.clone()
    model.tie_weights()
    model.resize_token_embeddings(24, mean_resizing=False)
    assert torch.equal(model.lm_head.weight[:20], before)
    assert not torch.equal(model.lm_head.weight[:20], model.shared.weight[:20])
    assert model.encoder.embed_tokens.weight is model.shared.weight


def test_of_a_t5_only_the_encoder_is_loaded(tiny_t5: str) -> None:
    model, _ = models.load_encoder(tiny_t5)
    assert type(model).__name__ == "T5EncoderModel"
    assert not model.training


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default models are installed; then nothing may be downloaded or connected to."""
    for name in models.default_names():
        models.fetch(name)

    def forbidden(*args: Any, **options: Any) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(wheels, "download", forbidden)
    monkeypatch.setattr(socket.socket, "connect", forbidden)
    monkeypatch.setattr(socket, "getaddrinfo", forbidden)


@pytest.mark.integration
def test_everything_is_there_without_the_network(no_network: None) -> None:
    installed = {row["name"] for row in models.status() if row["installed"]}
    assert installed >= set(models.default_names())
    for name in models.default_names():
        assert models.fetch(name, verify=True) == models.cache_folder() / name


@pytest.mark.integration
def test_smollm2_continues_a_sentence_sensibly(no_network: None) -> None:
    model, tokenizer = models.load_causal("smollm2-135m", device="cpu")

    def continued(texts: list[str]) -> list[str]:
        batch = tokenizer(texts, return_tensors="pt", padding=True)
        output = model.generate(**batch, max_new_tokens=4, do_sample=False)
        return list(tokenizer.batch_decode(output, skip_special_tokens=True))

    short, long = "The capital of France is", "I could not sleep last night, and now I am very"
    together = continued([short, long])
    assert together[0].startswith("The capital of France is Paris")
    assert together == continued([short]) + continued([long]), "padding must not change the text"


@pytest.mark.integration
def test_smollm2_comes_with_its_chat_template_and_reads_digits_alone(no_network: None) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(models.resolve("smollm2-135m"))
    chat = tokenizer.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False)
    assert "<|im_start|>user\nHi<|im_end|>" in chat
    assert tokenizer.tokenize("x  42") == ["x", "ĠĠ", "4", "2"]
    config = json.loads(Path(models.resolve("smollm2-135m"), "config.json").read_text())
    assert "quantization_config" not in config
    assert config["dtype"] == "float32"


@pytest.mark.integration
def test_minilm_ranks_a_paraphrase_above_a_stranger(no_network: None) -> None:
    encoder = models.load_sentence_encoder("minilm-l6", device="cpu")
    sentences = [
        "The weather is lovely today.",
        "It's so sunny outside!",
        "He drove to the stadium.",
    ]
    vectors = encoder.encode(sentences, show_progress_bar=False)
    # The numbers that the documentation of sentence-transformers prints for this very example.
    assert vectors[0] @ vectors[1] == pytest.approx(0.6660, abs=1e-4)
    assert vectors[0] @ vectors[2] == pytest.approx(0.1046, abs=1e-4)
    assert type(models.load_encoder("minilm-l6")[0]).__name__ == "BertModel"


@pytest.mark.integration
def test_flan_t5_answers_in_words(no_network: None) -> None:
    model, tokenizer = models.load_seq2seq("flan-t5-small", device="cpu")
    batch = tokenizer("Answer this question: What colour is the sky?", return_tensors="pt")
    output = model.generate(**batch, max_new_tokens=20, do_sample=False)
    assert "blue" in tokenizer.decode(output[0], skip_special_tokens=True)
    words = " ".join(["word"] * 100)
    assert len(tokenizer(words).input_ids) == 101, "the titler's cut at 48 tokens is gone"


def needs_installed(name: str) -> None:
    """Larger models are tested where somebody has fetched them: a test does not download 2 GB."""
    if not next(row["installed"] for row in models.status() if row["name"] == name):
        pytest.skip(f"`rewriting models fetch {name}` was not run")


@pytest.mark.integration
def test_mpnet_ranks_a_paraphrase_above_a_stranger(no_network: None) -> None:
    needs_installed("mpnet-base")
    encoder = models.load_sentence_encoder("mpnet-base", device="cpu")
    sentences = ["That is so sad.", "I am sorry to hear it.", "He drove to the stadium."]
    vectors = encoder.encode(sentences, show_progress_bar=False)
    assert vectors.shape == (3, 768)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2
    assert type(models.load_encoder("mpnet-base")[0]).__name__ == "MPNetModel"


@pytest.mark.integration
def test_qwen_is_untied_composes_accents_and_ends_both_ways(no_network: None) -> None:
    needs_installed("qwen2.5-coder-0.5b")
    model, tokenizer = models.load_causal("qwen2.5-coder-0.5b", device="cpu")
    assert model.num_parameters() == 630_167_424, "the output layer is not the embedding"
    assert tokenizer.tokenize("e\u0301 42") == ["Ã©", "Ġ", "4", "2"]
    ends = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])
    assert model.generation_config.eos_token_id == ends
    batch = tokenizer("The capital of France is", return_tensors="pt")
    output = model.generate(**batch, max_new_tokens=1, do_sample=False)
    assert tokenizer.decode(output[0]) == "The capital of France is Paris"


@pytest.mark.parametrize("name", ["folder", "org/model"])
@pytest.mark.parametrize(
    "error", [MemoryError, torch.OutOfMemoryError, ImportError, ArithmeticError]
)
def test_only_what_a_folder_holds_is_blamed_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, error: type[Exception]
) -> None:
    from transformers import AutoTokenizer

    monkeypatch.setattr(models, "hub_problem", lambda name: "")  # it fails after it was asked

    def failing(*args: Any, **options: Any) -> None:
        raise error("the reason")

    tiny.write_llama(tmp_path / "folder")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", failing)
    blamed = name == "folder" and error is ArithmeticError
    with pytest.raises(UserError if blamed else error, match="the reason"):
        models.load_causal(name)
