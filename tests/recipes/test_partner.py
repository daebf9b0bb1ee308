"""`train.py partner`: the real recipe, both stages, on a tiny model."""

import json
import os
import re
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

from policies.named import load_policy
from recipes.entry import run_training
from recipes.partner import Config, run
from rewriting import Exchange
from tests.tiny_lm import write_tiny_llama

ROOT = Path(__file__).parent.parent.parent
TOPICS = ("job", "cat", "exam", "house", "mother", "sleep")
LABELS = {"emotional_reactions": 2, "interpretations": 0, "explorations": 2}
WEAK = dict.fromkeys(LABELS, 0)
ROWS: list[dict[str, Any]] = [
    {
        "seeker_post": f"I lost my {topic} {n}.",
        "response_post": f"I am so sorry, {topic}. Take a walk {n}. What was it?",
        "rationales": {
            "emotional_reactions": [f"I am so sorry, {topic}."],
            "explorations": ["What was it?"],
        },
    }
    | LABELS
    for topic in TOPICS
    for n in range(5)
] + [
    {"seeker_post": f"My {topic} is bad {n}.", "response_post": f"Get another {topic} soon."} | WEAK
    for topic in TOPICS
    for n in range(3)
]
REWARDS = "{repetition: {weight: 1.0, n: 1}, edit_size: 0.5}"
SETTINGS: dict[str, Any] = {
    "from_policy": "",
    "rewards": REWARDS,
    "rank": 2,
    "max_new_tokens": 6,
    "max_prompt_tokens": 160,
    "warm_steps": 2,
    "warm_batch_size": 4,
    "steps": 4,
    "batch_size": 2,
    "num_samples": 2,
    "learning_rate": 0.003,
    "micro_batch_size": 2,
    "dev_rows": 2,
    "eval_every": 2,
    "save_every": 2,
    "show_every": 2,
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
    policy = folder / "policy"
    return {
        f"{path.name}:{name}": tensor
        for path in sorted(policy.glob("*.safetensors"))
        for name, tensor in load_file(path).items()
    }


def log(folder: Path) -> list[dict[str, float]]:
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        {k: v for k, v in json.loads(line).items() if not k.startswith("seconds")} for line in lines
    ]


def test_a_run_leaves_a_policy_that_rewrites(
    config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_training(["partner", *flags(config)])
    printed = capsys.readouterr().out
    assert all(kind in printed for kind in ("insert", "replace", "keep"))
    folder = tmp_path / "run"
    rows = log(folder)
    assert [row["step"] for row in rows] == [0, 1, 2, 3, 4]
    assert all("rewards/repetition" in row and "rewards/edit_size" in row for row in rows[1:])
    assert (folder / "curves.png").stat().st_size > 0
    assert (folder / "samples.jsonl").read_text(encoding="utf-8").count("\n") >= 2
    card = (folder / "policy" / "README.md").read_text(encoding="utf-8")
    assert "python train.py partner" in card
    assert REWARDS in card
    policy = load_policy(str(folder / "policy"))
    exchange = Exchange("I lost my cat.", "Get another. It is fine.")
    assert policy.rewrite([exchange], seed=1) == policy.rewrite([exchange], seed=1)
    warm = load_policy(str(folder / "warm_start" / "policy"))
    assert warm.rewrite([exchange], seed=1)


def test_it_starts_from_a_policy_and_a_yaml_file(config: Config, tmp_path: Path) -> None:
    run(config)
    settings = vars(config) | {
        "from_policy": str(tmp_path / "run" / "warm_start" / "policy"),
        "output": str(tmp_path / "more"),
        "warm_steps": 0,
        "steps": 1,
        "rewards": {f"{tmp_path}/mine.py:longer": 0.5, "repetition": 1.0},
    }
    (tmp_path / "mine.py").write_text(
        "def longer(completions, response_post, **_):\n"
        "    return [len(c) - len(r) for c, r in zip(completions, response_post)]\n"
    )
    file = tmp_path / "partner.yaml"
    file.write_text(json.dumps(settings))  # JSON is YAML
    run_training(["partner", "--config", str(file), "--steps", "2"])
    rows = log(tmp_path / "more")
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert "rewards/longer" in rows[-1]


def test_killed_and_started_again_it_ends_with_the_same_bits(
    config: Config, tmp_path: Path
) -> None:
    long = {"steps": 30, "save_every": 3, "eval_every": 1000, "show_every": 1000}
    command = [sys.executable, "train.py", "partner"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    cut = tmp_path / "cut"
    process = subprocess.Popen(
        [*command, *flags(config, output=str(cut), **long)], cwd=ROOT, env=environment
    )
    deadline = time.monotonic() + 240
    while not list((cut / "checkpoints").glob("step_*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
    assert not (cut / "policy").exists()
    for folder in (cut, tmp_path / "whole"):
        run(Config(**{**vars(config), **long, "output": str(folder)}))
    assert log(cut) == log(tmp_path / "whole")
    again = weights(cut)
    for key, tensor in weights(tmp_path / "whole").items():
        assert torch.equal(tensor, again[key])


def test_two_processes_give_the_figures_of_one(config: Config, tmp_path: Path) -> None:
    run(config)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
    rest = ["train.py", "partner", *flags(config, output=str(tmp_path / "two"))]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    done = subprocess.run(
        [*command, *rest], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert "2 process(es)" in done.stderr
    for one, two in zip(log(tmp_path / "run"), log(tmp_path / "two"), strict=True):
        assert two == pytest.approx(one, rel=1e-4, abs=1e-5)
    two_weights = weights(tmp_path / "two")
    for key, tensor in weights(tmp_path / "run").items():
        assert torch.allclose(tensor, two_weights[key], atol=1e-4)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model": "no-such-model"}, "no-such-model"),
        ({"rewards": "{kindness: 1}"}, "there is no reward 'kindness'"),
        ({"from_policy": "nowhere"}, "there is no trained policy 'nowhere'"),
        ({"warm_steps": 0}, "a new policy .* needs a warm start"),
        ({"estimator": "magic"}, "no estimator 'magic'"),
        ({"batch_size": 0}, "must be 1 or more"),
        ({"report_to": "carrier-pigeon"}, "report_to carrier-pigeon"),
    ],
)
def test_a_wrong_setting_is_one_clear_line(
    config: Config, changed: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        run_training(["partner", *flags(config, **changed)])
    assert stopped.value.code == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("error: ")
    assert re.search(message, error), error


def test_empty_data_is_one_clear_line(
    config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    with pytest.raises(SystemExit):
        run_training(["partner", *flags(config, data=str(empty))])
    assert "empty.jsonl" in capsys.readouterr().err
