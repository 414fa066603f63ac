"""The heartbeats of one generation at a time, sent by a task on the consumer's loop."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio

from aiokwire.backoff import Backoff
from aiokwire.errors import BrokerError, ConnectionFailed, KafkaError, RequestTimedOut
from aiokwire.group.decisions import on_beat_error
from aiokwire.group.states import MemberEvent

logger = logging.getLogger(__name__)

# Sends one heartbeat and gives the code that it was answered with.
Beat = Callable[[], Awaitable[int]]


class Heartbeats:
    """Beats while it is told to; what an answer means goes to `signal`."""

    def __init__(
        self,
        *,
        interval: float,
        limit: float,
        progressed_at: Callable[[float], float],
        signal: Callable[[MemberEvent, int], None],
        backoff: Backoff,
    ) -> None:
        """`limit`: so many seconds may pass since the application's last progress. `signal` gets the event and the
        coordinator's code, 0 when none was given."""
        self._interval = interval
        self._limit = limit
        self._progressed_at = progressed_at
        self._signal = signal
        self._backoff = backoff
        self._beat: Beat | None = None  # how to beat for the generation of now; None: not at all
        self._changed = anyio.Event()

    def start(self, beat: Beat) -> None:
        """Beat, first after an interval: the coordinator has just heard of this member."""
        if beat is not self._beat:
            self._beat = beat
            self._changed.set()

    def stop(self) -> None:
        """Beat no more."""
        self._beat = None
        self._changed.set()

    async def run(self) -> None:
        """Until cancelled."""
        wait = self._interval
        while True:
            beat, self._changed = self._beat, anyio.Event()
            if beat is None:
                await self._changed.wait()
                wait = self._interval
                continue
            if await self._is_changed_within(min(wait, self._time_left())):
                wait = self._interval
                continue
            if self._time_left() <= 0:
                self._beat = None
                self._signal(MemberEvent.EXPIRED, 0)
                continue
            wait = await self._send(beat)

    async def _is_changed_within(self, seconds: float) -> bool:
        with anyio.move_on_after(max(0.0, seconds)):
            await self._changed.wait()
        return self._changed.is_set()

    def _time_left(self) -> float:
        now = anyio.current_time()
        return self._progressed_at(now) + self._limit - now

    async def _send(self, beat: Beat) -> float:
        """One heartbeat; after how long the next is due."""
        try:
            code = await beat()
        except KafkaError as error:
            if isinstance(error, BrokerError) and not error.retriable:
                self._tell(beat, MemberEvent.REBALANCE, 0)  # the join meets it again, and tells the reader
                return self._interval
            if not isinstance(error, (ConnectionFailed, RequestTimedOut, BrokerError)):
                raise
            pause = min(self._backoff.next(), self._interval)
            logger.info("a heartbeat failed, again in %.3f s: %s", pause, error)
            return pause
        event = on_beat_error(code)
        if event is not None:
            self._tell(beat, event, code)
        elif code:
            return min(self._backoff.next(), self._interval)
        self._backoff.reset()
        return self._interval

    def _tell(self, beat: Beat, event: MemberEvent, code: int) -> None:
        """What was answered about a generation that has passed means nothing."""
        if beat is self._beat:
            self._signal(event, code)
