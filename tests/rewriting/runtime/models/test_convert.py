"""Conversion gives back the weights that went in, and transformers loads them unchanged."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rewriting.errors import UserError
from rewriting.runtime.models import convert
from tests.rewriting.runtime.tiny import (
    T5_SHAPE,
    t5_reference,
    write_qwen_gguf,
    write_t5_onnx,
    write_tokenizer,
)


@pytest.fixture(scope="module")
def reference() -> Any:
    return t5_reference()


@pytest.fixture(scope="module")
def source(reference: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("onnx")
    write_t5_onnx(reference, folder)
    write_tokenizer(folder / "tokenizer.json")
    return folder


@pytest.fixture(scope="module")
def converted(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("t5")
    convert.t5_folder(source, folder)
    return folder


def logits(model: Any) -> Any:
    import torch

    with torch.no_grad():
        return model(
            input_ids=torch.tensor([[3, 4, 5, 1]]), decoder_input_ids=torch.tensor([[0, 6, 7]])
        ).logits


def onnx_file(path: Path, arrays: dict[str, Any], nodes: list[Any]) -> Path:
    import onnx
    from onnx import helper, numpy_helper

    initialisers = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [], [], initialisers)), str(path))
    return path


def test_dequantisation_by_hand(tmp_path: Path) -> None:
    """(q − 128) · 0.5 for a table; (q + 1) · 0.25, transposed, for a linear layer."""
    from onnx import helper

    arrays = {
        "enc.table.weight_quantized": np.array([[0, 128, 255]], np.uint8),
        "enc.table.weight_zero_point": np.array(128, np.uint8),
        "enc.table.weight_scale": np.array(0.5, np.float32),
        "onnx::MatMul_7_quantized": np.array([[-128, 0, 1], [3, 7, 127]], np.int8),
        "onnx::MatMul_7_zero_point": np.array(-1, np.int8),
        "onnx::MatMul_7_scale": np.array(0.25, np.float32),
        "enc.final_layer_norm.weight": np.array([1.5], np.float32),
        "unrelated": np.array([9.0], np.float32),
    }
    inputs = ["x", "onnx::MatMul_7_quantized", "z", "onnx::MatMul_7_zero_point"]
    name = "/enc/block.0/layer.0/SelfAttention/q/MatMul_quant"
    node = helper.make_node("MatMulInteger", inputs, ["y"], name=name)
    weights = convert.onnx_weights(onnx_file(tmp_path / "a.onnx", arrays, [node]), "enc")
    assert {key: array.tolist() for key, array in weights.items()} == {
        "table.weight": [[-64.0, 0.0, 63.5]],
        "block.0.layer.0.SelfAttention.q.weight": [[-31.75, 1.0], [0.25, 2.0], [0.5, 32.0]],
        "final_layer_norm.weight": [1.5],
    }
    assert {array.dtype for array in weights.values()} == {np.dtype("float32")}


def test_every_weight_comes_back_exactly(reference: Any, source: Path) -> None:
    arrays = convert.t5_state(source / "encoder.onnx", source / "decoder.onnx")
    expected = {k: v.numpy() for k, v in reference.state_dict().items() if "embed_tokens" not in k}
    assert arrays.keys() == expected.keys()
    for key, array in expected.items():
        np.testing.assert_array_equal(arrays[key], array, err_msg=key)


def test_the_configuration_is_read_off_the_shapes(converted: Path) -> None:
    config = json.loads((converted / "config.json").read_text())
    assert {key: config[key] for key in T5_SHAPE} == T5_SHAPE
    assert config["tie_word_embeddings"] is False


def test_plain_transformers_reloads_the_untied_output_layer(
    reference: Any, converted: Path
) -> None:
    """Also after another save and load, as a fine-tuned model goes through."""
    import torch
    from transformers import AutoModelForSeq2SeqLM

    model = AutoModelForSeq2SeqLM.from_pretrained(converted)
    assert torch.equal(logits(model), logits(reference))
    assert not torch.equal(model.lm_head.weight, model.shared.weight)
    assert model.encoder.embed_tokens.weight is model.shared.weight
    model.save_pretrained(converted / "again")
    again = AutoModelForSeq2SeqLM.from_pretrained(converted / "again")
    assert torch.equal(logits(again), logits(reference))


def test_the_tokenizer_neither_cuts_nor_pads(converted: Path) -> None:
    from transformers import AutoTokenizer

    saved = json.loads((converted / "tokenizer.json").read_text())
    assert (saved["truncation"], saved["padding"]) == (None, None)
    tokenizer = AutoTokenizer.from_pretrained(converted)
    assert tokenizer(["i feel so sad today", "sad"]).input_ids == [[3, 4, 5, 6, 7], [6]]
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id) == (0, 1, 2)


def test_a_missing_weight_is_an_error_not_a_random_number(reference: Any, tmp_path: Path) -> None:
    class Without:
        def state_dict(self) -> dict[str, Any]:
            state = dict(reference.state_dict())
            del state["decoder.final_layer_norm.weight"]
            return state

    write_t5_onnx(Without(), tmp_path)
    with pytest.raises(UserError, match=r"differing: decoder\.final_layer_norm\.weight"):
        convert.t5_folder(tmp_path, tmp_path)


def test_two_embeddings_are_not_a_t5(reference: Any, tmp_path: Path) -> None:
    class Twofold:
        def state_dict(self) -> dict[str, Any]:
            state = dict(reference.state_dict())
            state["encoder.embed_tokens.weight"] = state["shared.weight"].flip(0)
            return state

    write_t5_onnx(Twofold(), tmp_path)
    with pytest.raises(UserError, match="do not share one embedding"):
        convert.t5_state(tmp_path / "encoder.onnx", tmp_path / "decoder.onnx")


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A converted toy, and the weights that went into its embedding and its output layer."""
    source, target = tmp_path_factory.mktemp("gguf"), tmp_path_factory.mktemp("qwen")
    weights = write_qwen_gguf(source / "model.gguf")
    convert.qwen2_folder(source, target)
    return target, weights


def test_a_gguf_becomes_dense_with_its_own_output_layer(qwen: tuple[Path, dict[str, Any]]) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    folder, weights = qwen
    config = json.loads((folder / "config.json").read_text())
    assert "quantization_config" not in config
    assert (config["tie_word_embeddings"], config["dtype"]) == (False, "float32")
    model = AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    embedding, output = weights["token_embd.weight"], weights["output.weight"]
    np.testing.assert_array_equal(model.model.embed_tokens.weight.detach().numpy(), embedding)
    np.testing.assert_array_equal(model.lm_head.weight.detach().numpy(), output)


def test_qwen_reads_composed_accents_and_knows_both_of_its_ends(
    qwen: tuple[Path, dict[str, Any]],
) -> None:
    from transformers import AutoTokenizer, GenerationConfig

    tokenizer = AutoTokenizer.from_pretrained(qwen[0])
    assert tokenizer.tokenize("ae\u0301 12") == ["a", "Ã©", "Ġ", "1", "2"]
    assert (tokenizer.eos_token, tokenizer.pad_token) == ("<|im_end|>", "<|endoftext|>")
    assert tokenizer.model_max_length == 64
    assert GenerationConfig.from_pretrained(qwen[0]).eos_token_id == [9, 8]


def test_quiet_transformers_puts_everything_back() -> None:
    import logging

    from transformers.utils import logging as transformers_logging

    logger = logging.getLogger("transformers.modeling_utils")
    before = (transformers_logging.is_progress_bar_enabled(), list(logger.filters))
    with convert.quiet_transformers():
        assert not transformers_logging.is_progress_bar_enabled()
        record = logging.makeLogRecord({"msg": "BertModel LOAD REPORT from: x"})
        assert not logger.filter(record)
        assert logger.filter(logging.makeLogRecord({"msg": "something else"}))
    assert (transformers_logging.is_progress_bar_enabled(), list(logger.filters)) == before
