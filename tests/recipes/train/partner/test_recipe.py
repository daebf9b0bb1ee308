"""`train.py partner`: the real recipe, both stages, on a tiny model."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from policies.named import load_bare_policy
from recipes.entry import run_training
from recipes.shared.sources import load_splits
from recipes.train.partner.recipe import Config, run
from rewards.identifiers.epitome.identifier import Architecture, EpitomeIdentifier
from rewriting import Exchange
from rewriting.runtime.language_models.backbone import Backbone
from tests.tiny_lm import write_tiny_encoder, write_tiny_llama

ROOT = Path(__file__).parents[4]
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


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Config:
    """A run that nobody stopped, in its second epoch at the end, judged by models of each kind."""
    folder = tmp_path_factory.mktemp("whole")
    model, data = write_tiny_llama(folder / "model"), folder / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS[::2]), encoding="utf-8")
    rewards = {
        "empathy_change": 1.0,
        "fluency": 5.0,
        "mutual_information": {"weight": 2.0, "adapter": str(write_tiny_adapter(model, folder))},
        "edit_size": 0.5,
    }
    config = Config(
        output=str(folder / "run"),
        data=str(data),
        model=str(model),
        identifier=str(write_tiny_identifier(folder)),
        **SETTINGS
        | {"steps": 12, "save_every": 3, "show_every": 6, "rewards": json.dumps(rewards)}
        | {"num_samples": 4, "micro_batch_size": 8},
    )
    assert config.steps * config.batch_size > len(load_splits(config.data)["train"])
    run(config)
    return config


@torch.no_grad()
def write_tiny_identifier(folder: Path) -> Path:
    """An identifier that tells texts apart: its attention and LoRA would start at 0."""
    torch.manual_seed(0)
    encoder = str(write_tiny_encoder(folder))
    architecture = Architecture(encoder, rank=2, max_seeker_tokens=32, max_response_tokens=64)
    networks, tokenizer = architecture.build()
    for parameter in networks.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.3)
    EpitomeIdentifier(architecture, networks, tokenizer, "tiny").save(folder / "identifier")
    return folder / "identifier"


@torch.no_grad()
def write_tiny_adapter(model: Path, folder: Path) -> Path:
    """A reverse language model that says other things than the bare one."""
    torch.manual_seed(0)
    backbone = Backbone.load(str(model))
    for parameter in backbone.add("reverse_lm", rank=2):
        torch.nn.init.normal_(parameter, std=0.3)
    backbone.save("reverse_lm", folder / "reverse_lm")
    return folder / "reverse_lm"


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


def one_error(printed: str) -> str:
    """What stands behind `error: `, in the only line that has it."""
    (line,) = [line for line in printed.splitlines() if line.startswith("error: ")]
    return line


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


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model": "no-such-model"}, "no-such-model"),
        ({"rewards": "{applause: 1}"}, "there is no reward 'applause'"),
        ({"from_policy": "nowhere"}, "there is no trained policy 'nowhere'"),
        ({"warm_steps": 0}, "a new policy .* needs a warm start"),
        ({"estimator": "magic"}, "estimator cannot be 'magic'"),
        ({"batch_size": 0}, "must be 1 or more"),
        ({"save_every": 0}, "save_every must be 1 or more, not 0"),
        ({"kl_weight": -1}, "kl_weight must be 0 or more"),
        ({"kl_horizon": -1}, "kl_horizon must be 0 or more"),
        ({"kl_weight": 0, "kl_target": 6}, "set kl_weight, its first value"),
        ({"top_p": 0}, "top_p must be above 0"),
        ({"attention": "fast"}, "attention is eager, sdpa, flash_attention_2 or ''"),
        ({"load_in_4bit": True}, "load_in_4bit needs"),
        ({"report_to": "carrier-pigeon"}, "report_to carrier-pigeon"),
    ],
)
def test_a_wrong_setting_is_one_clear_line(
    config: Config,
    changed: dict[str, Any],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # or a wrong name is asked for on the network, often
    with pytest.raises(SystemExit) as stopped:
        run_training(["partner", *flags(config, **changed)])
    assert stopped.value.code == 1
    error = one_error(capsys.readouterr().err)
    assert re.search(message, error), error


def test_empty_data_is_one_clear_line(
    config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    with pytest.raises(SystemExit) as stopped:
        run_training(["partner", *flags(config, data=str(empty))])
    assert stopped.value.code == 1
    assert str(empty) in one_error(capsys.readouterr().err)


@pytest.mark.parametrize(
    "place",
    ["warm_start/log.jsonl", "log.jsonl", "samples.jsonl", "checkpoints", "policy"],
)
def test_a_full_disk_is_one_clear_line(
    config: Config,
    place: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    full = Path(config.output) / place
    open_path, save_file = Path.open, safetensors.torch.save_file

    def opened(path: Path, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if path.is_relative_to(full) and mode[0] in "wax":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return open_path(path, mode, *rest, **options)

    def saved(tensors: Any, path: Path, *rest: Any, **options: Any) -> None:
        if Path(path).is_relative_to(full):  # the kind of error and the text of safetensors 0.8
            reason = f"I/O error: {os.strerror(errno.ENOSPC)} (os error {errno.ENOSPC})"
            raise SafetensorError(f"Error while serializing: {reason}")
        save_file(tensors, path, *rest, **options)

    monkeypatch.setattr(Path, "open", opened)
    monkeypatch.setattr(safetensors.torch, "save_file", saved)
    with pytest.raises(SystemExit) as stopped:
        run_training(["partner", *flags(config, steps=1)])
    assert stopped.value.code == 1
    error = one_error(capsys.readouterr().err)
    assert error.startswith(f"error: cannot write {full}")
    assert os.strerror(errno.ENOSPC) in error
