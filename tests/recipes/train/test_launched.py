"""Recipes under the launchers: two processes, as copies and sharded, do the work of one.

Everything that one start of two processes can show is shown by it: starting them takes longest.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from policies.named import load_bare_policy
from recipes.train.partner import recipe as partner
from rewriting import Exchange
from tests.recipes.train import launched_run, test_reverse_lm
from tests.recipes.train.emprl import toys as emprl_toys
from tests.recipes.train.partner import toys as partner_toys
from tests.recipes.words import Words
from tests.tiny_lm import write_tiny_llama
from tests.tiny_t5 import write_tiny_t5

ROOT = Path(__file__).parents[3]
KINDS = {
    "ddp": "DistributedType.MULTI_CPU 2",
    "fsdp": "DistributedType.FSDP 2",
    "deepspeed_zero2": "DistributedType.DEEPSPEED 2",
    "deepspeed_zero3": "DistributedType.DEEPSPEED 2",
}


def jobs(folder: Path) -> dict[str, dict[str, Any]]:
    """LoRA, a whole model, an encoder-decoder with PPO, and a supervised recipe."""
    llama, t5 = str(folder / "llama"), str(folder / "t5")
    edits = partner_toys.SETTINGS | {"data": str(folder / "partner.jsonl"), "model": llama}
    speech = emprl_toys.SETTINGS | {"data": str(folder / "emprl.jsonl"), "model": t5}
    # Low rates: AdamW makes a step of the whole rate of a gradient that is rounding alone.
    speech |= {"adapter": "lora", "sft_learning_rate": 0.002, "learning_rate": 0.0006}
    words = test_reverse_lm.SETTINGS | {"data": str(folder / "words.jsonl"), "model": llama}
    return {
        "lora": {"recipe": "partner", "config": edits},
        "whole": {"recipe": "partner", "config": edits | {"rank": 0, "learning_rate": 1e-3}},
        "emprl": {"recipe": "emprl", "config": speech},
        # Dropout follows from the process: with it, two cannot do the work of one.
        "words": {"recipe": "reverse_lm", "config": words | {"dropout": 0.0}},
    }


def placed(jobs: dict[str, dict[str, Any]], output: Path) -> list[dict[str, Any]]:
    return [
        job | {"config": job["config"] | {"output": str(output / name)}}
        for name, job in jobs.items()
    ]


def launch(
    launcher: str, todo: Sequence[dict[str, Any]], folder: Path
) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    (folder / "jobs.json").write_text(json.dumps(todo))
    start = ["torch.distributed.run", "--nproc_per_node", "2"]
    if launcher != "ddp":
        start = ["accelerate.commands.launch", "--config_file", f"configs/launch/{launcher}.yaml"]
        start += ["--num_processes", "2", "--mixed_precision", "no", "--main_process_port", "0"]
    own = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "DS_ACCELERATOR": "cpu"}
    return subprocess.run(
        [
            sys.executable,
            "-m",
            *start,
            "tests/recipes/train/launched_run.py",
            str(folder / "jobs.json"),
        ],
        cwd=ROOT,
        env=os.environ | own,
        capture_output=True,
        text=True,
        timeout=900,
    )


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("launched")
    write_tiny_llama(folder / "llama")
    write_tiny_t5(folder / "t5")
    tables = {"partner": partner_toys.ROWS, "emprl": emprl_toys.ROWS, "words": test_reverse_lm.ROWS}
    for name, rows in tables.items():
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def one(material: Path) -> Path:
    """What a single plain process gives."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(launched_run.named, "load_identifier", lambda name="words", **_: Words())
        for job in placed(jobs(material), material / "one"):
            launched_run.run(job)
    return material / "one"


def logs(folder: Path) -> dict[str, list[dict[str, float]]]:
    """Every log below a folder, without what is never the same twice."""
    return {
        str(path.relative_to(folder)): [
            {k: v for k, v in json.loads(line).items() if not k.startswith("seconds")}
            for line in path.read_text(encoding="utf-8").splitlines()
        ]
        for path in folder.rglob("log.jsonl")
    }


def saved(folder: Path) -> dict[str, torch.Tensor]:
    """Every weight that was saved for use."""
    files = [p for p in folder.rglob("*.safetensors") if "checkpoints" not in p.parts]
    return {
        f"{path.relative_to(folder)}:{name}": tensor
        for path in files
        for name, tensor in load_file(path).items()
    }


def assert_same(found: Path, expected: Path) -> None:
    ours, theirs = logs(found), logs(expected)
    assert ours.keys() == theirs.keys()
    for name, rows in theirs.items():
        for a, b in zip(rows, ours[name], strict=True):
            assert b == pytest.approx(a, rel=1e-4, abs=1e-4), name
    weights = saved(found)
    assert weights.keys() == saved(expected).keys()
    for name, tensor in saved(expected).items():
        torch.testing.assert_close(weights[name], tensor, atol=1e-4, rtol=1e-4, msg=name)


def reference(folder: Path) -> dict[str, torch.Tensor]:
    """The frozen reference in the newest checkpoint of a run."""
    return load_file(max((folder / "checkpoints").glob("step_*")) / "reference.safetensors")


@pytest.mark.parametrize("launcher", list(KINDS))
def test_two_processes_do_the_work_of_one(launcher: str, material: Path, one: Path) -> None:
    if launcher.startswith("deepspeed") and not find_spec("deepspeed"):
        pytest.skip("deepspeed is not installed")
    output, named = material / launcher, jobs(material)
    todo = placed(named, output)
    # Stopped in its third step, and started again.
    stopped = {"lora": named["lora"] | {"signal": "SIGTERM", "step": 3}}
    todo += placed(stopped, material / f"{launcher} stopped")
    done = launch(launcher, todo, output)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (output / "jobs.kind").read_text() == KINDS[launcher]
    assert_same(output, one)
    expected = reference(one / "emprl")
    torch.testing.assert_close(reference(output / "emprl"), expected, atol=1e-4, rtol=1e-4)
    assert "SIGTERM: finishing this step" in done.stderr
    assert_same(material / f"{launcher} stopped" / "lora", one / "lora")
    for name in ("lora", "whole", "emprl"):
        policy = load_bare_policy(str(output / name / "policy"))
        exchange = Exchange("I lost my cat.", "Get another. It is fine.")
        assert policy.rewrite([exchange], seed=1) == policy.rewrite([exchange], seed=1)


def test_killed_when_sharded_it_goes_on_in_a_single_process(material: Path, one: Path) -> None:
    job = jobs(material)["whole"] | {"signal": "SIGKILL", "step": 4}
    folder = material / "killed"
    done = launch("fsdp", placed({"whole": job}, folder), folder)
    assert done.returncode != 0
    checkpoint = max((folder / "whole" / "checkpoints").glob("step_*"))
    assert checkpoint.name == "step_00000002"
    assert not (folder / "whole" / "policy").exists()
    config = partner.Config(**job["config"] | {"output": str(folder / "whole")})
    partner.run(config)
    assert_same(folder / "whole", one / "whole")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
