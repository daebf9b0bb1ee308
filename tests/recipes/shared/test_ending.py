"""What a recipe says at its end, and that one can type it."""

import json
import re
import shlex
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest
import typer

from recipes.entry import EVALUATION, TRAINING
from recipes.shared.ending import NEXT, ending, next_steps, read_log, tell_ending


def write_log(folder: Path, values: list[float]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"step": n, "dev_loss": value} for n, value in enumerate(values, 1)]
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_the_ending_of_two_stages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "run"
    write_log(output / "warm_start", [2.0, 1.0])
    write_log(output, [0.5, 0.75])
    (output / "policy").mkdir()
    tell_ending("partner", str(output))
    assert capsys.readouterr().out.splitlines() == [
        "warm start: 2 steps",
        "  fell  dev_loss                        2 → 1",
        "partner: 2 steps",
        "  rose  dev_loss                        0.5 → 0.75",
        "files",
        f"  {output}/policy: the trained policy, its results.json and a card",
        f"  {output}/log.jsonl: every figure, a line per step",
        "next",
        f"  rewriting rewrite --input sample:test --output rewrites.jsonl --policy {output}/policy",
        f"  rewriting evaluate rewrites --systems original,trained={output}/policy --data "
        "sample:test",
    ]


def test_rows_may_come_from_elsewhere_and_there_may_be_none(tmp_path: Path) -> None:
    rows = [{"step": 1, "reward": 1.0}, {"step": 2, "reward": 2.0}]
    assert ending("grpo", tmp_path, rows).splitlines()[:2] == [
        "grpo: 2 steps",
        "  rose  reward                          1 → 2",
    ]
    assert ending("context", tmp_path).splitlines()[0] == "next"


def test_a_damaged_log_ends_where_the_damage_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "log.jsonl").write_text('{"step": 1}\n{"st\n{"step": 3}\n')
    assert read_log(tmp_path) == [{"step": 1}]
    assert "line 2 cannot be read" in caplog.text


def test_a_first_stage_alone_has_its_policy_there(tmp_path: Path) -> None:
    (tmp_path / "sft" / "policy").mkdir(parents=True)
    assert f"--policy {tmp_path}/sft/policy" in next_steps("emprl", tmp_path)[0]
    (tmp_path / "policy").mkdir()
    assert f"trained={tmp_path}/policy" in next_steps("emprl", tmp_path)[1]


def test_every_recipe_has_its_next_steps() -> None:
    assert NEXT.keys() == TRAINING.keys()


@pytest.mark.parametrize("recipe", NEXT)
def test_what_to_type_has_flags_that_there_are(recipe: str) -> None:
    from recipes.cli import app

    commands = {command.name: command for command in app.registered_commands}
    click = typer.main.get_command(app)
    assert commands
    for line in next_steps(recipe, Path("runs/mine")):
        if line.startswith("in Python: "):
            compile(line.removeprefix("in Python: "), "next", "eval")
            continue
        program, *words = shlex.split(line)
        flags = [word.removeprefix("--") for word in words if word.startswith("--")]
        assert program == "rewriting"  # a wheel has no scripts
        if words[0] not in ("train", "evaluate"):
            known = {option for one in click.commands[words[0]].params for option in one.opts}
            assert {f"--{flag}" for flag in flags} <= known
        else:
            places = {"evaluate": EVALUATION, "train": TRAINING}[words[0]]
            config = import_module(places[words[1]]).Config
            assert set(flags) <= {one.name for one in fields(config)}
        assert re.search("runs/mine/(model|policy|adapter|sft/policy)", line)
