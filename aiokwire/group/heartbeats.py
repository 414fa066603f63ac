"""Schedules the heartbeats of one member, for both protocols: their coordinator, their contents,
their interval, and when they end. `HeartbeatThread` sends them.

    member - start, stop, send_now, speed_up ->          Scheduler - start, update, stop -> Thread
           <- next_heartbeat, on_heartbeat, on_expired -           <- on_answer -
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

import anyio

from aiokwire.clock import background_pause, loop_time
from aiokwire.cluster import Client
from aiokwire.errors import AuthenticationFailed, BrokerError, ConnectionFailed, KafkaError, RequestTimedOut
from aiokwire.group.coordinator_client import MOVED, CoordinatorClient
from aiokwire.group.heartbeat_thread import BuildHeartbeat, HeartbeatSchedule, HeartbeatThread
from aiokwire.group.membership import MemberOptions
from aiokwire.net import Address
from aiokwire.protocol import Response

# The longest time between two checks of the application's progress (seconds).
CHECK_INTERVAL: Final = 3.0


class HeartbeatSource(ABC):
    """The member: supplies heartbeats and receives their outcomes, on the consumer's loop."""

    @abstractmethod
    def next_heartbeat(self) -> BuildHeartbeat:
        """Return the contents of the next heartbeat, equal while nothing has changed."""

    @abstractmethod
    def on_heartbeat(self, content: BuildHeartbeat, outcome: Response | KafkaError) -> None:
        """Receive the response to a heartbeat of the current term, or the failure of one."""

    @abstractmethod
    def on_expired(self) -> None:
        """Leave: no progress for max_poll_interval_ms. Heartbeats have stopped."""

    @abstractmethod
    def on_refused(self, error: KafkaError) -> None:
        """Handle an error of the coordinator lookup that is not retriable."""


class PollIntervalCheck:
    """Enforces max_poll_interval_ms: the member leaves if the application makes no progress."""

    def __init__(self, thread: HeartbeatThread, progressed_at: Callable[[float], float], limit: float) -> None:
        """`progressed_at` maps the current time to that of the last progress; `limit`: seconds."""
        self._thread = thread
        self._progressed_at = progressed_at
        self._limit = limit
        self._reported = 0.0  # the time of the progress last reported to the thread

    def remaining(self) -> float:
        """Return the seconds until the limit is exceeded; report new progress to the thread."""
        now = loop_time()
        at = self._progressed_at(now)
        if at > self._reported:
            self._reported = at
            self._thread.record_poll()
        return at + self._limit - now


class HeartbeatScheduler:
    """Schedules heartbeats between `start` and `stop`. Owned by the member; runs on its loop."""

    def __init__(
        self,
        client: Client,
        coordinator: CoordinatorClient,
        options: MemberOptions,
        source: HeartbeatSource,
        *,
        progressed_at: Callable[[float], float],
    ) -> None:
        """`progressed_at` maps the current time to that of the application's last progress."""
        self._client = client
        self._coordinator = coordinator
        self._options = options
        self._source = source
        status = coordinator.status
        self._thread = HeartbeatThread(
            client,
            self._on_answer,
            on_blocked=status.on_blocked,
            on_latency=status.heartbeat_took,
            on_delay=status.loop_delayed,
        )
        self._poll_interval = PollIntervalCheck(self._thread, progressed_at, options.max_poll_interval)
        self._interval: float | None = None  # seconds; None: stopped
        self._target: tuple[int, Address] | None = None  # the coordinator; None: it must be looked up
        self._scheduled: tuple[BuildHeartbeat, float] | None = None  # contents, interval; None: nothing in this term
        self._urgent = False  # send the next contents without waiting for the interval
        self._changed = anyio.Event()
        self._backoff = client.new_backoff()
        self._running: anyio.CancelScope | None = None  # around `run`

    async def start(self, interval: float) -> None:
        """Begin a term. The first heartbeat is due after at most `interval` seconds: the
        coordinator has just received a request of this member. The loop may be blocked as soon as
        this returns."""
        self._interval = interval
        self._target = self._scheduled = None
        self._urgent = False
        self._changed.set()
        if await self._find_coordinator():
            self._schedule()

    def stop(self) -> None:
        """Stop sending heartbeats, and drop the outcomes of those in flight."""
        if self._interval is not None:
            self._interval = None
            self._thread.stop()
            self._changed.set()

    def send_now(self) -> None:
        """Send the next contents without waiting for the interval."""
        self._urgent = True
        self._changed.set()

    def speed_up(self) -> None:
        """Send heartbeats in quick succession for a while: the group is changing."""
        self._thread.speed_up()

    def set_interval(self, interval: float) -> None:
        """Change the interval (seconds) of the current term."""
        if self._interval is not None:
            self._interval = interval

    def end(self) -> None:
        """Stop permanently, before leaving: the thread must end within the close deadline."""
        self.stop()
        if self._running is not None:
            self._running.cancel()

    async def run(self) -> None:
        """Run until cancelled or ended."""
        async with anyio.create_task_group() as tasks:
            self._running = tasks.cancel_scope
            tasks.start_soon(self._thread.run, name=f"heartbeat thread of group {self._options.group_id}")
            await self._watch()

    async def _watch(self) -> None:
        """Find a lost coordinator; schedule changed contents; enforce max_poll_interval_ms."""
        while True:
            self._changed = anyio.Event()
            interval = self._interval
            if interval is None:
                await self._changed.wait()
                continue
            remaining = self._poll_interval.remaining()
            if remaining <= 0:
                self.stop()
                self._source.on_expired()
                continue
            if self._target is None and not await self._find_coordinator():
                remaining = min(remaining, self._backoff.next())
            elif self._interval is not None:
                self._schedule()
            with anyio.move_on_after(min(remaining, background_pause(CHECK_INTERVAL), interval)):
                await self._changed.wait()

    async def _find_coordinator(self) -> bool:
        """Find the coordinator. Return False if the lookup failed."""
        try:
            self._target = await self._coordinator.find(self._options.session_timeout)
        except (AuthenticationFailed, ConnectionFailed, RequestTimedOut):
            return False
        except BrokerError as error:
            if not error.retriable and self._interval is not None:
                self._source.on_refused(error)
            return False
        self._backoff.reset()
        self._changed.set()  # the contents may have changed meanwhile
        return True

    def _schedule(self) -> None:
        """Pass the current contents to the thread, unless it has them."""
        content = self._source.next_heartbeat()
        if self._target is None or self._interval is None:
            return
        scheduled = (content, self._interval)
        if not self._urgent and scheduled == self._scheduled:
            return
        node_id, address = self._target
        schedule = HeartbeatSchedule(
            node_id=node_id,
            address=address,
            build=content,
            interval=self._interval,
            timeout=min(self._client.config.request_timeout, self._options.session_timeout / 2),
            max_poll_interval=self._options.max_poll_interval,
            eager=True,  # members learn of revoked partitions from the responses to their heartbeats
        )
        is_first, self._scheduled = self._scheduled is None, scheduled
        now, self._urgent = self._urgent, False
        if is_first:
            self._thread.start(schedule, now=now)
        else:
            self._thread.update(schedule, now=now)

    def _on_answer(self, schedule: HeartbeatSchedule, outcome: Response | KafkaError) -> None:
        """Receive the outcome of a heartbeat of this term."""
        self._poll_interval.remaining()
        if isinstance(outcome, KafkaError):
            self._coordinator.on_lost(schedule.node_id, outcome)
            self._look_up()
        elif any(code in MOVED for code in outcome.error_codes()):
            self._coordinator.on_moved()
            self._look_up()
        else:
            self._coordinator.status.heartbeat_answered(schedule.node_id)
        self._source.on_heartbeat(schedule.build, outcome)
        self._changed.set()

    def _look_up(self) -> None:
        """Look the coordinator up again. Until then the thread retries at the same address."""
        self._target = None
        self._urgent = True
        self._changed.set()
