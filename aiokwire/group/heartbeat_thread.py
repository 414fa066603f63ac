"""The heartbeats of one member, which go on while the user's event loop is blocked.

They are sent always from a thread with a loop and a connection of its own (`threads.run_beside`), never from the user's
loop: one sender has no turns to agree on, and its requests reach the coordinator in the order in which they were meant.
The thread belongs to the consumer: it begins with the first `start` and ends with the task that runs `run`, so each
consumer with a group has one at most.

    user's loop: start / update / stop / record_poll -- one assignment -->  thread: send, wait for the answer, pause
    user's loop: on_answer(beat, answer | error) <- call_soon_threadsafe -

Answers to what was sent before the last `start` or `stop` are dropped: a generation that is over has no say. The thread
decides nothing about the group. It repeats the beat that it was given, also after errors, until the user's loop says
otherwise or the application has made no progress for `Beat.patience` seconds (max_poll_interval_ms).
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import anyio

from aiokwire.backoff import Backoff
from aiokwire.cluster import Client
from aiokwire.errors import KafkaError
from aiokwire.net import Address, ApiVersions, Connection
from aiokwire.protocol import Request, Response
from aiokwire.threads import run_beside
from aiokwire.watchdog import BlockedLoop, Watchdog

# Makes the request and chooses its version, for what the coordinator offers and after the last answer without an error
# since `start` (KIP-848: the member epoch is taken from it). It runs in the thread: it must be a pure function.
BuildHeartbeat: TypeAlias = Callable[[ApiVersions, Response | None], tuple[Request[Any], int]]
OnAnswer: TypeAlias = Callable[["Beat", Response | KafkaError], None]

# When the first beat of an eager term is due (seconds); the next one after as much again, and so on.
FIRST_EAGER: Final = 0.1
# After a failure the user's loop, unless it is blocked, looks for the coordinator and says when it is found. Without a
# word the same place is tried again after so many times the pause that a word would have cut short.
ALONE: Final = 3
# A coordinator that took so long to answer (seconds) may have taken members for dead meanwhile.
SLOW: Final = 1.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Beat:
    """What to send, where to and how often; times in seconds."""

    node_id: int
    address: Address
    build: BuildHeartbeat
    interval: float
    timeout: float
    """For an answer, and for a connection: then the connection is given up and made anew."""
    patience: float
    """How long beats go on without `HeartbeatThread.record_poll`; they end within one `interval` after it."""
    eager: bool = False
    """Whether heartbeats start in quick succession and slow down to `interval` when a term begins, when a coordinator
    answers again that did not, and after `speed_up`: the group may be about to change, and only the answer to a
    heartbeat reports that."""


class _Command(NamedTuple):
    """What the thread is to do; made by the user's loop, as a whole."""

    term: int  # since which `start`: answers of another term do not count
    beat: Beat
    urgent: int  # how many beats of the term were wanted at once
    stirs: int  # how often in the term the group was seen to change


class HeartbeatThread:
    """The heartbeats of one member. All methods are for the user's loop; `run` is spawned once, as a task there."""

    def __init__(
        self, client: Client, on_answer: OnAnswer, *, on_blocked: Callable[[BlockedLoop], None] | None = None
    ) -> None:
        """`on_answer` gets each answer, whatever its error code, and each failure; the next beat goes out by itself.

        `on_blocked` is called after each time in which the loop was blocked for a second or more; it is logged anyway.
        """
        self._client = client
        self._on_answer = on_answer
        self._on_blocked = on_blocked
        self._term = 0
        self._urgent = 0
        self._stirs = 0
        self._order: _Command | None = None  # written here, read by the thread
        self._polls = 0  # written here, read by the thread
        self._begun = anyio.Event()
        self._heart: _Worker | None = None

    @property
    def beating(self) -> bool:
        """Whether there is something to beat for."""
        return self._order is not None

    def start(self, beat: Beat, *, now: bool = False) -> None:
        """Begin a new term (a generation, a member's new life): the first beat is due after `interval`, or `now`.

        What was sent before it is not answered any more.
        """
        self._term += 1
        self._urgent = self._stirs = 0
        self._give(beat, now)

    def update(self, beat: Beat, *, now: bool = False) -> None:
        """Go on with another beat in the same term: what is under way is still answered, unless at another address, and
        the next one is this.

        `now`: as soon as what is under way is answered, without waiting for the interval.
        """
        if self._order is None:
            self.start(beat, now=now)
        else:
            self._give(beat, now)

    def speed_up(self) -> None:
        """The group has changed, and may go on to: eager beats come in quick succession again, unless they began to
        within the last interval, so that in a group that never rests a member has a few more of them."""
        if self._order is not None:
            self._stirs += 1
            self._give(self._order.beat, now=False)

    def stop(self) -> None:
        """Send nothing more; what is under way is not answered any more."""
        self._order = None
        self._wake()

    def record_poll(self) -> None:
        """The application made progress. To wait for records is progress: then call it from `on_answer`, too."""
        self._polls += 1
        heart = self._heart
        if heart is not None and heart.silent:
            heart.silent = False
            heart.wake()

    async def run(self) -> None:
        """Beat until cancelled."""
        await self._begun.wait()
        heart = self._heart = _Worker(self)
        watchdog = Watchdog(self._on_blocked or _nothing)
        try:
            await run_beside(_both, heart, watchdog, name=f"aiokwire heartbeats of {self._client.config.client_id}")
        finally:
            self._heart = None

    def _give(self, beat: Beat, now: bool) -> None:
        self._urgent += now
        self._order = _Command(self._term, beat, self._urgent, self._stirs)
        self._begun.set()
        self._wake()

    def _wake(self) -> None:
        if self._heart is not None:
            self._heart.wake()

    # --- for the thread -----------------------------------------------------------------------------------------------

    @property
    def order(self) -> _Command | None:
        return self._order

    @property
    def polls(self) -> int:
        return self._polls

    def new_connection(self, beat: Beat) -> Connection:
        return self._client.nodes.new_connection(beat.address, beat.node_id, unseen=True)

    def new_backoff(self) -> Backoff:
        return self._client.new_backoff()

    def deliver(self, order: _Command, outcome: Response | KafkaError) -> None:
        """On the user's loop: what a beat came to."""
        if self._order is not None and self._order.term == order.term:
            self._on_answer(order.beat, outcome)


def _nothing(_blocked: BlockedLoop) -> None:
    """Nobody asked to be told."""


async def _both(heart: _Worker, watchdog: Watchdog) -> None:
    """The thread."""
    async with anyio.create_task_group() as group:
        group.start_soon(watchdog.run)
        await heart.run()
        group.cancel_scope.cancel()


class _Worker:
    """The thread's side of the heartbeats."""

    def __init__(self, pulse: HeartbeatThread) -> None:
        self.silent = False  # set here, unset by `record_poll`: the application makes no progress
        self._pulse = pulse
        self._here = asyncio.get_running_loop()  # the user's
        self._there: asyncio.AbstractEventLoop | None = None
        self._changed = anyio.Event()
        self._attempt: anyio.CancelScope | None = None
        self._asking: Address | None = None  # whom the attempt asks
        self._connection: Connection | None = None
        self._backoff = pulse.new_backoff()
        # of the present term
        self._term = 0
        self._eager_since = 0.0
        self._served = 0  # how many of the beats that were wanted at once went out
        self._stirs = 0
        self._since = 0.0  # when the last beat went out, or the term began
        self._retry_at: float | None = None  # after a failure
        self._retry_alone_at = 0.0  # when no new beat was wanted at once since
        self._failed_for = 0  # how many of those there were then
        self._last: Response | None = None
        # of the application's progress
        self._polls = -1
        self._patient_since = 0.0

    def wake(self) -> None:
        """From the user's loop: look at the order and the polls again."""
        there = self._there  # before it is set, the thread has not looked yet
        if there is not None:
            with contextlib.suppress(RuntimeError):  # it is ending
                there.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        self._changed.set()
        order = self._pulse.order
        if self._attempt is None:
            return
        if order is None or order.term != self._term or order.beat.address != self._asking:
            self._attempt.cancel()  # a request that was sent keeps its place; its answer has no say any more

    async def run(self) -> None:
        """Beat until cancelled."""
        self._there = asyncio.get_running_loop()
        try:
            while not self._here.is_closed():
                self._changed = anyio.Event()
                order = self._pulse.order
                if order is None:
                    await self._changed.wait()
                    continue
                now = anyio.current_time()
                self._follow(order, now)
                if self._falls_silent(order.beat, now):
                    await self._changed.wait()
                elif (pause := self._due(order, now) - now) > 0:
                    with anyio.move_on_after(pause):
                        await self._changed.wait()
                else:
                    await self._beat(order)
        finally:
            self._there = None
            if self._connection is not None:
                self._connection.abort()

    # --- when ---------------------------------------------------------------------------------------------------------

    def _follow(self, order: _Command, now: float) -> None:
        """Take over what the user's loop changed."""
        if order.term != self._term:
            self._term, self._served, self._stirs, self._retry_at, self._last = order.term, 0, 0, None, None
            self._eager_since = self._since = now
        if order.stirs > self._stirs:
            self._stirs = order.stirs
            if order.beat.eager and now - self._eager_since >= order.beat.interval:
                self._eager_since = self._since = now

    def _due(self, order: _Command, now: float) -> float:
        if self._retry_at is not None:
            return self._retry_at if order.urgent > self._failed_for else self._retry_alone_at
        if order.urgent > self._served:
            return now
        interval = order.beat.interval
        if order.beat.eager:
            interval = min(interval, max(FIRST_EAGER, self._since - self._eager_since))
        return self._since + interval

    def _falls_silent(self, beat: Beat, now: float) -> bool:
        """Whether the application has made no progress for too long: no beat, until it does."""
        self.silent = True  # first: a poll that comes between the lines below wakes the thread
        polls = self._pulse.polls
        if polls != self._polls:
            self._polls, self._patient_since = polls, now
        self.silent = now >= self._patient_since + beat.patience
        return self.silent

    # --- one beat -----------------------------------------------------------------------------------------------------

    async def _beat(self, order: _Command) -> None:
        """Send it and wait for the answer, unless another term begins or another coordinator is to be asked."""
        sent_at = anyio.current_time()
        self._asking = order.beat.address
        outcome: Response | KafkaError
        with anyio.CancelScope() as self._attempt:
            try:
                outcome = await self._ask(order.beat)
            except KafkaError as error:
                outcome = error
        cancelled, self._attempt = self._attempt.cancelled_caught, None
        if cancelled:
            return
        self._since = sent_at
        if isinstance(outcome, KafkaError):
            pause = self._backoff.next()
            self._retry_at = anyio.current_time() + min(pause, order.beat.interval)
            self._retry_alone_at = anyio.current_time() + min(ALONE * pause, order.beat.interval)
            self._failed_for = order.urgent
        else:
            if self._retry_at is not None or anyio.current_time() - sent_at >= SLOW:
                self._eager_since = self._since = anyio.current_time()
            self._retry_at = None
            self._served = order.urgent
            self._backoff.reset()
            if not getattr(outcome, "error_code", 0):
                self._last = outcome
        with contextlib.suppress(RuntimeError):  # the user's loop was closed without closing the consumer
            self._here.call_soon_threadsafe(self._pulse.deliver, order, outcome)

    async def _ask(self, beat: Beat) -> Response:
        connection = self._connection
        if connection is None or not connection.ready or connection.address != beat.address:
            if connection is not None:
                connection.abort()
            connection = self._connection = self._pulse.new_connection(beat)
            await connection.connect(beat.timeout)
        request, version = beat.build(connection.versions, self._last)
        answer: Response = await connection.request(request, version=version, timeout=beat.timeout)
        return answer
