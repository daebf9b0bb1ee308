"""`train.py partner`: the real recipe, both stages, on a tiny model."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path

import pytest
import torch

from policies.named import load_bare_policy
from recipes.entry import run_training
from recipes.train.partner.recipe import Config, run
from rewriting import Exchange
from tests.recipes.train.partner.toys import REWARDS, flags, log, weights

ROOT = Path(__file__).parents[4]


def test_help_explains_every_field(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # no help text is broken into lines
    with pytest.raises(SystemExit) as stopped:
        run_training(["partner", "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    for field in fields(Config):
        text = field.metadata.get("help", "")
        assert text.strip(), f"{field.name} is not explained"
        line = re.search(rf"^ +--{field.name}\b.*(\n {{20,}}.*)?", shown, re.MULTILINE)
        assert line, f"--{field.name} is not in the help"
        assert text in line[0]


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
    policy = load_bare_policy(str(folder / "policy"))
    exchange = Exchange("I lost my cat.", "Get another. It is fine.")
    assert policy.rewrite([exchange], seed=1) == policy.rewrite([exchange], seed=1)
    warm = load_bare_policy(str(folder / "warm_start" / "policy"))
    # An untaught head keeps about one response of six, and most sentences are cut off by the limit.
    # About one in five changes the response: fewer than two of sixty, once in 35,000 times.
    for one in (policy, warm):
        texts = {one.rewrite([exchange], seed=seed)[0].rewritten_response for seed in range(60)}
        assert len(texts - {exchange.response_post}) > 1


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


@pytest.mark.parametrize(
    ("number", "save_every", "code"), [(signal.SIGKILL, 3, -9), (signal.SIGTERM, 1000, 0)]
)
def test_stopped_and_started_again_it_ends_with_the_same_bits(
    whole: Config, tmp_path: Path, number: signal.Signals, save_every: int, code: int
) -> None:
    cut = Config(**vars(whole) | {"output": str(tmp_path / "cut"), "save_every": save_every})
    folder, threads = Path(cut.output), str(torch.get_num_threads())
    process = subprocess.Popen(
        [sys.executable, "train.py", "partner", *flags(cut)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": threads, "CUDA_VISIBLE_DEVICES": ""},
    )
    try:
        deadline = time.monotonic() + 240
        while not (folder / "log.jsonl").is_file() or log_length(folder) < 6:  # 0 to 5
            assert process.poll() is None, "it ended before it could be stopped"
            assert time.monotonic() < deadline, "five steps in four minutes"
            time.sleep(0.02)
        process.send_signal(number)
        assert process.wait(timeout=120) == code
    finally:
        process.kill()
        process.wait()
    newest = max((folder / "checkpoints").glob("step_*")).name
    if number == signal.SIGKILL:  # what came after the checkpoint is lost
        assert 3 <= int(newest.removeprefix("step_")) < whole.steps
    else:  # the only checkpoint is that of the signal
        assert int(newest.removeprefix("step_")) == log_length(folder) - 1 < whole.steps
    assert not (folder / "policy").exists()
    run(cut)
    other = Path(whole.output)
    assert log(folder) == log(other)
    names = ("samples.jsonl", "warm_start/policy/position_head.safetensors")
    assert all((folder / name).read_bytes() == (other / name).read_bytes() for name in names)
    again, expected = weights(folder), weights(other)
    assert again.keys() == expected.keys()
    for key, tensor in expected.items():
        assert torch.equal(tensor, again[key]), key


def log_length(folder: Path) -> int:
    return (folder / "log.jsonl").read_bytes().count(b"\n")


def test_every_judge_of_the_whole_run_had_a_say(whole: Config) -> None:
    rows = log(Path(whole.output))
    assert [row["step"] for row in rows if "dev/reward" in row] == list(range(0, 13, 2))
    for name in ("empathy_change", "fluency", "mutual_information", "edit_size"):
        assert len({row[f"rewards/{name}"] for row in rows[1:]}) > 4, name


def test_two_processes_give_the_figures_of_one(config: Config, tmp_path: Path) -> None:
    run(config)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
    rest = ["train.py", "partner", *flags(config, output=str(tmp_path / "two"))]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, *rest], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert "2 processes" in done.stderr
    assert "each gets 2 examples a step in the warm start and 1 exchange a step" in done.stderr
    for one, two in zip(log(tmp_path / "run"), log(tmp_path / "two"), strict=True):
        assert two == pytest.approx(one, rel=1e-4, abs=1e-5)
    two_weights = weights(tmp_path / "two")
    for key, tensor in weights(tmp_path / "run").items():
        assert torch.allclose(tensor, two_weights[key], atol=1e-4)
