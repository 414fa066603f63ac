"""Sends the heartbeats of one member, also while the application's event loop is blocked.

They are always sent from a thread with a loop and a connection of its own (`threads.run_beside`), never from the
application's loop: a single sender needs no turns, and its requests reach the coordinator in order. The thread belongs
to the consumer: it begins with the first `start` and ends with the task that runs `run`, so each consumer with a group
has one at most.

    application's loop: start / update / stop / record_poll -- one assignment --> thread: send, wait, pause
    application's loop: on_answer(schedule, response | error) <-- call_soon_threadsafe --

Responses to what was sent before the last `start` or `stop` are dropped. The thread decides nothing about the group.
It repeats the heartbeat that it was given, also after errors, until the application's loop changes it or the
application has made no progress for `HeartbeatSchedule.max_poll_interval` seconds.
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
OnAnswer: TypeAlias = Callable[["HeartbeatSchedule", Response | KafkaError], None]

# When the first heartbeat of an eager term is due (seconds); the pauses after it double.
FIRST_EAGER_INTERVAL: Final = 0.1
# After a failure the application's loop, unless it is blocked, looks the coordinator up and updates the schedule.
# Without an update the same address is retried after this many backoff pauses.
LONE_RETRY_FACTOR: Final = 3
# A coordinator that took this long to answer (seconds) may have evicted members meanwhile.
SLOW_ANSWER: Final = 1.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeartbeatSchedule:
    """What to send, where to and how often; times in seconds."""

    node_id: int
    address: Address
    build: BuildHeartbeat
    interval: float
    timeout: float
    """For a response, and for a connection; afterwards the connection is closed and replaced."""
    max_poll_interval: float
    """How long heartbeats continue without `HeartbeatThread.record_poll`; they end within one `interval` after it."""
    eager: bool = False
    """Whether heartbeats start in quick succession and slow down to `interval` when a term begins, when a coordinator
    answers again that did not, and after `speed_up`: the group may be about to change, and only the answer to a
    heartbeat reports that."""


class _Command(NamedTuple):
    """What the thread has to do; replaced as a whole by the application's loop."""

    term: int  # since which `start`: answers of another term do not count
    schedule: HeartbeatSchedule
    urgent: int  # how many heartbeats of the term were requested at once
    speed_ups: int  # how many `speed_up` calls in the term


class HeartbeatThread:
    """The heartbeats of one member. All methods are called on the application's loop; `run` is one task there."""

    def __init__(
        self, client: Client, on_answer: OnAnswer, *, on_blocked: Callable[[BlockedLoop], None] | None = None
    ) -> None:
        """`on_answer` receives each response, whatever its error code, and each failure; the next heartbeat follows.

        `on_blocked` is called after the loop was blocked for a second or more, which is logged in any case.
        """
        self._client = client
        self._on_answer = on_answer
        self._on_blocked = on_blocked
        self._term = 0
        self._urgent = 0
        self._speed_ups = 0
        self._command: _Command | None = None  # written here, read by the thread
        self._polls = 0  # written here, read by the thread
        self._begun = anyio.Event()
        self._worker: _Worker | None = None

    @property
    def is_active(self) -> bool:
        """Whether heartbeats are sent."""
        return self._command is not None

    def start(self, schedule: HeartbeatSchedule, *, now: bool = False) -> None:
        """Begin a new term (a generation, or a join): the first heartbeat is due after `interval`, or `now`.

        Responses to earlier heartbeats are dropped.
        """
        self._term += 1
        self._urgent = self._speed_ups = 0
        self._set(schedule, now)

    def update(self, schedule: HeartbeatSchedule, *, now: bool = False) -> None:
        """Replace the heartbeat of the current term. The response to one in flight is still delivered, unless the
        address changed.

        `now`: send it as soon as the one in flight is answered, without waiting for the interval.
        """
        if self._command is None:
            self.start(schedule, now=now)
        else:
            self._set(schedule, now)

    def speed_up(self) -> None:
        """Send eager heartbeats in quick succession again: the group has changed. Ignored within one interval after the
        last time, so that a group in constant motion causes only a few more of them."""
        if self._command is not None:
            self._speed_ups += 1
            self._set(self._command.schedule, now=False)

    def stop(self) -> None:
        """Send nothing more; the response to a heartbeat in flight is dropped."""
        self._command = None
        self._wake()

    def record_poll(self) -> None:
        """Record progress of the application. Waiting for records is progress: then call it from `on_answer`, too."""
        self._polls += 1
        worker = self._worker
        if worker is not None and worker.is_silent:
            worker.is_silent = False
            worker.wake()

    async def run(self) -> None:
        """Run the thread until cancelled."""
        await self._begun.wait()
        worker = self._worker = _Worker(self)
        watchdog = Watchdog(self._on_blocked or _nothing)
        try:
            name = f"aiokwire heartbeats of {self._client.config.client_id}"
            await run_beside(_run_worker, worker, watchdog, name=name)
        finally:
            self._worker = None

    def _set(self, schedule: HeartbeatSchedule, now: bool) -> None:
        self._urgent += now
        self._command = _Command(self._term, schedule, self._urgent, self._speed_ups)
        self._begun.set()
        self._wake()

    def _wake(self) -> None:
        if self._worker is not None:
            self._worker.wake()

    # --- for the thread -----------------------------------------------------------------------------------------------

    @property
    def command(self) -> _Command | None:
        return self._command

    @property
    def polls(self) -> int:
        return self._polls

    def new_connection(self, schedule: HeartbeatSchedule) -> Connection:
        return self._client.nodes.new_connection(schedule.address, schedule.node_id, unseen=True)

    def new_backoff(self) -> Backoff:
        return self._client.new_backoff()

    def deliver(self, command: _Command, outcome: Response | KafkaError) -> None:
        """On the application's loop: report the outcome of a heartbeat of the current term."""
        if self._command is not None and self._command.term == command.term:
            self._on_answer(command.schedule, outcome)


def _nothing(_blocked: BlockedLoop) -> None:
    """Without a callback a blocked loop is only logged."""


async def _run_worker(worker: _Worker, watchdog: Watchdog) -> None:
    """The main task of the thread."""
    async with anyio.create_task_group() as group:
        group.start_soon(watchdog.run)
        await worker.run()
        group.cancel_scope.cancel()


class _Worker:
    """The part of `HeartbeatThread` that runs on the thread's loop; only `wake` is called from the application's."""

    def __init__(self, owner: HeartbeatThread) -> None:
        self.is_silent = False  # set here, unset by `record_poll`: the application makes no progress
        self._owner = owner
        self._user_loop = asyncio.get_running_loop()
        self._thread_loop: asyncio.AbstractEventLoop | None = None
        self._changed = anyio.Event()
        self._attempt: anyio.CancelScope | None = None
        self._asked: Address | None = None  # where the attempt sends to
        self._connection: Connection | None = None
        self._backoff = owner.new_backoff()
        # of the present term
        self._term = 0
        self._eager_since = 0.0
        self._served = 0  # how many of the urgent heartbeats were answered
        self._speed_ups = 0
        self._since = 0.0  # when the last heartbeat was sent, or the term began
        self._retry_at: float | None = None  # after a failure
        self._lone_retry_at = 0.0  # unless an urgent heartbeat was requested since
        self._failed_for = 0  # how many urgent ones were requested by then
        self._last: Response | None = None
        # of the application's progress
        self._polls = -1
        self._progress_at = 0.0

    def wake(self) -> None:
        """Called on the application's loop: check the command and the polls again."""
        thread_loop = self._thread_loop  # before it is set, the thread has not begun
        if thread_loop is not None:
            with contextlib.suppress(RuntimeError):  # it is ending
                thread_loop.call_soon_threadsafe(self._check)

    def _check(self) -> None:
        self._changed.set()
        command = self._owner.command
        if self._attempt is None:
            return
        if command is None or command.term != self._term or command.schedule.address != self._asked:
            self._attempt.cancel()  # a request that was sent stays in order; its response is dropped

    async def run(self) -> None:
        """Send heartbeats until cancelled."""
        self._thread_loop = asyncio.get_running_loop()
        try:
            while not self._user_loop.is_closed():
                self._changed = anyio.Event()
                command = self._owner.command
                if command is None:
                    await self._changed.wait()
                    continue
                now = anyio.current_time()
                self._follow(command, now)
                self._follow_progress(command.schedule, now)
                if self.is_silent:
                    await self._changed.wait()
                elif (pause := self._due(command, now) - now) > 0:
                    with anyio.move_on_after(pause):
                        await self._changed.wait()
                else:
                    await self._send(command)
        finally:
            self._thread_loop = None
            if self._connection is not None:
                self._connection.abort()

    # --- when ---------------------------------------------------------------------------------------------------------

    def _follow(self, command: _Command, now: float) -> None:
        """Apply what the application's loop changed."""
        if command.term != self._term:
            self._term, self._served, self._speed_ups, self._retry_at, self._last = command.term, 0, 0, None, None
            self._eager_since = self._since = now
        if command.speed_ups > self._speed_ups:
            self._speed_ups = command.speed_ups
            if command.schedule.eager and now - self._eager_since >= command.schedule.interval:
                self._eager_since = self._since = now

    def _due(self, command: _Command, now: float) -> float:
        if self._retry_at is not None:
            return self._retry_at if command.urgent > self._failed_for else self._lone_retry_at
        if command.urgent > self._served:
            return now
        interval = command.schedule.interval
        if command.schedule.eager:
            interval = min(interval, max(FIRST_EAGER_INTERVAL, self._since - self._eager_since))
        return self._since + interval

    def _follow_progress(self, schedule: HeartbeatSchedule, now: float) -> None:
        """Fall silent when the application has made no progress for too long, until it does."""
        self.is_silent = True  # first: a poll that comes between the lines below wakes the thread
        polls = self._owner.polls
        if polls != self._polls:
            self._polls, self._progress_at = polls, now
        self.is_silent = now >= self._progress_at + schedule.max_poll_interval

    # --- one heartbeat ------------------------------------------------------------------------------------------------

    async def _send(self, command: _Command) -> None:
        """Send one and wait for the response, until another term begins or the coordinator changes."""
        sent_at = anyio.current_time()
        self._asked = command.schedule.address
        outcome: Response | KafkaError
        with anyio.CancelScope() as self._attempt:
            try:
                outcome = await self._request(command.schedule)
            except KafkaError as error:
                outcome = error
        cancelled, self._attempt = self._attempt.cancelled_caught, None
        if cancelled:
            return
        self._since = sent_at
        if isinstance(outcome, KafkaError):
            pause = self._backoff.next()
            self._retry_at = anyio.current_time() + min(pause, command.schedule.interval)
            self._lone_retry_at = anyio.current_time() + min(LONE_RETRY_FACTOR * pause, command.schedule.interval)
            self._failed_for = command.urgent
        else:
            if self._retry_at is not None or anyio.current_time() - sent_at >= SLOW_ANSWER:
                self._eager_since = self._since = anyio.current_time()
            self._retry_at = None
            self._served = command.urgent
            self._backoff.reset()
            if not any(outcome.error_codes()):
                self._last = outcome
        with contextlib.suppress(RuntimeError):  # the application's loop was closed without closing the consumer
            self._user_loop.call_soon_threadsafe(self._owner.deliver, command, outcome)

    async def _request(self, schedule: HeartbeatSchedule) -> Response:
        connection = self._connection
        if connection is None or not connection.ready or connection.address != schedule.address:
            if connection is not None:
                connection.abort()
            connection = self._connection = self._owner.new_connection(schedule)
            await connection.connect(schedule.timeout)
        request, version = schedule.build(connection.versions, self._last)
        answer: Response = await connection.request(request, version=version, timeout=schedule.timeout)
        return answer
