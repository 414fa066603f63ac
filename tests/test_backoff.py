"""Delays grow with jitter up to a maximum; the error of an expired deadline names the work."""

from __future__ import annotations

import math
import random

import pytest

from aiokwire.backoff import Backoff, Deadline
from aiokwire.errors import RequestTimedOut


def test_delays_double_up_to_the_maximum_within_the_jitter() -> None:
    backoff = Backoff(0.1, 1.0, rng=random.Random(1))
    for wanted in (0.1, 0.2, 0.4, 0.8, 1.0, 1.0):
        assert wanted * 0.8 <= backoff.next() <= wanted * 1.2
    backoff.reset()
    assert backoff.next() <= 0.12


def test_one_warning_is_due_until_a_success() -> None:
    backoff = Backoff(0.1, 1.0, rng=random.Random(1))
    assert [backoff.take_warning() for _ in range(3)] == [True, False, False]
    backoff.reset()
    assert backoff.take_warning()


def test_weeks_of_retries_do_not_overflow() -> None:
    backoff = Backoff(0.1, 1.0, rng=random.Random(1))
    backoff.attempts = 10**9
    assert backoff.next() <= 1.2


def test_the_same_seed_gives_the_same_delays() -> None:
    one, two = (Backoff(0.1, 1.0, rng=random.Random(7)) for _ in range(2))
    assert [one.next() for _ in range(5)] == [two.next() for _ in range(5)]


async def test_the_error_of_an_expired_deadline_names_the_work_and_the_last_error() -> None:
    deadline = Deadline(0.0, "fetching metadata")
    assert deadline.expired
    assert deadline.remaining == 0.0
    with pytest.raises(RequestTimedOut, match=r"fetching metadata: did not succeed within .* s; last error: refused"):
        deadline.check(OSError("refused"))


async def test_no_timeout_never_expires() -> None:
    deadline = Deadline(None, "waiting")
    assert deadline.remaining == math.inf
    deadline.check()
    assert not deadline.expired


def test_attempts_1_5_20_and_every_100th_are_logged() -> None:
    backoff = Backoff(0.1, 1, rng=random.Random(1))
    logged = []
    for attempt in range(1, 301):
        backoff.next()
        if backoff.is_worth_logging:
            logged.append(attempt)
    assert logged == [1, 5, 20, 100, 200, 300]
