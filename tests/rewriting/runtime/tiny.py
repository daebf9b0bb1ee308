"""Small stand-ins: a wheel, a T5 in quantised ONNX files as the real ones are, a llama, a GGUF."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np


def make_wheel(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


T5_SHAPE = {
    "vocab_size": 20,
    "d_model": 8,
    "d_kv": 4,
    "d_ff": 16,
    "num_layers": 2,
    "num_decoder_layers": 1,
    "num_heads": 3,  # heads × d_kv differs from d_model, as in flan-t5-small
    "relative_attention_num_buckets": 32,
    "feed_forward_proj": "gated-gelu",
}


def t5_reference() -> Any:
    """A T5 with an output layer of its own, whose weights lie exactly on a grid of 8 bits."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    shape: dict[str, Any] = {**T5_SHAPE, "tie_word_embeddings": False, "decoder_start_token_id": 0}
    config = T5Config(**shape)
    model = T5ForConditionalGeneration(config).eval()
    model.lm_head = torch.nn.Linear(config.d_model, config.vocab_size, bias=False)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.endswith("layer_norm.weight"):
                parameter.copy_(torch.randint(-100, 100, parameter.shape) / 256)
    return model


def write_t5_onnx(model: Any, folder: Path) -> None:
    """The reference as two ONNX files, each weight in the form that the real files have."""
    state = {key: tensor.detach().numpy() for key, tensor in model.state_dict().items()}
    encoder = {k.removeprefix("encoder."): v for k, v in state.items() if k.startswith("encoder.")}
    decoder = {k: v for k, v in state.items() if not k.startswith("encoder.")}
    decoder.pop("decoder.embed_tokens.weight")
    _write_graph(folder / "encoder.onnx", "enc", encoder)
    _write_graph(folder / "decoder.onnx", "m", decoder)


def _write_graph(path: Path, root: str, weights: dict[str, Any]) -> None:
    import onnx
    from onnx import helper, numpy_helper

    stored: dict[str, Any] = {}
    nodes = []
    for number, (key, array) in enumerate(weights.items()):
        if key.endswith("layer_norm.weight"):
            stored[f"{root}.{key}"] = array
        elif "embed" in key or "shared" in key or "bias" in key:
            _quantise(stored, f"{root}.{key}", array, zero_point=128, dtype=np.uint8)
        else:
            name = f"onnx::MatMul_{number}"
            _quantise(stored, name, array.T, zero_point=3, dtype=np.int8)
            inputs = [f"x{number}", f"{name}_quantized", f"z{number}", f"{name}_zero_point"]
            module = key.removesuffix(".weight").replace(".", "/").replace("block/", "block.")
            module = module.replace("layer/", "layer.")
            node = f"/{root}/{module}/MatMul_quant"
            nodes.append(helper.make_node("MatMulInteger", inputs, [f"y{number}"], name=node))
    # Attention multiplies two activations as well: such a node has no stored weight.
    nodes.append(helper.make_node("MatMulInteger", ["a", "b", "c", "d"], ["e"], name="/other"))
    initialisers = [numpy_helper.from_array(np.asarray(v), k) for k, v in stored.items()]
    graph = helper.make_graph(nodes, "tiny", [], [], initialisers)
    onnx.save(helper.make_model(graph), str(path))


def _quantise(stored: dict[str, Any], name: str, array: Any, zero_point: int, dtype: Any) -> None:
    stored[f"{name}_quantized"] = (np.round(array * 256) + zero_point).astype(dtype)
    stored[f"{name}_zero_point"] = np.array(zero_point, dtype)
    stored[f"{name}_scale"] = np.array(1 / 256, np.float32)


def write_tokenizer(path: Path) -> None:
    """A tokenizer of words that cuts at three tokens and pads, as the real file does at 48."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["<pad>", "</s>", "<unk>", "i", "feel", "so", "sad", "today"]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding()
    tokenizer.save(str(path))


def write_llama(folder: Path, pad_token: str | None = None, eos_token: str | None = "</s>") -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=20,
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    write_tokenizer(folder / "raw.json")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "raw.json"), eos_token=eos_token, pad_token=pad_token
    )
    tokenizer.save_pretrained(folder)


QWEN_TOKENS = ["a", "b", "Ã", "©", "Ġ", "1", "2", "Ã©", "<|endoftext|>", "<|im_end|>"]


def write_qwen_gguf(path: Path) -> dict[str, Any]:
    """A Qwen2 of one layer with an output layer of its own, in 8 bits; gives its two outer layers.

    Their values lie exactly on the grid of the quantisation: in each block of 32 the largest is 127
    steps of 1/64.
    """
    import gguf

    writer = gguf.GGUFWriter(path, "qwen2")
    for key, number in {"block_count": 1, "context_length": 64, "embedding_length": 32}.items():
        writer.add_uint32(f"qwen2.{key}", number)
    writer.add_feed_forward_length(32)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10_000.0)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(QWEN_TOKENS)
    writer.add_token_types([1] * 8 + [3, 3])
    writer.add_token_merges(["Ã ©"])
    writer.add_eos_token_id(9)
    writer.add_pad_token_id(8)
    random = np.random.default_rng(0)
    outer = {}
    for name, shape in _qwen_shapes().items():
        steps = random.integers(-126, 127, shape).astype(np.float32)
        if name.endswith(("norm.weight", ".bias")):
            writer.add_tensor(name, np.ones(shape, np.float32))
            continue
        steps[..., 0] = 127
        kind = gguf.GGMLQuantizationType.Q8_0
        writer.add_tensor(name, gguf.quantize(steps / 64, kind), raw_dtype=kind)
        outer[name] = steps / 64
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return {name: outer[name] for name in ("token_embd.weight", "output.weight")}


def _qwen_shapes() -> dict[str, tuple[int, ...]]:
    attention = {"q": 32, "k": 16, "v": 16}
    layer: dict[str, tuple[int, ...]] = {
        **{f"attn_{key}.weight": (size, 32) for key, size in attention.items()},
        **{f"attn_{key}.bias": (size,) for key, size in attention.items()},
        **{f"{key}.weight": (32, 32) for key in ("attn_output", "ffn_gate", "ffn_up", "ffn_down")},
        **{f"{key}_norm.weight": (32,) for key in ("attn", "ffn")},
    }
    return {
        "token_embd.weight": (len(QWEN_TOKENS), 32),
        **{f"blk.0.{key}": shape for key, shape in layer.items()},
        "output_norm.weight": (32,),
        "output.weight": (len(QWEN_TOKENS), 32),
    }
