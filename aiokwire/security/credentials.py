"""Credentials that all connections of a client share: fetched once, refreshed before they expire.

The connections belong to several event loops: the client's, and the one of the heartbeats' thread.
Only one of them fetches; the others wait for its result.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import random
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

import anyio

from aiokwire.clock import wall_ms
from aiokwire.errors import ConnectionFailed, KafkaError
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.threads import run_in_thread

T = TypeVar("T")

logger: FieldLogger = get_logger(__name__)

# A user's function is called once for connections that are opened together, and again for later ones (seconds).
ASK_INTERVAL: Final = 1.0
# After a failed refresh, while the old credentials are still valid (seconds).
RETRY_INTERVAL: Final = 10.0


class RefreshPolicy(NamedTuple):
    """When to refresh credentials that expire: Kafka's `sasl.login.refresh.*`.

    A lifetime that is shorter than `buffer_seconds` + `min_period_seconds` ignores both.
    """

    window_factor: float = 0.8  # of the lifetime
    window_jitter: float = 0.05  # added, at random: clients that started together refresh apart
    min_period_seconds: float = 60
    buffer_seconds: float = 300  # before the expiry

    def refresh_at(self, now: float, expires_at: float, rng: random.Random) -> float:
        """Return the time of the refresh, in seconds since the epoch."""
        factor = self.window_factor + self.window_jitter * rng.random()
        at = now + (expires_at - now) * factor
        if self.min_period_seconds + self.buffer_seconds > expires_at - now:
            return at
        return max(min(at, expires_at - self.buffer_seconds), now + self.min_period_seconds)


class Fetched(NamedTuple, Generic[T]):
    """A value, and the seconds since the epoch when to fetch another one and when it expires."""

    value: T
    refresh_at: float
    expires_at: float


class Shared(Generic[T]):
    """A value that several event loops use, fetched by one caller at a time.

    `fetch` returns the value; `what` names it in the log.
    """

    def __init__(self, fetch: Callable[[], Awaitable[Fetched[T]]], *, what: str) -> None:
        self._fetch = fetch
        self._what = what
        self._lock = threading.Lock()  # guards the following; never held while waiting
        self._current: Fetched[T] | None = None
        self._flight: _Flight[T] | None = None
        self._has_failed = False  # since the last success: one log line per incident

    async def get(self) -> T:
        """Return the value; fetch it first if it is missing, due or expired.

        Raises: KafkaError: it cannot be fetched, and the previous one has expired.
        """
        while True:
            with self._lock:
                current, flight = self._current, self._flight
                if current is not None and wall_ms() / 1000 < current.refresh_at:
                    return current.value
                if flight is None:
                    flight = self._flight = _Flight()
                    break
                landed = flight.join()
            await landed.wait()
            if flight.error is not None:
                raise flight.error
            if flight.fetched is not None:
                return flight.fetched.value
        return await self._fly(flight, current)

    def invalidate(self) -> None:
        """Fetch at the next `get`: the broker rejected the value."""
        with self._lock:
            self._current = None

    def expire(self) -> None:
        """Fetch at the next `get`, but keep the value for the case that this fails."""
        with self._lock:
            if self._current is not None:
                self._current = self._current._replace(refresh_at=-math.inf)

    async def _fly(self, flight: _Flight[T], previous: Fetched[T] | None) -> T:
        error: KafkaError | None = None
        fetched: Fetched[T] | None = None
        try:
            fetched = await self._fetch()
            self._has_failed = False
        except KafkaError as failure:
            fetched = self._still_valid(previous, failure)
            if fetched is None:
                error = failure
                raise
        finally:  # also if cancelled: another caller fetches then
            with self._lock:
                self._flight = None
                self._current = fetched or self._current
            flight.land(fetched, error)
        return fetched.value

    def _still_valid(self, previous: Fetched[T] | None, error: KafkaError) -> Fetched[T] | None:
        """Return the previous value with a later refresh, None if it has expired."""
        now = wall_ms() / 1000
        if previous is None or previous.expires_at <= now:
            return None
        if not self._has_failed:
            self._has_failed = True
            logger.warning(
                "%s cannot be refreshed: %s; the current one expires in %.0f s and is used until then; new logins "
                "retry the refresh every %.0f s",
                *(self._what, error, previous.expires_at - now, RETRY_INTERVAL),
            )
        return previous._replace(refresh_at=min(now + RETRY_INTERVAL, previous.expires_at))


class _Flight(Generic[T]):
    """A fetch in progress, and the callers of other tasks and loops that wait for it."""

    def __init__(self) -> None:
        self.fetched: Fetched[T] | None = None
        self.error: KafkaError | None = None  # both None: the fetch was cancelled
        self._waiting: list[tuple[asyncio.AbstractEventLoop, anyio.Event]] = []

    def join(self) -> anyio.Event:
        """Return the event of the end, for the running loop; called with the lock of `Shared`."""
        landed = anyio.Event()
        self._waiting.append((asyncio.get_running_loop(), landed))
        return landed

    def land(self, fetched: Fetched[T] | None, error: KafkaError | None) -> None:
        """Wake the waiting callers; they share the value or the error."""
        self.fetched, self.error = fetched, error
        for loop, landed in self._waiting:
            try:
                loop.call_soon_threadsafe(landed.set)
            except RuntimeError:  # that loop is closed, with its waiting caller
                logger.debug("an event loop was closed while a task on it waited for credentials")


class Provider(Generic[T]):
    """A user's function that returns credentials; `option` names it in errors.

    An async function runs on the loop that called it first, the client's: what it uses may belong
    to that loop. A plain one runs in a worker thread, because it may block.
    """

    def __init__(self, function: Callable[[], T | Awaitable[T]], *, option: str) -> None:
        self._function = function
        self._option = option
        self._home: asyncio.AbstractEventLoop | None = None

    async def call(self) -> T:
        """Call the function and return its result.

        Raises: ConnectionFailed: it raised an exception; KafkaErrors are passed on.
        """
        here = asyncio.get_running_loop()
        if self._home is None or self._home.is_closed():
            self._home = here
        if self._home is here:
            return await self._call()
        # Cancelling this wait cancels the call on the other loop.
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._call(), self._home))

    async def _call(self) -> T:
        try:
            if inspect.iscoroutinefunction(self._function):
                found: Any = await self._function()
            else:
                found = await run_in_thread(self._function)
                if inspect.isawaitable(found):
                    found = await found
        except KafkaError:
            raise
        except Exception as error:
            raise ConnectionFailed(f"{self._option} raised {type(error).__name__}: {error}", stage="sasl") from error
        return found  # type: ignore[no-any-return]
