"""`train.py reverse_lm`, really run: on a tiny model, stopped, resumed, shared by two processes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from recipes.entry import run_training
from recipes.train.reverse_lm import Config, run
from rewards.terms.mutual_information import MutualInformation, backward_prefixes
from rewriting.runtime.language_models.backbone import Backbone
from tests.tiny_lm import write_tiny_llama

ROOT = Path(__file__).parents[3]
TOPICS = ("job", "cat", "exam", "house", "mother", "sleep")
ROWS = [
    {"seeker_post": f"I lost my {t} {n}.", "response_post": f"Losing a {t} hurts {n}. Why?"}
    for t in TOPICS
    for n in range(6)
]
SETTINGS: dict[str, Any] = {
    "steps": 4,
    "batch_size": 4,
    "micro_batch_size": 2,
    "learning_rate": 0.01,
    "rank": 2,
    "eval_every": 2,
    "save_every": 2,
    "max_dev_rows": 4,
    "dropout": 0.1,
    "half": False,
}


@pytest.fixture
def config(tmp_path: Path, jsonl: Callable[..., Path]) -> Config:
    model = write_tiny_llama(tmp_path / "model")
    return Config(output=str(tmp_path / "run"), data=str(jsonl(ROWS)), model=str(model), **SETTINGS)


def flags(config: Config, **changed: Any) -> list[str]:
    values = {**vars(config), **changed}
    return [word for name, value in values.items() for word in (f"--{name}", str(value))]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "adapter" / "adapter_model.safetensors")


def losses(folder: Path) -> list[float]:
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["loss"] for line in lines]


def test_a_run_leaves_an_adapter_that_works(config: Config, tmp_path: Path) -> None:
    run_training(["reverse_lm", *flags(config)])
    folder = tmp_path / "run" / "adapter"
    results = json.loads((folder / "results.json").read_text())["figures"]["results"]
    backbone = Backbone.load(config.model)
    MutualInformation(backbone, adapter=folder)
    splits = {row["split"]: row for row in results}
    assert set(splits) <= {"dev", "test"}
    assert splits["dev"]["perplexity"] < splits["dev"]["bare_model"]
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert f"{splits['dev']['perplexity']:.2f}" in text
    assert "python train.py reverse_lm --data" in text
    prefixes = backward_prefixes(["Losing a job hurts. Why?"])
    bare, trained = (backbone.scores(prefixes, ["I lost my job."], r) for r in (None, "reverse_lm"))
    assert trained[0].mean > bare[0].mean


def test_a_run_goes_on_after_sigterm_bit_for_bit(config: Config, tmp_path: Path) -> None:
    command = [sys.executable, "train.py", "reverse_lm"]
    # So many steps that the signal comes in the middle; the schedule is that of the long run.
    long = flags(config, output=str(tmp_path / "cut"), steps=100, save_every=1000, eval_every=1000)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    process = subprocess.Popen([*command, *long], cwd=ROOT, env=environment)
    log = tmp_path / "cut" / "log.jsonl"
    deadline = time.monotonic() + 120
    while not (log.exists() and log.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 0
    (checkpoint,) = (tmp_path / "cut" / "checkpoints").glob("step_*")
    assert 0 < int(checkpoint.name.removeprefix("step_")) < 100
    assert not (tmp_path / "cut" / "adapter").exists()
    cut = Config(**{**vars(config), "output": str(tmp_path / "cut"), "steps": 100})
    whole = Config(**{**vars(cut), "output": str(tmp_path / "whole")})
    for settings in (cut, whole):
        settings.save_every = settings.eval_every = 1000
        run(settings)
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")
    again = weights(tmp_path / "cut")
    for key, tensor in weights(tmp_path / "whole").items():
        assert torch.equal(tensor, again[key])


def test_two_processes_give_the_losses_of_one(config: Config, tmp_path: Path) -> None:
    config.dropout = 0.0
    run(config)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
    rest = ["train.py", "reverse_lm", *flags(config, output=str(tmp_path / "two"))]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, *rest], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert "2 processes" in done.stderr
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "run"), rel=1e-4)
    two = weights(tmp_path / "two")
    for key, tensor in weights(tmp_path / "run").items():
        assert torch.allclose(tensor, two[key], atol=1e-4)


def test_other_settings_do_not_go_on(config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    config.steps = 2
    run(config)
    with pytest.raises(SystemExit) as stopped:
        run_training(["reverse_lm", *flags(config, learning_rate=0.5)])
    assert stopped.value.code == 1
    assert "learning_rate was 0.01 and is now 0.5" in capsys.readouterr().err
