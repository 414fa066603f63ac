"""Sends the heartbeats of one member, also while the application's event loop is blocked.

Heartbeats are always sent from a thread with its own loop and connection (`threads.run_beside`),
never from the application's loop: with a single sender they reach the coordinator in order. The
thread starts with the first `start` and ends with the task that runs `run`. Each consumer with a
group has at most one.

    application's loop: start/update/stop/record_poll -- one assignment -> thread: send, wait, pause
    application's loop: on_answer(schedule, response | error) <-- call_soon_threadsafe --

Responses to heartbeats from before the last `start` or `stop` are dropped. The thread makes no
decision about the group. It repeats its heartbeat, also after errors, until the application's loop
replaces it or the application has made no progress for `HeartbeatSchedule.max_poll_interval`
seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import anyio

from aiokwire.async_library import start_soon
from aiokwire.clock import loop_time
from aiokwire.cluster import Client
from aiokwire.errors import KafkaError
from aiokwire.net import Address, ApiVersions, Connection
from aiokwire.protocol import Request, Response
from aiokwire.threads import run_beside
from aiokwire.watchdog import BlockedLoop, Watchdog

# Builds the request and chooses its version, given the coordinator's versions and the last response without an error
# since `start` (KIP-848: the request repeats its member epoch). Runs in the thread: it must be a pure function.
BuildHeartbeat: TypeAlias = Callable[[ApiVersions, Response | None], tuple[Request[Any], int]]
OnAnswer: TypeAlias = Callable[["HeartbeatSchedule", Response | KafkaError], None]

# When the first heartbeat of an eager term is due (seconds); the pauses after it double.
FIRST_EAGER_INTERVAL: Final = 0.1
# After a failure the application's loop, unless it is blocked, looks the coordinator up and updates the schedule.
# Without an update the thread retries at the same address after this many backoff pauses.
LONE_RETRY_FACTOR: Final = 3
# A coordinator that took this long to respond (seconds) may have evicted members meanwhile.
SLOW_ANSWER: Final = 1.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeartbeatSchedule:
    """The heartbeats to send, their destination and their interval; times in seconds."""

    node_id: int
    address: Address
    build: BuildHeartbeat
    interval: float
    timeout: float
    """Of a response and of a connection attempt; then the connection is replaced."""
    max_poll_interval: float
    """How long heartbeats continue without `HeartbeatThread.record_poll`; they end within one
    `interval` after it."""
    eager: bool = False
    """Whether heartbeats start in quick succession and slow down to `interval` when a term begins,
    when the coordinator responds again after a failure, and after `speed_up`: the group may be
    about to change, and only the response to a heartbeat reports that."""


class _Command(NamedTuple):
    """The thread's task; replaced as a whole by the application's loop."""

    term: int  # the number of the `start` call: responses of another term are dropped
    schedule: HeartbeatSchedule
    urgent: int  # the count of heartbeats in the term that must not wait for the interval
    speed_ups: int  # the count of `speed_up` calls in the term


class HeartbeatThread:
    """The heartbeats of one member. All methods run on the application's loop, `run` in a task."""

    def __init__(
        self,
        client: Client,
        on_answer: OnAnswer,
        *,
        on_blocked: Callable[[BlockedLoop], None] | None = None,
        on_latency: Callable[[float], None] | None = None,
        on_delay: Callable[[float], None] | None = None,
    ) -> None:
        """`on_answer` receives each response, whatever its error code, and each failure; the next
        heartbeat follows.

        `on_blocked` is called after the loop was blocked for a second or more, which is logged in
        any case; `on_latency` with the seconds from each heartbeat to its response, `on_delay` with
        those that the loop takes to run a callback. All on the application's loop.
        """
        self._client = client
        self._on_answer = on_answer
        self._on_blocked = on_blocked
        self._on_latency = on_latency
        self._on_delay = on_delay
        self._term = 0
        self._urgent = 0
        self._speed_ups = 0
        self.command: _Command | None = None  # written here, read by the thread; None: send nothing
        self.polls: int = 0  # written here, read by the thread
        self._begun = anyio.Event()
        self._worker: _Worker | None = None

    def start(self, schedule: HeartbeatSchedule, *, now: bool = False) -> None:
        """Begin a new term (a generation, or a join): the first heartbeat is due after `interval`,
        or `now`.

        Responses to earlier heartbeats are dropped.
        """
        self._term += 1
        self._urgent = self._speed_ups = 0
        self._set(schedule, now)

    def update(self, schedule: HeartbeatSchedule, *, now: bool = False) -> None:
        """Replace the heartbeat of the current term. The response to one in flight is still
        delivered, unless the address changed.

        `now`: send it as soon as the one in flight has a response, without waiting for the
        interval.
        """
        if self.command is None:
            self.start(schedule, now=now)
        else:
            self._set(schedule, now)

    def speed_up(self) -> None:
        """Send eager heartbeats in quick succession again: the group has changed. Ignored within
        one interval after the last time, so that a group that changes constantly causes only a few
        extra heartbeats."""
        if self.command is not None:
            self._speed_ups += 1
            self._set(self.command.schedule, now=False)

    def stop(self) -> None:
        """Stop sending, and drop the response to a heartbeat in flight."""
        self.command = None
        self._wake()

    def record_poll(self) -> None:
        """Record progress of the application. Waiting for records is progress: then call it from
        `on_answer`, too."""
        self.polls += 1
        if self._worker is not None:
            self._worker.end_silence()

    async def run(self) -> None:
        """Run the thread until cancelled."""
        await self._begun.wait()
        worker = self._worker = _Worker(self, self._client)
        watchdog = Watchdog(self._on_blocked or _nothing, on_delay=self._on_delay)
        try:
            name = f"aiokwire heartbeats of {self._client.config.client_id}"
            await run_beside(_run_worker, worker, watchdog, name=name)
        finally:
            self._worker = None

    def _set(self, schedule: HeartbeatSchedule, now: bool) -> None:
        self._urgent += now
        self.command = _Command(self._term, schedule, self._urgent, self._speed_ups)
        self._begun.set()
        self._wake()

    def _wake(self) -> None:
        if self._worker is not None:
            self._worker.wake()

    # --- for the thread -----------------------------------------------------------------------------------------------

    def deliver(self, command: _Command, outcome: Response | KafkaError, took: float) -> None:
        """On the application's loop: report the outcome of a heartbeat of the current term."""
        if self._on_latency is not None and not isinstance(outcome, KafkaError):
            self._on_latency(took)
        if self.command is not None and self.command.term == command.term:
            self._on_answer(command.schedule, outcome)


def _nothing(_blocked: BlockedLoop) -> None:
    """Do nothing: the watchdog logs the blocked loop."""


async def _run_worker(worker: _Worker, watchdog: Watchdog) -> None:
    """The main task of the thread."""
    async with anyio.create_task_group() as group:
        group.start_soon(watchdog.run)
        await worker.run(partial(start_soon, group))
        group.cancel_scope.cancel()


class _Worker:
    """The part of `HeartbeatThread` that runs on the thread's loop. Only `wake` and `end_silence`
    are called on the application's."""

    def __init__(self, owner: HeartbeatThread, client: Client) -> None:
        self._is_silent = False  # the application makes no progress; unset by `end_silence`
        self._owner = owner
        self._client = client
        self._user_loop = asyncio.get_running_loop()
        self._thread_loop: asyncio.AbstractEventLoop | None = None
        self._changed = anyio.Event()
        self._attempt: anyio.CancelScope | None = None
        self._destination: Address | None = None  # of the attempt
        self._connection: Connection | None = None
        self._spawn: Callable[..., object] | None = None  # in the thread's task group
        self._backoff = client.new_backoff()
        self._asked_at = 0.0  # when the last heartbeat was sent
        # Of the current term.
        self._term = 0
        self._eager_since = 0.0
        self._served = 0  # the count of urgent heartbeats with a response
        self._speed_ups = 0
        self._since = 0.0  # when the last heartbeat was sent, or the term began
        self._retry_at: float | None = None  # after a failure
        self._lone_retry_at = 0.0  # unless an urgent heartbeat was requested since
        self._failed_for = 0  # the count of urgent heartbeats at the failure
        self._last: Response | None = None
        # Of the application's progress.
        self._polls = -1
        self._progress_at = 0.0

    def wake(self) -> None:
        """Called on the application's loop: check the command and the polls again."""
        thread_loop = self._thread_loop  # before it is set, the thread has not begun
        if thread_loop is not None:
            with contextlib.suppress(RuntimeError):  # it is ending
                thread_loop.call_soon_threadsafe(self._check)

    def end_silence(self) -> None:
        """Called on the application's loop: send heartbeats again after progress."""
        if self._is_silent:
            self._is_silent = False
            self.wake()

    def _check(self) -> None:
        self._changed.set()
        command = self._owner.command
        if self._attempt is None:
            return
        if command is None or command.term != self._term or command.schedule.address != self._destination:
            self._attempt.cancel()  # a request that was sent stays in order; its response is dropped

    async def run(self, spawn: Callable[..., object]) -> None:
        """Send heartbeats until cancelled; `spawn` starts the background tasks of connections."""
        self._spawn = spawn
        self._thread_loop = asyncio.get_running_loop()
        try:
            while not self._user_loop.is_closed():
                self._changed = anyio.Event()
                command = self._owner.command
                if command is None:
                    await self._changed.wait()
                    continue
                now = loop_time()
                self._follow(command, now)
                self._follow_progress(command.schedule, now)
                if self._is_silent:
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
        """Apply the changes made by the application's loop."""
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
        """Stop sending without progress of the application for `max_poll_interval`."""
        self._is_silent = True  # first: a poll between the lines below wakes the thread
        polls = self._owner.polls
        if polls != self._polls:
            self._polls, self._progress_at = polls, now
        self._is_silent = now >= self._progress_at + schedule.max_poll_interval

    # --- one heartbeat ------------------------------------------------------------------------------------------------

    async def _send(self, command: _Command) -> None:
        """Send one and wait for the response, unless the term or the coordinator changes."""
        sent_at = loop_time()
        self._destination = command.schedule.address
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
            self._retry_at = loop_time() + min(pause, command.schedule.interval)
            self._lone_retry_at = loop_time() + min(LONE_RETRY_FACTOR * pause, command.schedule.interval)
            self._failed_for = command.urgent
        else:
            if self._retry_at is not None or loop_time() - sent_at >= SLOW_ANSWER:
                self._eager_since = self._since = loop_time()
            self._retry_at = None
            self._served = command.urgent
            self._backoff.reset()
            if not any(outcome.error_codes()):
                self._last = outcome
        with contextlib.suppress(RuntimeError):  # the application's loop was closed without closing the consumer
            took = loop_time() - self._asked_at
            self._user_loop.call_soon_threadsafe(self._owner.deliver, command, outcome, took)

    async def _request(self, schedule: HeartbeatSchedule) -> Response:
        connection = self._connection
        if connection is None or not connection.ready or connection.address != schedule.address:
            if connection is not None:
                connection.abort()
            connection = self._client.nodes.new_connection(
                schedule.address, schedule.node_id, unseen=True, spawn=self._spawn
            )
            self._connection = connection
            await connection.connect(schedule.timeout)
        request, version = schedule.build(connection.versions, self._last)
        self._asked_at = loop_time()
        answer: Response = await connection.request(request, version=version, timeout=schedule.timeout)
        return answer
