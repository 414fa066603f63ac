"""Circuit breakers: no call of a handler starts while what it depends on is down. No I/O.

CLOSED -> OPEN after too many failures -> HALF_OPEN after a pause -> CLOSED after successful probes.
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
from collections import deque
from typing import Final, Protocol

from aiokwire.config import require_int, require_number
from aiokwire.consumer import DeserializationError
from aiokwire.errors import ConfigurationError
from aiokwire.loop_timer import LoopTimer
from aiokwire.machine import Machine
from aiokwire.worker.outcomes import DeadLetter, Kinds, Retry, Skip, require_exceptions


class CircuitState(enum.Enum):
    """Whether calls may start."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class CircuitEvent(enum.Enum):
    """The events of a circuit."""

    TRIPPED = "tripped"
    PAUSE_OVER = "pause over"
    RECOVERED = "recovered"


TRANSITIONS: Final = {
    (CircuitState.CLOSED, CircuitEvent.TRIPPED): CircuitState.OPEN,
    (CircuitState.OPEN, CircuitEvent.PAUSE_OVER): CircuitState.HALF_OPEN,
    (CircuitState.HALF_OPEN, CircuitEvent.TRIPPED): CircuitState.OPEN,
    (CircuitState.HALF_OPEN, CircuitEvent.RECOVERED): CircuitState.CLOSED,
}

# A handler's own choices, and bytes that it cannot decode, are independent of any dependency.
_NOT_COUNTED: Final = (Skip, Retry, DeadLetter, DeserializationError)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class CircuitBreaker:
    """Pauses the calls of handlers while a service that they depend on is down.

    Handlers with the same object share its state: one object for each dependency.

    Raises: ConfigurationError: a value is out of its range.
    """

    failures: int | None = 5
    """Open after this number of failures in a row. None: only by `share`."""
    share: float | None = None
    """Open if at least this share (0.5: half) of the last `window` calls failed. None: only by `failures`."""
    window: int = 100
    """The number of calls for `share`."""
    exceptions: Kinds = Exception
    """The exceptions that mean that the dependency is down. `Skip`, `Retry`, `DeadLetter` and values that cannot be
    decoded never count."""
    pause: float = 30.0
    """Seconds without calls, before a few calls probe the dependency."""
    probes: int = 1
    """The number of concurrent probe calls, all of which must succeed to close the circuit."""
    name: str | None = None
    """For logs, events and metrics. None: the name of the first handler."""

    def __post_init__(self) -> None:
        if self.failures is None and self.share is None:
            raise ConfigurationError("a circuit breaker needs failures= or share=")
        if self.failures is not None:
            require_int("failures", self.failures, minimum=1)
        if self.share is not None:
            require_number("share", self.share, minimum=0.001, maximum=1)
        require_int("window", self.window, minimum=1, maximum=100_000)
        require_number("pause", self.pause, minimum=0.001, maximum=86_400)
        require_int("probes", self.probes, minimum=1)
        require_exceptions("exceptions", self.exceptions)


class CircuitObserver(Protocol):
    """Receives the state changes of circuits."""

    def moved(self, circuit: Circuit, before: CircuitState, error: BaseException | None) -> None:
        """A circuit has changed its state; `error`: the failure that opened it."""


class Circuit:
    """The state of a circuit breaker: the gate of its handlers, and the driver of its machine."""

    def __init__(self, breaker: CircuitBreaker, name: str, observer: CircuitObserver) -> None:
        self.breaker = breaker
        self.name = name
        self.opened_at: float = 0.0  # on the loop's clock: the first opening since it was closed
        self.openings: int = 0
        self.reason: str = ""  # why it is open
        self._observer = observer
        self._machine = Machine(f"circuit {name}", TRANSITIONS, CircuitState.CLOSED)
        self._clock = asyncio.get_running_loop().time
        self._timer = LoopTimer(asyncio.get_running_loop(), self._on_pause_over)
        self._in_a_row = 0
        self._last: deque[bool] = deque(maxlen=breaker.window)  # whether the last calls failed
        self._failed = 0  # of them
        self._probing = 0
        self._recovered = 0
        self._generation = 0  # of probes, counted from 1

    @property
    def state(self) -> CircuitState:
        return self._machine.state

    @property
    def admits(self) -> bool:
        """Whether a call may start now."""
        if self.state is CircuitState.HALF_OPEN:
            return self._probing < self.breaker.probes
        return self.state is CircuitState.CLOSED

    def enter(self) -> None:
        """Nothing is counted before the call begins."""

    def close(self) -> None:
        """Stop the timer that changes the state."""
        self._timer.cancel()

    # --- calls --------------------------------------------------------------------------------------------------------

    def begin(self) -> int:
        """Note a call that begins; return the generation that it probes, 0 if it does not."""
        if self.state is not CircuitState.HALF_OPEN:
            return 0
        self._probing += 1
        return self._generation

    def raised(self, probed: int) -> None:
        """Note that a call raised (`failed` may follow), or was cancelled."""
        if probed == self._generation and self.state is CircuitState.HALF_OPEN:
            self._probing -= 1

    def succeeded(self, probed: int) -> None:
        """Note that a call succeeded."""
        if self.state is CircuitState.CLOSED:
            self._count(has_failed=False)
        elif self.state is CircuitState.HALF_OPEN and probed == self._generation:
            self._probing -= 1
            self._recovered += 1
            if self._recovered >= self.breaker.probes:
                self._move(CircuitEvent.RECOVERED)

    def failed(self, error: BaseException) -> bool:
        """Note the failure of an attempt; return whether it is to be repeated when the circuit has
        closed, without being counted as an attempt."""
        if not isinstance(error, self.breaker.exceptions) or isinstance(error, _NOT_COUNTED):
            return False
        if self.state is CircuitState.CLOSED:
            self._count(has_failed=True)
            if self._is_exceeded():
                self._trip(error)
        elif self.state is CircuitState.HALF_OPEN:
            self._trip(error)
        return self.state is CircuitState.OPEN

    def _count(self, *, has_failed: bool) -> None:
        self._in_a_row = self._in_a_row + 1 if has_failed else 0
        if self.breaker.share is not None:
            if len(self._last) == self._last.maxlen:
                self._failed -= self._last[0]
            self._last.append(has_failed)
            self._failed += has_failed

    def _is_exceeded(self) -> bool:
        failures, share = self.breaker.failures, self.breaker.share
        if failures is not None and self._in_a_row >= failures:
            self.reason = f"{self._in_a_row} failure(s) in a row"
            return True
        if share is not None and len(self._last) == self._last.maxlen and self._failed >= share * len(self._last):
            self.reason = f"{self._failed} of the last {len(self._last)} calls failed"
            return True
        return False

    # --- moves --------------------------------------------------------------------------------------------------------

    def _trip(self, error: BaseException) -> None:
        now = self._clock()
        if self.state is CircuitState.CLOSED:
            self.opened_at = now
            self.openings += 1
        self._timer.set(now + self.breaker.pause)
        self._move(CircuitEvent.TRIPPED, error)

    def _on_pause_over(self) -> None:
        self._probing = self._recovered = 0
        self._generation += 1
        self._move(CircuitEvent.PAUSE_OVER)

    def _move(self, event: CircuitEvent, error: BaseException | None = None) -> None:
        before = self.state
        self._machine.fire(event)
        if self.state is CircuitState.CLOSED:
            self._in_a_row = self._failed = 0
            self._last.clear()
        self._observer.moved(self, before, error)
