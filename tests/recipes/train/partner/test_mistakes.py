"""What cannot be is one clear line, before anything is trained."""

import errno
import os
import re
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
from safetensors import SafetensorError

from recipes.entry import run_training
from recipes.train.partner.recipe import Config
from tests.recipes.train.partner.toys import flags


def one_error(printed: str) -> str:
    """What stands behind `error: `, in the only line that has it."""
    (line,) = [line for line in printed.splitlines() if line.startswith("error: ")]
    return line


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
