"""Time limits of a call, and calls at once."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from rewards.protocol import RewardError
from tests.rewards.calling.toys import LONG, Judge, scored

ROOT = Path(__file__).parents[3]


def test_an_async_call_is_cancelled_when_its_time_is_up() -> None:
    ended: list[str] = []

    async def endless(completions: list[str], **_: Any) -> list[float]:
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return []

    message = (
        r"^reward 'judge' gave no answer within 0.02 s in the last of 2 tries\. Give it a longer "
        r"`timeout`, or ask less of it at once\. Row 0: completion 'a', seeker_post 's'\.$"
    )
    with pytest.raises(RewardError, match=message):
        scored(endless, timeout=0.02, retries=1)
    assert ended == ["cancelled", "cancelled"]


def test_a_sync_call_is_given_up_when_its_time_is_up() -> None:
    release, calls = threading.Event(), []

    def endless(completions: list[str], **_: Any) -> list[float]:
        calls.append(threading.current_thread())
        if len(calls) == 1:
            release.wait(LONG)
        return [float(len(text)) for text in completions]

    assert scored(endless, timeout=1.0, retries=1) == [1.0, 3.0, 2.0]
    calls[1].join(LONG)
    assert [thread.is_alive() for thread in calls] == [True, False]
    release.set()
    calls[0].join(LONG)
    calls.clear()
    release.clear()
    with pytest.raises(RewardError, match=r"'judge' gave no answer within 0.05 s\. Give"):
        scored(endless, timeout=0.05)
    release.set()


def test_a_timeout_of_the_rewards_own_is_told_apart() -> None:
    async def own(**_: Any) -> list[float]:
        raise TimeoutError("the service said so")

    with pytest.raises(RewardError, match="raised TimeoutError: the service said so"):
        scored(own, timeout=LONG)


def test_the_time_limit_is_of_a_call_and_not_of_the_waiting_for_a_slot() -> None:
    async def slow(completions: list[str], **_: Any) -> list[float]:
        await asyncio.sleep(0.4)
        return [1.0]

    assert scored(slow, timeout=1.0, concurrency=1) == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("concurrency", [1, 2, 8])
def test_rows_are_asked_at_once_but_no_more_than_allowed(kind: str, concurrency: int) -> None:
    judge = Judge(at_once=min(concurrency, 3))
    options = {"concurrency": concurrency, "timeout": LONG}
    assert scored(getattr(judge, kind), **options) == [1.0, 3.0, 2.0]
    assert sorted(judge.calls) == [["a"], ["bbb"], ["cc"]]
    assert judge.most == min(concurrency, 3)


def test_a_call_that_hangs_does_not_keep_the_process_from_ending() -> None:
    code = """
import time
from rewards.calling import CallOptions, with_options

def hangs(**_):
    time.sleep(600)

try:
    with_options(hangs, CallOptions(timeout=0.05))(completions=["a"])
except Exception as error:
    print(error)
"""
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert result.stdout.startswith("reward 'hangs' gave no answer within 0.05 s.")
    assert (result.stderr, result.returncode) == ("", 0)
