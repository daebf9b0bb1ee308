"""A job's lines survive a stop, and nothing is replaced unasked."""

import json
from pathlib import Path

import pytest

from rewriting.errors import UserError
from rewriting.runtime.jobs import LineJob


def lines(path: Path) -> list[int]:
    return [json.loads(line)["n"] for line in path.read_text().splitlines()]


def run(output: Path, rows: range, fail_at: int | None = None, **options: object) -> int:
    """Writes rows two at a time; how many were done before it began."""
    with LineJob(output, {"seed": 1}, chunk=2, **options) as job:
        done = job.rows_done
        for start in range(done, len(rows), 2):
            if start == fail_at:
                raise InterruptedError
            job.write({"n": n} for n in rows[start : start + 2])
    return done


def test_the_result_appears_when_it_is_complete(tmp_path: Path) -> None:
    output = tmp_path / "deep/out.jsonl"
    with pytest.raises(InterruptedError):
        run(output, range(7), fail_at=4)
    assert not output.exists()
    assert run(output, range(7)) == 4
    assert lines(output) == list(range(7))
    assert [path.name for path in output.parent.iterdir()] == ["out.jsonl"]


def test_half_a_line_and_half_a_chunk_are_done_again(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    with pytest.raises(InterruptedError):
        run(output, range(7), fail_at=4)
    with (tmp_path / "out.jsonl.partial").open("a") as file:
        file.write('{"n": 4}\n{"n"')
    assert run(output, range(7)) == 4
    assert lines(output) == list(range(7))


def test_a_result_is_not_replaced_unasked(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    run(output, range(3))
    with pytest.raises(UserError, match="Pass --overwrite"):
        run(output, range(5))
    assert lines(output) == [0, 1, 2]
    run(output, range(5), overwrite=True)
    assert lines(output) == list(range(5))


def test_a_failed_replacement_keeps_the_old_result_and_can_go_on(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    run(output, range(3))
    with pytest.raises(InterruptedError):
        run(output, range(7), fail_at=4, overwrite=True)
    assert lines(output) == [0, 1, 2]
    assert run(output, range(7), overwrite=True) == 4
    assert lines(output) == list(range(7))


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a folder"), LineJob(tmp_path, {}, overwrite=True):
        pass


def test_an_unfinished_run_with_other_settings_is_named(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    with pytest.raises(InterruptedError):
        run(output, range(7), fail_at=4)
    with pytest.raises(UserError, match=r"other settings \(seed\)"), LineJob(output, {"seed": 2}):
        pass


def test_a_run_that_failed_before_its_first_row_leaves_nothing(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    with pytest.raises(InterruptedError):
        run(output, range(7), fail_at=0)
    assert list(tmp_path.iterdir()) == []
    with LineJob(output, {"seed": 2}) as job:
        assert job.rows_done == 0


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    with (
        LineJob(output, {}),
        pytest.raises(UserError, match="another process is writing"),
        LineJob(output, {}),
    ):
        pass


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"), LineJob(tmp_path / "file/out.jsonl", {}):
        pass
