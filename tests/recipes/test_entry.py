"""What every recipe gets from its entry: one run at a time in a folder."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from recipes import entry
from recipes.entry import run_training
from rewriting.runtime.files.folders import LOCK, only_writer

CONFIGS = Path(__file__).parents[2] / "configs"


def test_a_second_run_in_a_folder_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "runs/coherence"
    with only_writer(output, inside=True), pytest.raises(SystemExit) as stop:
        run_training(["coherence", "--output", str(output)])
    assert stop.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: another process is writing {output}.")
    assert not output.exists()


@pytest.mark.parametrize("name", [None, *entry.RANKS])
@pytest.mark.parametrize("rank", ["0", "1"])
def test_the_first_process_locks_the_folder_from_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str | None, rank: str
) -> None:
    """Beside the folder nothing is written: its parent may be read-only."""
    for other in entry.RANKS:
        monkeypatch.delenv(other, raising=False)
    if name:
        monkeypatch.setenv(name, rank)
    output = tmp_path / "runs"
    output.mkdir()
    seen: list[list[Path]] = []
    recipe = ModuleType("toy_recipe")
    recipe.run = lambda config: seen.append(sorted(tmp_path.rglob("*")))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "toy_recipe", recipe)
    monkeypatch.setitem(entry.TRAINING, "toy", "toy_recipe")
    monkeypatch.setattr(entry, "parse", lambda *_: SimpleNamespace(output=str(output)))
    run_training(["toy"])
    first = name is None or rank == "0"
    assert seen == [[output, output / LOCK] if first else [output]]
    assert list(tmp_path.rglob("*")) == [output]


def test_a_packaged_config_fills_the_recipe_by_its_name() -> None:
    from recipes.train.partner import recipe

    by_name = entry.parse(recipe, "train.py partner", ["--config", "partner"])
    by_path = entry.parse(recipe, "train.py partner", [f"--config={CONFIGS / 'partner.yaml'}"])
    assert by_name == by_path != recipe.Config()
