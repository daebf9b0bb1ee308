"""The one lasting event loop of async rewards."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewards.event_loop import gather_or_cancel, run
from rewards.reward_sum import RewardSum, Term

ROOT = Path(__file__).parent.parent.parent
COLUMNS: dict[str, Any] = {"completions": ["a", "bbb", "cc"], "seeker_post": ["s", "s", "t"]}


async def running_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


class Judge:
    """Keeps a semaphore and a connection from its first call on, as a client of a service does."""

    def __init__(self) -> None:
        self.limit = asyncio.Semaphore(1)
        self.streams: list[Any] = []

    async def __call__(self, completions: list[str], **_: Any) -> list[float]:
        return list(await asyncio.gather(*map(self.judged, completions)))

    async def judged(self, completion: str) -> float:
        async with self.limit:
            if not self.streams:
                here, there = socket.socketpair()
                self.streams = [await asyncio.open_connection(sock=end) for end in (here, there)]
            (_, writer), (reader, _) = self.streams
            writer.write(completion.encode())
            return float(len(await reader.readexactly(len(completion))))

    async def close(self) -> None:
        for _, writer in self.streams:
            writer.close()
            await writer.wait_closed()


@pytest.fixture
def judge() -> Iterator[Judge]:
    judge = Judge()
    yield judge
    run(judge.close())


@pytest.mark.parametrize("inside_a_loop", [False, True])
def test_what_a_reward_keeps_works_on_every_later_call(judge: Judge, inside_a_loop: bool) -> None:
    rewards = RewardSum({"judge": Term(judge)})

    async def within() -> list[float | None]:
        return rewards(**COLUMNS)

    for _ in range(3):
        totals = asyncio.run(within()) if inside_a_loop else rewards(**COLUMNS)
        assert totals == [1.0, 3.0, 2.0]


def test_every_thread_and_every_caller_shares_the_loop() -> None:
    loops = [run(running_loop())]
    thread = threading.Thread(target=lambda: loops.append(run(running_loop())))
    thread.start()
    thread.join()

    async def within() -> None:
        loops.append(run(running_loop()))
        assert loops[0] is not asyncio.get_running_loop()

    asyncio.run(within())
    assert len(loops) == 3
    assert all(loop is loops[0] and loop.is_running() for loop in loops)


def test_a_reward_on_the_loop_may_wait_for_another_sum() -> None:
    async def patient(completions: list[str], **_: Any) -> list[float]:
        await asyncio.sleep(0.01)
        return [float(len(text)) for text in completions]

    inner = RewardSum({"patient": Term(patient)})

    async def outer(**columns: Any) -> list[float | None]:
        return inner(**columns)  # blocks the loop that it runs on itself

    rewards = RewardSum({"outer": Term(outer), "again": Term(outer)})
    assert rewards(**COLUMNS) == [2.0, 6.0, 4.0]
    assert rewards(**COLUMNS) == [2.0, 6.0, 4.0]


def test_when_one_fails_the_others_do_not_go_on_in_the_background() -> None:
    cancelled: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("waits")
            raise

    async def fails() -> None:
        await asyncio.sleep(0)
        raise OSError("refused")

    with pytest.raises(OSError, match="refused"):
        run(gather_or_cancel([waits(), fails()]))
    assert cancelled == ["waits"]


def test_sys_exit_in_a_reward_ends_its_caller_and_not_the_loop() -> None:
    async def leaves() -> None:
        raise SystemExit(3)

    before = run(running_loop())
    with pytest.raises(SystemExit):
        run(leaves())
    assert run(running_loop()) is before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_forked_child_starts_a_loop_of_its_own() -> None:
    code = """
import asyncio, os
from rewards.event_loop import run

async def loop():
    await asyncio.sleep(0.01)
    return asyncio.get_running_loop()

first = run(loop())
child = os.fork()
if not child:
    os._exit(7 if run(loop()) is not first else 1)
status = os.waitpid(child, 0)[1]
assert os.waitstatus_to_exitcode(status) == 7, status
assert run(loop()) is first
print("both work")
"""
    command = [sys.executable, "-W", "error", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert (result.stdout, result.stderr) == ("both work\n", "")


def test_ctrl_c_stops_the_caller_and_what_it_waited_for() -> None:
    code = """
import asyncio, signal, time
from rewards.reward_sum import RewardSum, Term

# Started in the background, a shell has its children ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
cancelled = []

async def endless(**_):
    print("waiting", flush=True)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        cancelled.append(True)
        raise

try:
    RewardSum({"endless": Term(endless)})(completions=["a"])
except KeyboardInterrupt:
    while not cancelled:
        time.sleep(0.01)
    print("stopped", flush=True)
    raise
"""
    command = [sys.executable, "-c", code]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert output == "stopped\n"
    assert errors.strip().endswith("KeyboardInterrupt")
    assert "never retrieved" not in errors
    assert "destroyed" not in errors
    assert process.returncode == -signal.SIGINT
