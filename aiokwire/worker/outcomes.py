"""Decides what follows a handler's exception: retry, retry topic, skip, dead letter, or stop."""

from __future__ import annotations

import dataclasses
import enum
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from aiokwire.config import require_int, require_number
from aiokwire.consumer import ConsumerRecord, DeserializationError
from aiokwire.errors import ConfigurationError, InvalidArgument

# What may follow the last attempt.
DEAD_LETTER: Final = "dead-letter"
SKIP: Final = "skip"
STOP: Final = "stop"

# The longest pause in a retry topic: 30 days, in seconds.
LONGEST_DELAY: Final = 30 * 86_400

Kinds = type[BaseException] | tuple[type[BaseException], ...]


class Skip(Exception):
    """Raised by a handler: the record counts as completed."""


class Retry(Exception):
    """Raised by a handler: call it again after `after` seconds (default: the policy's backoff).

    Counts as an attempt.
    """

    def __init__(self, reason: str = "", *, after: float | None = None) -> None:
        """Raises: InvalidArgument: `after` is not a number of seconds."""
        if after is not None and (isinstance(after, bool) or not isinstance(after, (int, float)) or not after >= 0):
            raise InvalidArgument(f"after must be a number of seconds, at least 0, not {after!r}")
        super().__init__(reason or "the handler asked for another attempt")
        self.after = after


class DeadLetter(Exception):
    """Raised by a handler: send the record to the dead-letter topic without further attempts."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "the handler rejected the record")
        self.reason = reason


class BatchError(Exception):
    """Raised by a handler of batches: some records failed, all others are completed.

    Each failed record follows its own error: those that are retried form the next batch. What the
    handler sent counts for the completed records, and is kept.
    """

    def __init__(self, errors: Mapping[int | ConsumerRecord[Any, Any], Exception]) -> None:
        """`errors`: by index in the lists that the handler received, or by record.

        Raises: InvalidArgument: there are none, or one is not an `Exception`.
        """
        if not errors or not all(isinstance(error, Exception) for error in errors.values()):
            raise InvalidArgument(f"BatchError takes a mapping of indexes or records to exceptions, not {errors!r}")
        super().__init__(f"{len(errors)} record(s) of the batch failed")
        self.errors: dict[int | ConsumerRecord[Any, Any], Exception] = dict(errors)

    def by_offset(self, records: Sequence[ConsumerRecord[Any, Any]]) -> dict[int, Exception]:
        """Return the errors by the offsets of the records.

        Raises: InvalidArgument: a record is not in the batch.
        """
        offsets = {record.offset for record in records}
        found = {}
        for which, error in self.errors.items():
            if isinstance(which, int):
                offset = records[which].offset if 0 <= which < len(records) else -1
            else:
                offset = which.offset
            if offset not in offsets:
                raise InvalidArgument(f"BatchError names {which!r}, but the batch has {len(records)} record(s)")
            found[offset] = error
        return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """The attempts of a failing handler, and the consequence of the last one.

    Raises: ConfigurationError: a value is out of its range.
    """

    attempts: int = 3
    """The maximum number of calls for one record; with `delays`, of calls in each round."""
    backoff: float = 0.5
    """The pause before the second attempt in seconds; it doubles with each further one."""
    backoff_max: float = 30.0
    """The longest pause in seconds."""
    jitter: float = 0.2
    """The share by which each pause varies, both ways: 0.2 is a fifth."""
    retry_on: Kinds = Exception
    """The exceptions after which the handler is called again."""
    give_up_on: Kinds = ()
    """Exceptions of `retry_on` after which it is not called again, such as those of invalid input."""
    delays: Sequence[float] = ()
    """Pauses in seconds after the last attempt, such as (60, 600): the record waits for each of them in a retry topic,
    while the records behind it are handled, and has `attempts` attempts after it. Empty: no retry topics."""
    then: str = DEAD_LETTER
    """What follows the last attempt: "dead-letter" sends the record to the dead-letter topic, "skip" logs it and
    continues, "stop" stops the worker with the record uncommitted."""

    def __post_init__(self) -> None:
        require_int("attempts", self.attempts, minimum=1)
        require_number("backoff", self.backoff, minimum=0)
        require_number("backoff_max", self.backoff_max, minimum=0)
        require_number("jitter", self.jitter, minimum=0, maximum=1)
        if self.then not in (DEAD_LETTER, SKIP, STOP):
            raise ConfigurationError(f"then must be {DEAD_LETTER!r}, {SKIP!r} or {STOP!r}, not {self.then!r}")
        for name in ("retry_on", "give_up_on"):
            require_exceptions(name, getattr(self, name))
        object.__setattr__(self, "delays", _checked_delays(self.delays))

    def pause(self, attempt: int, rng: random.Random) -> float:
        """Return the seconds between attempt number `attempt` and the next one."""
        longest = min(self.backoff_max, self.backoff * 2.0 ** min(attempt - 1, 64))
        return longest * rng.uniform(1 - self.jitter, 1 + self.jitter)


def require_exceptions(name: str, given: object) -> None:
    """Raise ConfigurationError unless an option is an exception class or a tuple of them."""
    kinds = given if isinstance(given, tuple) else (given,)
    if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        raise ConfigurationError(f"{name} must be an exception class or a tuple of them, not {given!r}")


def _checked_delays(given: object) -> tuple[float, ...]:
    if not isinstance(given, (tuple, list)):
        raise ConfigurationError(f"delays must be a tuple of seconds, such as (60, 600), not {given!r}")
    for delay in given:
        require_number("each of delays", delay, minimum=0.001, maximum=LONGEST_DELAY)
    return tuple(round(delay, 3) for delay in given)


class Action(enum.Enum):
    """The next step of a record whose handler raised."""

    RETRY = "retry"
    RETRY_TOPIC = "retry-topic"
    SKIP = "skip"
    DEAD_LETTER = "dead-letter"
    STOP = "stop"


class Decision(NamedTuple):
    """An action, with the seconds to wait before a retry, in place or in a retry topic."""

    action: Action
    delay: float = 0.0


def decide(error: BaseException, attempt: int, policy: RetryPolicy, rng: random.Random, rounds: int = 0) -> Decision:
    """Return what follows an attempt (1, 2, ...) that raised `error`.

    `rounds`: times that the record has waited in a retry topic; `attempt` counts since then. An
    exception that is not an `Exception` (SystemExit, KeyboardInterrupt) stops the worker.
    """
    if not isinstance(error, Exception):
        return Decision(Action.STOP)
    if isinstance(error, Skip):
        return Decision(Action.SKIP)
    if isinstance(error, DeadLetter):
        return Decision(Action.DEAD_LETTER)
    if not _is_retried(error, policy):
        return Decision(Action(policy.then))
    if attempt < policy.attempts:
        if isinstance(error, Retry) and error.after is not None:
            return Decision(Action.RETRY, error.after)
        return Decision(Action.RETRY, policy.pause(attempt, rng))
    if rounds < len(policy.delays):
        return Decision(Action.RETRY_TOPIC, policy.delays[rounds])
    return Decision(Action(policy.then))


def _is_retried(error: Exception, policy: RetryPolicy) -> bool:
    if isinstance(error, Retry):
        return True
    if isinstance(error, DeserializationError):
        return False  # the same bytes would fail again
    return isinstance(error, policy.retry_on) and not isinstance(error, policy.give_up_on)
