"""A job's lines survive a stop, and nothing is replaced unasked."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rewriting.errors import UserError
from rewriting.runtime.files.jobs import LineJob


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


def stopped(output: Path) -> tuple[Path, Path]:
    """The two files of a job that stopped after six of nine rows."""
    with pytest.raises(InterruptedError):
        run(output, range(9), fail_at=6)
    return output.with_name(f"{output.name}.partial"), output.with_name(f"{output.name}.job")


def test_zeroed_bytes_are_found_and_done_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = tmp_path / "out.jsonl"
    partial, _ = stopped(output)
    content = bytearray(partial.read_bytes())
    content[20:30] = bytes(10)  # in the second piece of two rows
    partial.write_bytes(content)
    assert run(output, range(9)) == 2
    assert "is damaged after row 2: doing the rest again" in caplog.text
    assert lines(output) == list(range(9))


def test_a_changed_digit_is_found_too(tmp_path: Path) -> None:
    """What is still valid JSON is not yet what was written."""
    output = tmp_path / "out.jsonl"
    partial, _ = stopped(output)
    partial.write_text(partial.read_text().replace('"n": 5', '"n": 8'))
    assert run(output, range(9)) == 4
    assert lines(output) == list(range(9))


@pytest.mark.parametrize("garbage", ["", "no JSON", "[" * 100_000, '{"settings": {"seed": 2}}'])
def test_a_damaged_job_file_is_one_line_and_nothing_is_lost(tmp_path: Path, garbage: str) -> None:
    output = tmp_path / "out.jsonl"
    partial, job = stopped(output)
    before = partial.read_bytes()
    job.write_text(garbage)
    with pytest.raises(UserError, match=r"out\.jsonl\.job is damaged or missing.*--overwrite"):
        run(output, range(9))
    assert partial.read_bytes() == before
    assert run(output, range(9), overwrite=True) == 0
    assert lines(output) == list(range(9))


def test_a_damaged_record_costs_what_came_after_it(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    _, job = stopped(output)
    first, *records = job.read_bytes().splitlines(keepends=True)
    job.write_bytes(b"".join([first, records[0], b"\xff\x00\n", *records[2:]]))
    assert run(output, range(9)) == 2
    assert lines(output) == list(range(9))


def test_a_second_stop_after_damage_goes_on(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    partial, _ = stopped(output)
    partial.write_bytes(partial.read_bytes()[:-3])
    with pytest.raises(InterruptedError):
        run(output, range(9), fail_at=8)
    assert run(output, range(9)) == 8
    assert lines(output) == list(range(9))


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    code = "import os, sys\nfrom pathlib import Path\n"
    code += "from rewriting.runtime.files.jobs import LineJob\n"
    code += "LineJob(Path(sys.argv[1]), {'seed': 1}, chunk=2).__enter__()\nos.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", code, output], check=False).returncode == -9
    assert run(output, range(3)) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
