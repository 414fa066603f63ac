"""The heartbeats of a member of the consumer protocol. `HeartbeatThread` sends them; this module decides where to
and until when.

The member supplies their contents and receives the outcomes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import anyio

from aiokwire.cluster import Client
from aiokwire.errors import BrokerError, ConnectionFailed, KafkaError, RequestTimedOut
from aiokwire.group.classic.decisions import MOVED
from aiokwire.group.consumer_protocol.requests import Saying
from aiokwire.group.coordinator_client import CoordinatorClient
from aiokwire.group.heartbeat_thread import Beat, HeartbeatThread
from aiokwire.group.membership import MemberOptions
from aiokwire.group.poll_interval import LOOK, PollIntervalCheck
from aiokwire.net import Address
from aiokwire.protocol import Response


class Speaker(Protocol):
    """The member: whoever has something to say."""

    def next_saying(self) -> Saying:
        """What the next heartbeat says."""

    def on_answer(self, saying: Saying, outcome: Response | KafkaError) -> None:
        """What came of one."""

    def on_expired(self) -> None:
        """The application made no progress for max_poll_interval_ms: heartbeats have ended."""


class Beats:
    """Beats while it is told to."""

    def __init__(
        self,
        client: Client,
        link: CoordinatorClient,
        options: MemberOptions,
        speaker: Speaker,
        *,
        progressed_at: Callable[[float], float],
    ) -> None:
        """`progressed_at`: when the application made progress, given the time."""
        self._client = client
        self._link = link
        self._options = options
        self._speaker = speaker
        self._pulse = HeartbeatThread(client, self._on_outcome, on_blocked=link.status.on_blocked)
        self._progress = PollIntervalCheck(self._pulse, progressed_at, options.max_poll_interval)
        self._interval: float | None = None  # seconds; None: not to beat
        self._target: tuple[int, Address] | None = None  # the coordinator; None: it has to be looked up
        self._given: tuple[Saying, float] | None = None  # what the pulse says, how often; None: nothing in this term
        self._urgent = False  # what is to be said next should be said at once
        self._changed = anyio.Event()
        self._backoff = client.new_backoff()
        self._running: anyio.CancelScope | None = None  # around `run`

    async def start(self, interval: float) -> None:
        """Begin a term: beat, first after an interval, for the coordinator has just heard of this member. From here on
        the loop may be blocked."""
        self._interval = interval
        self._given = None
        self._urgent = False
        self._changed.set()
        if self._target is not None or await self._aim():
            self._hand_over()

    def stop(self) -> None:
        """Beat no more; what is on its way is not answered any more."""
        if self._interval is not None:
            self._interval = None
            self._pulse.stop()
            self._changed.set()

    def say(self) -> None:
        """There is something to say, at once."""
        self._urgent = True
        self._changed.set()

    def speed_up(self) -> None:
        """The group is changing: beat more often for a while."""
        self._pulse.speed_up()

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
        """Find the coordinator when it is lost; hand over what is to be said; notice when the application stops."""
        while True:
            self._changed = anyio.Event()
            if self._interval is None:
                await self._changed.wait()
                continue
            left = self._progress.look()
            if left <= 0:
                self.stop()
                self._speaker.on_expired()
                continue
            if self._target is None and not await self._aim():
                left = min(left, self._backoff.next())
            elif self._interval is not None:
                self._hand_over()
            with anyio.move_on_after(min(left, LOOK)):
                await self._changed.wait()

    async def _aim(self) -> bool:
        """Find the coordinator; False when it could not be found now."""
        try:
            self._target = await self._link.find(self._options.session_timeout)
        except KafkaError as error:
            if not isinstance(error, (ConnectionFailed, RequestTimedOut, BrokerError)):
                raise
            return False
        self._backoff.reset()
        self._changed.set()  # what is to be said may have changed meanwhile
        return True

    def _hand_over(self) -> None:
        """Have the pulse say what is to be said now."""
        saying = self._speaker.next_saying()
        if self._target is None or self._interval is None:
            return
        given = (saying, self._interval)
        if not self._urgent and given == self._given:
            return
        node_id, address = self._target
        beat = Beat(
            node_id=node_id,
            address=address,
            build=saying,
            interval=self._interval,
            timeout=min(self._client.config.request_timeout, self._options.session_timeout / 2),
            patience=self._options.max_poll_interval,
            eager=True,  # what one member gives up reaches the next with the answers to heartbeats of both
        )
        begins, self._given = self._given is None, given
        now, self._urgent = self._urgent, False
        if begins:
            self._pulse.start(beat, now=now)
        else:
            self._pulse.update(beat, now=now)

    def _on_outcome(self, beat: Beat, outcome: Response | KafkaError) -> None:
        """Of a beat of this term: others are not delivered."""
        self._progress.look()
        if isinstance(outcome, KafkaError):
            self._link.lost(beat.node_id, outcome)
            self._look_up()
        elif getattr(outcome, "error_code", 0) in MOVED:
            self._link.moved()
            self._look_up()
        else:
            self._link.status.heartbeat_answered(beat.node_id)
            if (interval := getattr(outcome, "heartbeat_interval_ms", 0) / 1000) and self._interval is not None:
                self._interval = interval
        saying = beat.build
        assert isinstance(saying, Saying)
        self._speaker.on_answer(saying, outcome)
        self._changed.set()

    def _look_up(self) -> None:
        """The pulse tries again by itself, at the same place, until it is told of another one."""
        self._target = None
        self._urgent = True
        self._changed.set()
