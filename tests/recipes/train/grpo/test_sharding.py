"""The launch files, and `train.py grpo` with the model shared out over two processes."""

import json
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import peft
import pytest
import torch
import yaml
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils import FullyShardedDataParallelPlugin
from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env
from safetensors.torch import load_file
from transformers import LlamaForCausalLM

from policies.named import load_bare_policy
from recipes.train.grpo import sharding
from rewriting import Exchange, UserError
from tests.recipes.train.grpo.toys import ROWS, TEMPLATE
from tests.tiny_lm import tiny_llama, tiny_tokenizer, write_tiny_llama

ROOT = Path(__file__).parents[4]
FILES = sorted((ROOT / "configs" / "launch").glob("*.yaml"))
LAYER = "base_model.model.model.layers.0"
REWARD = """
import os

def tokens(completions, completion_ids, **_):
    longest = max(len(ids) for ids in completion_ids)
    with open(os.environ["LENGTHS"] + os.environ["RANK"], "a") as file:
        print(longest, file=file)
    return [float(sum(ids) % 7) for ids in completion_ids]
"""


def launched(file: Path) -> Namespace:
    """The arguments of `accelerate launch --config_file FILE train.py`, as it completes them."""
    parsed = launch_command_parser().parse_args(["--config_file", str(file), "train.py"])
    arguments, _, _ = _validate_launch_command(parsed)
    return arguments


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_launch_file_has_only_keys_that_accelerate_knows(file: Path) -> None:
    arguments = launched(file)  # unknown keys of the first level raise here
    assert (arguments.num_processes, arguments.mixed_precision) in [(8, "bf16"), (16, "bf16")]
    settings = yaml.safe_load(file.read_text(encoding="utf-8"))
    known = vars(launch_command_parser().parse_args(["train.py"]))
    nested = settings.get("fsdp_config", {}) | settings.get("deepspeed_config", {})
    assert set(nested) <= set(known)
    command = f"accelerate launch --config_file configs/launch/{file.name} "
    assert command in file.read_text(encoding="utf-8").split("\ncompute")[0]


def test_the_launch_file_asks_for_fsdp_2(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in prepare_multi_gpu_env(launched(ROOT / "configs/launch/fsdp.yaml")).items():
        monkeypatch.setenv(name, value)
    assert sharding.uses_fsdp()
    plugin = FullyShardedDataParallelPlugin()
    plugin.set_mixed_precision(os.environ["ACCELERATE_MIXED_PRECISION"])
    assert plugin.fsdp_version == 2
    assert plugin.reshard_after_forward is True
    assert plugin.auto_wrap_policy.__name__ == "transformer_auto_wrap_policy"
    assert plugin.state_dict_type.name == "FULL_STATE_DICT"  # else TRL saves no adapter
    assert plugin.mixed_precision_policy.param_dtype == torch.bfloat16


@pytest.mark.parametrize("stage", [2, 3])
def test_the_launch_files_ask_for_deepspeed(stage: int) -> None:
    arguments = launched(ROOT / f"configs/launch/deepspeed_zero{stage}.yaml")
    assert arguments.use_deepspeed
    arguments.deepspeed_fields_from_accelerate_config = ""
    _, environment = prepare_deepspeed_cmd_env(arguments)
    assert environment["ACCELERATE_DEEPSPEED_ZERO_STAGE"] == str(stage)
    assert environment["ACCELERATE_DEEPSPEED_ZERO3_INIT"] == str(stage == 3).lower()


def test_reward_models_without_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    monkeypatch.setenv("FSDP_CPU_RAM_EFFICIENT_LOADING", "true")
    with pytest.raises(UserError, match="reward models empty"):
        sharding.begin()


def test_an_adapter_of_a_warm_start_is_trained_on_and_asks_no_hub(tmp_path: Path) -> None:
    write_tiny_llama(tmp_path / "model")
    model = LlamaForCausalLM.from_pretrained(tmp_path / "model")
    peft.get_peft_model(model, peft.LoraConfig(target_modules=["q_proj"])).save_pretrained(
        tmp_path / "warm_start"
    )
    described = tmp_path / "warm_start" / "adapter_config.json"
    named = json.loads(described.read_text()) | {"base_model_name_or_path": "smollm2-135m"}
    described.write_text(json.dumps(named))
    model = LlamaForCausalLM.from_pretrained(tmp_path / "model")
    arguments = Namespace(deepspeed_plugin=None)
    assert sharding.with_warm_start(model, None, arguments) is model
    trained = sharding.with_warm_start(model, tmp_path / "warm_start", arguments)
    assert any(weight.requires_grad for weight in trained.parameters())
    trained.save_pretrained(tmp_path / "saved")  # a warning, had it looked for the short name


@pytest.fixture
def arguments(tmp_path: Path, jsonl: Callable[..., Path]) -> list[str]:
    """Of a run of two steps, on a model with tied embeddings, as the default one has them."""
    config = tiny_llama().config
    config.tie_word_embeddings, config.max_position_embeddings = True, 1024
    LlamaForCausalLM(config).save_pretrained(tmp_path / "model")
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(tmp_path / "model")
    (tmp_path / "mine.py").write_text(REWARD)
    files = f"--model {tmp_path}/model --data {jsonl(ROWS)} --output {tmp_path}/run"
    sizes = "--rank 2 --alpha 4 --batch_size 2 --num_samples 2 --max_new_tokens 40"
    rewards = ["--rewards", f"{{{tmp_path}/mine.py:tokens: 1.0}}"]
    return ["grpo", *files.split(), *sizes.split(), *rewards, "--steps", "2", "--save_every", "2"]


@pytest.fixture
def edits(jsonl: Callable[..., Path]) -> list[str]:
    """What makes that a run of edits, with a supervised start."""
    warm_data = jsonl([row | {"edits": []} for row in ROWS], "edited.jsonl")
    return ["--actions", "edits", "--warm_steps", "2", "--warm_data", str(warm_data)]


@pytest.mark.parametrize("actions", ["rewrites", "edits"])
@pytest.mark.parametrize("launch", ["fsdp", "deepspeed_zero2", "deepspeed_zero3"])
def test_a_sharded_policy_is_trained_and_saved_whole(
    launch: str, actions: str, arguments: list[str], edits: list[str], tmp_path: Path
) -> None:
    if launch != "fsdp" and not find_spec("deepspeed"):
        pytest.skip("deepspeed is not installed")
    arguments += edits if actions == "edits" else []
    command = [sys.executable, "-m", "accelerate.commands.launch", "--main_process_port", "0"]
    command += ["--config_file", f"configs/launch/{launch}.yaml", "--num_processes", "2"]
    command += ["--mixed_precision", "no", "tests/recipes/train/grpo/sharded_run.py", *arguments]
    lengths = str(tmp_path / "lengths")
    own = {"LENGTHS": lengths, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | own, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    first, second = ((tmp_path / f"lengths{rank}").read_text() for rank in (0, 1))
    if actions == "rewrites":  # one process ended earlier, and did not leave the other waiting
        assert first != second
    folder = tmp_path / "run" / "policy"
    log = json.loads((folder / "results.json").read_text())["figures"]["log"]
    assert [row["step"] for row in log] == [1, 2]
    weights = load_file(folder / "adapter_model.safetensors")
    assert len(weights) == 2 * 2 * 7  # layers, matrices, linear maps of a layer
    assert weights[f"{LAYER}.mlp.gate_proj.lora_A.weight"].shape == (2, 16)
    assert weights[f"{LAYER}.mlp.gate_proj.lora_B.weight"].shape == (32, 2)
    assert all(w.any() for name, w in weights.items() if "lora_B" in name)
    exchanges = [Exchange(row["seeker_post"], row["response_post"]) for row in ROWS[:2]]
    assert len(load_bare_policy(str(folder)).rewrite(exchanges, seed=1)) == 2
