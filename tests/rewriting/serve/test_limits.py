"""The bucket of an address: a minute's worth at once, then evenly; others are not touched."""

import pytest

from rewriting.serve.limits import RateLimit


def test_a_minute_at_once_and_then_evenly() -> None:
    clock = [0.0]
    rate = RateLimit(3, clock=lambda: clock[0])
    assert [rate.seconds_to_wait("a") for _ in range(3)] == [0, 0, 0]
    assert rate.seconds_to_wait("a") == pytest.approx(20)
    assert rate.seconds_to_wait("b") == 0
    clock[0] = 15.0
    assert rate.seconds_to_wait("a") == pytest.approx(5)
    clock[0] = 20.0
    assert rate.seconds_to_wait("a") == 0
    assert rate.seconds_to_wait("a") == pytest.approx(20)


def test_a_bucket_holds_no_more_than_a_minute() -> None:
    clock = [0.0]
    rate = RateLimit(2, clock=lambda: clock[0])
    assert rate.seconds_to_wait("a") == 0
    clock[0] = 1e6
    assert [rate.seconds_to_wait("a") > 0 for _ in range(3)] == [False, False, True]


def test_0_is_no_limit() -> None:
    rate = RateLimit(0)
    assert not any(rate.seconds_to_wait("a") for _ in range(1000))


def test_memory_is_bounded() -> None:
    rate = RateLimit(1, clock=lambda: 0.0, remembered=10)
    for number in range(1000):
        rate.seconds_to_wait(str(number))
    assert len(rate._buckets) == 10
