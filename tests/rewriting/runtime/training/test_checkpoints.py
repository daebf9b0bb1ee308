"""Checkpoints are whole or absent, damage is seen, and a resumed run is the same run."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as distributed

from rewriting.errors import UserError
from rewriting.runtime.files.folders import write_manifest
from rewriting.runtime.files.trees import pack, unpack
from rewriting.runtime.seeds import derive_seed
from rewriting.runtime.training.checkpoints import Checkpoints, load_checkpoint


def make_run() -> dict[str, torch.nn.Module | torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    return {"model": model, "optimizer": torch.optim.AdamW(model.parameters(), lr=0.1)}


def train(folder: Path, total: int, stop_at: int | None = None) -> list[float]:
    """A tiny training run whose data follow from the step. Stops itself by SIGTERM at a step."""
    run = make_run()
    losses = []
    with Checkpoints(folder, every=3) as checkpoints:
        for step in checkpoints.steps(total, **run):
            inputs = torch.randn(
                4, 3, generator=torch.Generator().manual_seed(derive_seed(0, step))
            )
            loss = run["model"](inputs).pow(2).mean()
            loss.backward()
            run["optimizer"].step()
            run["optimizer"].zero_grad()
            losses.append(loss.item())
            if step == stop_at:
                signal.raise_signal(signal.SIGTERM)
    return losses


def test_a_stopped_and_resumed_run_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    whole = train(tmp_path / "whole", 10)
    with pytest.raises(SystemExit) as stop:
        train(tmp_path / "parts", 10, stop_at=4)
    assert stop.value.code == 0
    assert Checkpoints(tmp_path / "parts").latest() == tmp_path / "parts/step_00000005"
    assert train(tmp_path / "parts", 10) == whole[5:]
    one, other = (load_checkpoint(tmp_path / name / "step_00000010") for name in ("whole", "parts"))
    assert torch.equal(one["model"]["weight"], other["model"]["weight"])
    assert torch.equal(
        one["optimizer"]["state"][0]["exp_avg"], other["optimizer"]["state"][0]["exp_avg"]
    )


def test_a_finished_run_has_nothing_left_to_do(tmp_path: Path) -> None:
    train(tmp_path, 4)
    assert train(tmp_path, 4) == []


def test_the_newest_two_are_kept(tmp_path: Path) -> None:
    train(tmp_path, 10)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["step_00000009", "step_00000010"]


def test_signal_handlers_are_put_back(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    train(tmp_path, 1)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(
    "part", ["model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"]
)
def test_a_flipped_bit_is_seen_and_the_one_before_is_used(
    tmp_path: Path, part: str, caplog: pytest.LogCaptureFixture
) -> None:
    train(tmp_path, 6)
    path = tmp_path / "step_00000006" / part
    content = bytearray(path.read_bytes())
    for position in random.Random(0).sample(range(len(content)), 20):
        flipped = bytearray(content)
        flipped[position] ^= 1 << (position % 8)
        path.write_bytes(flipped)
        caplog.clear()
        assert Checkpoints(tmp_path).latest() == tmp_path / "step_00000003"
        assert "step_00000006 is damaged" in caplog.text


def test_a_save_after_damaged_ones_is_kept(tmp_path: Path) -> None:
    model = make_run()["model"]
    for step in (80, 90, 100):
        Checkpoints(tmp_path, keep=3).save(step, model=model)
    for step in (90, 100):
        (tmp_path / f"step_{step:08d}" / "state.json").write_text("{}")
    checkpoints = Checkpoints(tmp_path, keep=2)
    assert checkpoints.restore(model=model) == 80
    checkpoints.save(85, model=model)
    assert checkpoints.latest() == tmp_path / "step_00000085"
    assert (tmp_path / "step_00000080").exists()


def test_when_all_are_damaged_nothing_is_silently_started_afresh(tmp_path: Path) -> None:
    train(tmp_path, 6)
    for path in tmp_path.glob("*/state.json"):
        path.write_text("{}")
    with pytest.raises(UserError, match="every checkpoint"):
        train(tmp_path, 6)


def test_other_settings_are_refused(tmp_path: Path) -> None:
    run = make_run()
    Checkpoints(tmp_path, settings={"lr": 0.1, "seed": 1}).save(1, **run)
    with pytest.raises(UserError, match=r"lr was 0\.1 and is now 0\.2"):
        Checkpoints(tmp_path, settings={"lr": 0.2, "seed": 1}).restore(**run)


def test_a_part_that_was_not_saved_is_named(tmp_path: Path) -> None:
    run = make_run()
    Checkpoints(tmp_path).save(1, model=run["model"])
    with pytest.raises(UserError, match="no 'optimizer'"):
        Checkpoints(tmp_path).restore(**run)


def test_at_least_two_are_kept() -> None:
    with pytest.raises(ValueError, match="keep at least 2"):
        Checkpoints("x", keep=1)


KILLS = """
import json, os, random, signal, sys, torch
from rewriting.runtime.training.checkpoints import Checkpoints, load_checkpoint

torch.set_num_threads(1)
folder, chance, committed = sys.argv[1], random.Random(0), 0


def save_for_ever(pipe):
    model = torch.nn.Linear(64, 64)
    checkpoints = Checkpoints(folder)
    step = checkpoints.restore(model=model)
    while True:
        step += 1
        torch.nn.init.constant_(model.weight, step)
        checkpoints.save(step, model=model)
        pipe.write(f"{step}\\n")
        pipe.flush()


for _ in range(50):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        save_for_ever(os.fdopen(writing, "w"))
    os.close(writing)
    with os.fdopen(reading) as pipe:
        for _ in range(chance.randint(1, 4)):
            committed = int(pipe.readline())
        # Somewhere in the next save: which instruction it hits is up to the machine.
        for _ in range(chance.randint(0, 200_000)):
            pass
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        rest = pipe.read().split()
    committed = int(rest[-1]) if rest else committed
    newest = Checkpoints(folder).latest()
    step = json.loads((newest / "state.json").read_text())["step"]
    assert step in (committed, committed + 1)  # saved, but killed before it could say so
    assert torch.all(load_checkpoint(newest)["model"]["weight"] == step)
    committed = step
print("survived", committed)
"""


def test_fifty_kills_during_saves(tmp_path: Path) -> None:
    """After every kill -9 the newest committed checkpoint loads and is the one it says."""
    command = [sys.executable, "-c", KILLS, str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.stdout.startswith("survived"), result.stderr


def test_leftovers_of_a_killed_removal_go_when_a_finished_run_is_started_again(
    tmp_path: Path,
) -> None:
    train(tmp_path, 6)
    (tmp_path / ".tmp-step_00000002-4711" / "content").mkdir(parents=True)
    train(tmp_path, 6)
    assert list(tmp_path.glob(".tmp-*")) == []


def test_leftovers_of_a_killed_save_are_removed(tmp_path: Path) -> None:
    (tmp_path / f".tmp-step_00000001-{os.getpid()}").mkdir(parents=True)
    Checkpoints(tmp_path).save(2, model=make_run()["model"])
    assert [path.name for path in tmp_path.iterdir()] == ["step_00000002"]


def test_trees_come_back_as_they_were() -> None:
    shared = torch.arange(6.0).reshape(2, 3)
    tree = {
        "a": [1, 2.5, None, True, "x", (shared, shared.T)],
        "state": {0: {"step": torch.tensor(3.0)}, 7: {}},
        "half": torch.ones(2, dtype=torch.bfloat16),
    }
    tensors, rest = pack(tree)
    again = unpack(json.loads(json.dumps(rest)), tensors)
    assert again["a"][:5] == tree["a"][:5]
    assert torch.equal(again["a"][5][1], shared.T)
    assert again["state"].keys() == {0, 7}
    assert again["half"].dtype == torch.bfloat16


def test_names_that_look_like_paths_stay_apart() -> None:
    tree = {"a/b": torch.zeros(1), "a": {"b": torch.ones(1)}, "c": {1: torch.full((1,), 2.0)}}
    tensors, rest = pack(tree)
    again = unpack(json.loads(json.dumps(rest)), tensors)
    assert (again["a/b"], again["a"]["b"], again["c"][1]) == (0, 1, 2)
    with pytest.raises(TypeError, match="keys other than texts and numbers"):
        pack({(1, 2): torch.zeros(1)})


def test_what_cannot_be_saved_is_named() -> None:
    with pytest.raises(TypeError, match="cannot save set at /a"):
        pack({"a": {1, 2}})


def resealed(folder: Path, text: str) -> None:
    """Another state.json, with a manifest that knows it: what somebody wrote by hand."""
    (folder / "state.json").write_text(text)
    (folder / "manifest.json").unlink()
    write_manifest(folder, {})


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        "[" * 100_000,
        '{"step": 6, "settings": {}, "parts": 3}',
        '{"step": 6, "settings": {}, "parts": {"model": {"weight": {"__tensor__": "none"}}}}',
        '{"step": 6, "settings": {}, "parts": {"../model": {}}}',
        '{"step": 9, "settings": {}, "parts": {}}',
    ],
)
def test_a_malformed_state_is_passed_over(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    train(tmp_path, 6)
    resealed(tmp_path / "step_00000006", text)
    assert Checkpoints(tmp_path).restore(**make_run()) == 3
    assert "step_00000006 is damaged" in caplog.text


@pytest.mark.parametrize("is_folder", [True, False])
def test_stray_files_are_none_of_ours(tmp_path: Path, is_folder: bool) -> None:
    train(tmp_path, 6)
    for name in ("step_abc", "step_", "step_00000009.bak", "step_1"):
        stray = tmp_path / name
        stray.mkdir() if is_folder else stray.write_text("notes")
    (tmp_path / "step_00000007").write_text("not even a folder")
    (tmp_path / ".tmp-notes").write_text("nor this")
    assert Checkpoints(tmp_path).restore(**make_run()) == 6
    assert train(tmp_path, 12)
    assert (tmp_path / "step_abc").exists()


def test_a_checkpoint_of_another_shape_is_one_line(tmp_path: Path) -> None:
    Checkpoints(tmp_path).save(1, model=torch.nn.Linear(4, 2))
    with pytest.raises(UserError, match=r"the model in .*step_00000001 does not fit this run"):
        Checkpoints(tmp_path).restore(model=torch.nn.Linear(3, 2))


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("full"), distributed.DistError("lost")])
def test_a_failure_of_the_machine_is_not_blamed_on_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    model = torch.nn.Linear(4, 2)
    Checkpoints(tmp_path).save(1, model=model)

    def failing(state: object) -> None:
        raise error

    monkeypatch.setattr(model, "load_state_dict", failing)
    with pytest.raises(type(error), match=str(error)):
        Checkpoints(tmp_path).restore(model=model)


def test_an_error_without_words_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = torch.nn.Linear(4, 2)
    Checkpoints(tmp_path).save(1, model=model)

    def failing(state: object) -> None:
        raise ValueError

    monkeypatch.setattr(model, "load_state_dict", failing)
    with pytest.raises(UserError, match=r"does not fit this run \(ValueError\)"):
        Checkpoints(tmp_path).restore(model=model)


def test_two_runs_in_one_folder_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    with (
        Checkpoints(folder),
        pytest.raises(UserError, match=r"another process is writing .*checkpoints"),
        Checkpoints(folder),
    ):
        pass
    with Checkpoints(folder):
        pass
    assert list(tmp_path.iterdir()) == []
