"""What follows an attempt: a table of exceptions, attempts and policies."""

from __future__ import annotations

import random
from typing import Any

import pytest

from aiokwire.consumer import DeserializationError
from aiokwire.errors import ConfigurationError, InvalidArgument
from aiokwire.records import Record
from aiokwire.worker.outcomes import Action, DeadLetter, Decision, Retry, RetryPolicy, Skip, decide

THREE = RetryPolicy(attempts=3, backoff=1.0, jitter=0.0)


def undecodable() -> DeserializationError:
    return DeserializationError("bad JSON", record=Record("orders", 0, 7))


@pytest.mark.parametrize(
    ("error", "attempt", "policy", "expected"),
    [
        (ValueError(), 1, THREE, Decision(Action.RETRY, 1.0)),
        (ValueError(), 2, THREE, Decision(Action.RETRY, 2.0)),
        (ValueError(), 3, THREE, Decision(Action.DEAD_LETTER)),
        (ValueError(), 1, RetryPolicy(attempts=1, then="skip"), Decision(Action.SKIP)),
        (ValueError(), 1, RetryPolicy(attempts=1, then="stop"), Decision(Action.STOP)),
        (ValueError(), 1, RetryPolicy(give_up_on=ValueError), Decision(Action.DEAD_LETTER)),
        (KeyError(), 1, RetryPolicy(retry_on=(OSError, ValueError)), Decision(Action.DEAD_LETTER)),
        (TimeoutError(), 1, THREE, Decision(Action.RETRY, 1.0)),
        (Skip(), 1, THREE, Decision(Action.SKIP)),
        (DeadLetter("no customer"), 1, RetryPolicy(then="stop"), Decision(Action.DEAD_LETTER)),
        (Retry(after=9.5), 1, THREE, Decision(Action.RETRY, 9.5)),
        (Retry(), 1, RetryPolicy(retry_on=OSError, backoff=2.0, jitter=0), Decision(Action.RETRY, 2.0)),
        (Retry(after=9.5), 3, THREE, Decision(Action.DEAD_LETTER)),
        (undecodable(), 1, THREE, Decision(Action.DEAD_LETTER)),
        (SystemExit(1), 1, THREE, Decision(Action.STOP)),
        (KeyboardInterrupt(), 1, RetryPolicy(then="skip"), Decision(Action.STOP)),
    ],
)
def test_the_outcome_of_an_attempt(error: BaseException, attempt: int, policy: RetryPolicy, expected: Decision) -> None:
    assert decide(error, attempt, policy, random.Random(1)) == expected


def test_pauses_double_up_to_the_longest_and_vary_by_the_jitter() -> None:
    policy = RetryPolicy(attempts=100, backoff=0.5, backoff_max=4.0, jitter=0.2)
    rng = random.Random(3)
    for attempt in range(1, 90):
        expected = min(4.0, 0.5 * 2 ** (attempt - 1))
        assert expected * 0.8 <= policy.pause(attempt, rng) <= expected * 1.2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attempts": 0}, "attempts must be at least 1"),
        ({"backoff": -1}, "backoff must be at least 0"),
        ({"jitter": 2}, "jitter must be at most 1"),
        ({"then": "dlq"}, "then must be 'dead-letter', 'skip' or 'stop', not 'dlq'"),
        ({"retry_on": "ValueError"}, "retry_on must be an exception class"),
        ({"give_up_on": (BaseException,)}, "give_up_on must be an exception class"),
    ],
)
def test_a_policy_out_of_its_range_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        RetryPolicy(**options)


def test_a_retry_after_a_negative_time_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="after must be a number of seconds"):
        Retry(after=-1)
