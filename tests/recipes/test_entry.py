"""What every recipe gets from its entry: one run at a time in a folder."""

from pathlib import Path

import pytest

from recipes.entry import run_training
from rewriting.runtime.folders import only_writer


def test_a_second_run_in_a_folder_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "runs/coherence"
    with only_writer(output), pytest.raises(SystemExit) as stop:
        run_training(["coherence", "--output", str(output)])
    assert stop.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: another process is writing {output}.")
    assert not output.exists()
