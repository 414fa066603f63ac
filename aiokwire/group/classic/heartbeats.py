"""The heartbeats of one generation at a time. `HeartbeatThread` sends them; this module decides where to, until
when, and what the answers mean.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import anyio

from aiokwire.cluster import Client
from aiokwire.errors import BrokerError, ConnectionFailed, KafkaError, RequestTimedOut
from aiokwire.group.classic.decisions import MOVED, on_heartbeat_error
from aiokwire.group.classic.states import ClassicProtocolEvent
from aiokwire.group.coordinator_client import CoordinatorClient
from aiokwire.group.heartbeat_thread import Beat, HeartbeatThread
from aiokwire.group.membership import MemberOptions
from aiokwire.group.poll_interval import LOOK, PollIntervalCheck
from aiokwire.protocol import Request, Response

logger = logging.getLogger(__name__)


class Heartbeats:
    """Beats while it is told to; what an answer means goes to `signal`."""

    def __init__(
        self,
        client: Client,
        link: CoordinatorClient,
        options: MemberOptions,
        *,
        progressed_at: Callable[[float], float],
        signal: Callable[[ClassicProtocolEvent, int], None],
    ) -> None:
        """`progressed_at`: when the application made progress, given the time; `signal` gets an event and the
        coordinator's code, 0 when none was given."""
        self._client = client
        self._link = link
        self._options = options
        self._signal = signal
        self._pulse = HeartbeatThread(client, self._on_answer, on_blocked=link.status.on_blocked)
        self._progress = PollIntervalCheck(self._pulse, progressed_at, options.max_poll_interval)
        self._request: Request[Any] | None = None  # for the generation of now; None: not to beat
        self._is_new = False  # the pulse does not know the request yet
        self._is_lost = False  # the coordinator has to be looked up again
        self._changed = anyio.Event()
        self._backoff = client.new_backoff()
        self._running: anyio.CancelScope | None = None  # around `run`

    def start(self, request: Request[Any]) -> None:
        """Beat: soon at first, since one rebalance often brings on another, and then by the interval."""
        self._request = request
        self._is_new = True
        self._changed.set()

    def stop(self) -> None:
        """Beat no more."""
        if self._request is not None:
            self._request = None
            self._pulse.stop()
            self._changed.set()

    def end(self) -> None:
        """Beat never again: the thread ends while the member takes its leave, after which there may be no time left."""
        self.stop()
        if self._running is not None:
            self._running.cancel()

    async def run(self) -> None:
        """Until cancelled, or told to end."""
        async with anyio.create_task_group() as tasks:
            self._running = tasks.cancel_scope
            tasks.start_soon(self._pulse.run, name=f"pulse of group {self._options.group_id}")
            await self._watch()

    async def _watch(self) -> None:
        """Find the coordinator when it is lost; notice when the application makes no progress."""
        while True:
            self._changed = anyio.Event()
            request = self._request
            if request is None:
                await self._changed.wait()
                continue
            left = self._progress.look()
            if left <= 0:
                self.stop()
                self._signal(ClassicProtocolEvent.EXPIRED, 0)
                continue
            if (self._is_new or self._is_lost) and not await self._aim(request):
                left = min(left, self._backoff.next())
            with anyio.move_on_after(min(left, LOOK, self._options.heartbeat_interval)):
                await self._changed.wait()

    async def _aim(self, request: Request[Any]) -> bool:
        """Have the pulse beat at the coordinator; False when it could not be found now."""
        try:
            node_id, address = await self._link.find(self._options.session_timeout)
        except KafkaError as error:
            if isinstance(error, BrokerError) and not error.retriable:
                self._signal(ClassicProtocolEvent.REBALANCE, 0)  # the join meets it again, and tells the reader
            elif not isinstance(error, (ConnectionFailed, RequestTimedOut, BrokerError)):
                raise
            return False
        if request is not self._request:
            return True
        beat = Beat(
            node_id=node_id,
            address=address,
            build=lambda versions, _last: (request, versions.pick(type(request))),
            interval=self._options.heartbeat_interval,
            timeout=min(self._client.config.request_timeout, self._options.session_timeout / 2),
            patience=self._options.max_poll_interval,
            eager=True,  # members that gave partitions up join again at once, and the others have to join with them
        )
        if self._is_new:
            self._pulse.start(beat)
        else:
            self._pulse.update(beat, now=True)
        self._is_new = self._is_lost = False
        self._backoff.reset()
        return True

    def _on_answer(self, beat: Beat, outcome: Response | KafkaError) -> None:
        """Of a beat of this generation: others are not delivered."""
        self._progress.look()
        if isinstance(outcome, KafkaError):
            logger.info("group %r: a heartbeat failed: %s", self._options.group_id, outcome)
            self._link.lost(beat.node_id, outcome)
            self._look_up()
            return
        code: int = getattr(outcome, "error_code", 0)
        if code in MOVED:
            self._link.moved()
            self._look_up()
            return
        self._link.status.heartbeat_answered(beat.node_id)
        event = on_heartbeat_error(code)
        if event is not None:
            self._signal(event, code)

    def _look_up(self) -> None:
        self._is_lost = True
        self._changed.set()
