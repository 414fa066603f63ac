"""The tasks that fetch: two per broker, one for each lane, each with at most one fetch in flight.

They own only the requests in flight. `fetch_plan` decides what to fetch, `fetch_handler` applies a
response, `positions` has the state of each partition, and `fetch_buffer` holds the fetched batches.

    plan -> send -> handle -> plan ...        (run_lane)
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Final, Self

import anyio
import anyio.abc

from aiokwire.backoff import Backoff
from aiokwire.cluster import Client, failure_level
from aiokwire.consumer.config import ConsumerConfig
from aiokwire.consumer.fetch_handler import FetchHandler, RespondingNode
from aiokwire.consumer.fetch_plan import FetchPlan, Lane, Limits, Memory, next_retry, plan_fetch
from aiokwire.consumer.fetch_responses import fetch_request
from aiokwire.consumer.fetch_session import (
    FIRST_VERSION,
    FIRST_VERSION_WITH_IDS,
    SESSION_ERRORS,
    FetchSession,
    closing_turn,
    plan_turn,
    session_after,
)
from aiokwire.consumer.health import Source
from aiokwire.consumer.hooks_adapter import ConsumerHooks
from aiokwire.consumer.positions import PartitionState, rack_for
from aiokwire.consumer.reader import Reader
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import KafkaError, RequestTimedOut, error_for, is_transient
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.net import Connection
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import fetch
from aiokwire.types import TopicPartition

logger: FieldLogger = get_logger(__name__)

# A fetch counts as unanswered this long (seconds) after the broker should have sent its response.
SLOW_RESPONSE: Final = 5.0
# A response is overdue this long (seconds) after the broker should have sent it.
OVERDUE: Final = 1.0
FIRST_BOUNDED_VERSION: Final = 3  # the whole response has a limit, and a first batch is returned whole (KIP-74)


class BrokerLane:
    """One lane to one broker. Only its own task writes it, except through `wake`."""

    def __init__(self, node_id: int, main: BrokerLane | None, backoff: Backoff) -> None:
        self.node_id = node_id
        self.lane = Lane.MAIN if main is None else Lane.SIDE
        self.main: BrokerLane = self if main is None else main
        self.ended = False  # the broker serves none of our partitions any more; written by `regroup`
        self.plan: FetchPlan | None = None  # the fetch in flight
        self.bounded = True  # see FIRST_BOUNDED_VERSION; by the versions of the last connection
        self.silent_until: float = 0.0  # after a failure, on the loop's clock
        self.backoff = backoff
        self.session: FetchSession = FetchSession()
        self.connection: Connection | None = None  # on which the session started
        self.last_error = ""  # why the last fetch of either lane failed; empty if it succeeded; kept by the main lane
        self.asked_at: float = 0.0  # when the fetch in flight was sent, on the loop's clock
        self.is_overdue = False  # the broker should have responded to it
        self._woken = anyio.Event()

    def wake(self) -> None:
        """Plan again: a partition may be fetchable now."""
        self._woken.set()

    async def sleep(self, until: float) -> None:
        """Sleep until woken, or until `until` on the loop's clock."""
        with anyio.CancelScope(deadline=until):
            await self._woken.wait()

    def begin(self) -> None:
        """Reset the wake-up flag; a later `wake` ends the next `sleep`."""
        if self._woken.is_set():
            self._woken = anyio.Event()


class OverdueTimer:
    """Calls `act` when its block's response is overdue, and every `OVERDUE` seconds after that.

    A broker that hangs, or whose network drops packets, keeps its connection open without a
    response while others take over its partitions. The request timeout is too long to detect that.
    """

    __slots__ = ("_act", "_loop", "_timer", "_wait")

    def __init__(self, wait: float, act: Callable[[], None]) -> None:
        """`wait`: seconds for which the request allows the broker to wait before it responds."""
        self._wait = wait
        self._act = act
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> Self:
        self._timer = self._loop.call_later(self._wait + OVERDUE, self._fire)
        return self

    def __exit__(self, *_exc: object) -> None:
        self._timer.cancel()

    def _fire(self) -> None:
        self._timer = self._loop.call_later(OVERDUE, self._fire)
        self._act()


class Fetcher:
    """Keeps the buffer filled."""

    def __init__(
        self,
        client: Client,
        config: ConsumerConfig,
        states: Mapping[TopicPartition, PartitionState],
        reader: Reader,
        handler: FetchHandler,
        hooks: ConsumerHooks,
    ) -> None:
        self._client = client
        self._hooks = hooks
        self._config = config
        self._log = logger.bound(client_id=config.client_id, group_id=config.group_id)
        self._isolation = config.isolation
        self._handler = handler
        self._states = states
        self._reader = reader
        self._buffer = reader.buffer
        self._limits = Limits.of(config)
        self._led: dict[int, list[PartitionState]] = {}  # by the node to fetch from; written by `regroup`
        self._lanes: dict[int, tuple[BrokerLane, BrokerLane]] = {}
        self._reserved = 0  # bytes that the fetches in flight may return
        self._starved: set[BrokerLane] = set()  # found no room, and sleep

    # --- called by other parts ----------------------------------------------------------------------------------------

    def regroup(self, tasks: anyio.abc.TaskGroup) -> None:
        """Match lanes to the assignment and its nodes: end some, start others, wake the rest."""
        led: dict[int, list[PartitionState]] = {}
        for state in self._states.values():
            node_id = state.source.node_id
            if node_id is not None:
                led.setdefault(node_id, []).append(state)
        self._led = led
        for node_id in [node_id for node_id in self._lanes if node_id not in led]:
            for lane in self._lanes.pop(node_id):
                lane.ended = True
                lane.wake()
                self._abandon_overdue(lane)
        for node_id in led:
            if node_id not in self._lanes:
                main = BrokerLane(node_id, None, self._client.new_backoff())
                self._lanes[node_id] = (main, BrokerLane(node_id, main, self._client.new_backoff()))
                for lane in self._lanes[node_id]:
                    tasks.start_soon(self.run_lane, lane, name=f"fetch from {node_id} on {lane.lane.value}")
        self.wake_all()

    def wake(self, state: PartitionState) -> None:
        """Plan again for a partition that may have become fetchable."""
        self._offer_room()
        node_id = state.source.node_id
        if node_id is None or state.attempt.in_flight:
            return  # the lane that waits for the response plans again by itself
        for lane in self._lanes.get(node_id, ()):
            if lane.plan is None:
                lane.wake()

    def _offer_room(self) -> None:
        """Wake the lanes of any broker that wait for room, if there is some: nothing else would."""
        if self._starved and self._memory().grant(self._limits):
            for lane in self._starved:
                lane.wake()
            self._starved.clear()

    def wake_all(self) -> None:
        for lanes in self._lanes.values():
            for lane in lanes:
                lane.wake()

    @property
    def in_use(self) -> int:
        """Bytes held and reserved."""
        return self._buffer.held + self._reserved

    def source_of(self, state: PartitionState) -> Source:
        """Return the state of the node that a partition is fetched from."""
        node_id = state.source.node_id
        lanes = () if node_id is None else self._lanes.get(node_id, ())
        asked = [lane.asked_at for lane in lanes if lane.plan is not None]
        return Source(
            last_error=next((lane.last_error for lane in lanes if lane.last_error), ""),
            throttled_until=0.0 if node_id is None else self._client.throttled_until(node_id),
            asked_at=min(asked, default=None),
            response_timeout=self._config.fetch_max_wait + SLOW_RESPONSE,
            has_room=self._memory().grant(self._limits) > 0,
        )

    # --- a lane -------------------------------------------------------------------------------------------------------

    async def run_lane(self, lane: BrokerLane) -> None:
        """Fetch from one broker while it serves one of our partitions."""
        try:
            await self._run_lane(lane)
        finally:
            self._starved.discard(lane)
            self._end_session(lane)
            self.wake_all()  # other lanes may wait for the memory that its last fetch had reserved

    async def _run_lane(self, lane: BrokerLane) -> None:
        clock = asyncio.get_running_loop().time
        while not lane.ended:
            lane.begin()
            throttled = self._client.throttled_until(lane.node_id)
            silent = max(lane.silent_until, throttled)
            now = clock()  # the same for plan and sleep: a retry that falls due in between would be missed
            if throttled > now:
                self._hooks.throttled(lane.node_id, throttled, now)
            if silent > now:
                await anyio.sleep_until(silent)
                continue
            plan = self._plan(lane, now)
            if plan is None:
                if self._make_room():
                    continue
                if not self._memory().grant(self._limits):
                    self._starved.add(lane)
                await lane.sleep(next_retry(self._led[lane.node_id], now))
                continue
            connection = self._client.connection_nowait(lane.node_id, lane.lane.value)
            try:
                if connection is None:
                    with OverdueTimer(0.0, lambda: self._doubt(lane)):
                        connection = await self._client.connection(lane.node_id, lane.lane.value)
                    lane.bounded = connection.versions.pick(fetch.FetchRequest) >= FIRST_BOUNDED_VERSION
                    continue  # the plan is outdated
                await self._fetch(lane, connection, plan)
                lane.backoff.reset()
                lane.main.last_error = ""
            except KafkaError as error:
                if not lane.ended:
                    self._on_failure(lane, plan, error, clock())

    def _plan(self, lane: BrokerLane, now: float) -> FetchPlan | None:
        return plan_fetch(
            self._led[lane.node_id],
            now=now,
            limits=self._limits,
            memory=self._memory(),
            lane=lane.lane,
            main=lane.main.plan,
            bounded=lane.bounded,
        )

    def _memory(self) -> Memory:
        return Memory(
            held=self._buffer.held,
            reserved=self._reserved,
            share=self._limits.share(len(self._led)),
            enough=self._limits.enough(len(self._led), len(self._states)),
            batch=self._handler.largest_batch,
        )

    def _on_failure(self, lane: BrokerLane, plan: FetchPlan, error: KafkaError, now: float) -> None:
        delay = lane.backoff.next()
        lane.main.last_error = str(error)
        lane.silent_until = now + delay
        self._client.metadata.request_update(f"fetching from node {lane.node_id}: {error}")
        if is_transient(error):
            self._handler.leave_replica([asked.state for asked in plan.asked], lane.node_id, str(error))
            level = failure_level(error)
            text = "fetching from node %d failed, retrying in %.3f s: %s"
            self._log.log(level, text, lane.node_id, delay, error, extra={"node_id": lane.node_id})
            return
        # The response cannot be read, or the refusal is final: the reader raises the error.
        for asked in plan.asked:
            if not asked.is_stale:
                self._buffer.fail(asked.state, error)

    async def _fetch(self, lane: BrokerLane, connection: Connection, plan: FetchPlan) -> None:
        cluster = self._client.cluster
        ids = {topic: cluster.topic_id(topic) or ZERO_UUID for topic in {a.state.tp.topic for a in plan.asked}}
        by_name = ZERO_UUID in ids.values()
        version = connection.versions.pick(fetch.FetchRequest, FIRST_VERSION_WITH_IDS - 1 if by_name else None)
        session = lane.session if lane.connection is connection else lane.session.restarted()
        turn = plan_turn(session, plan.asked, ids, version)
        lane.connection, lane.session = connection, session.restarted()  # until the response is there
        now = asyncio.get_running_loop().time()
        rack = rack_for((asked.state for asked in plan.asked), self._config.client_rack, now)
        request = fetch_request(plan, turn, self._isolation, ids, rack)
        response = await self._ask(lane, connection, plan, request, version)
        lane.session = session_after(session, turn, response.error_code, response.session_id)
        if response.error_code in SESSION_ERRORS and not turn.is_full:
            self._log.debug("%s: %s; starting a new session", connection.who, ErrorCode.of(response.error_code).name)
            return
        if response.error_code:
            raise error_for(response.error_code, f"Fetch from {connection.who} failed", request="Fetch")
        self._handler.handle(response, plan, ids, RespondingNode(lane.node_id, connection.who, turn.is_full))
        if lane.lane is Lane.SIDE:
            lane.main.wake()

    async def _ask(
        self, lane: BrokerLane, connection: Connection, plan: FetchPlan, request: fetch.FetchRequest, version: int
    ) -> fetch.FetchResponse:
        timeout = self._config.request_timeout + plan.max_wait
        lane.plan = plan
        lane.asked_at = asyncio.get_running_loop().time()
        self._reserved += plan.max_bytes
        for asked in plan.asked:
            asked.state.attempt.start()
        try:
            with OverdueTimer(plan.max_wait, lambda: self._on_overdue(lane)):
                return await connection.request(request, version=version, timeout=timeout)
        finally:
            lane.plan = None
            lane.is_overdue = False
            self._reserved -= plan.max_bytes
            self._offer_room()
            for asked in plan.asked:
                if not asked.is_stale:
                    asked.state.attempt.end()
                if asked.state.source.node_id != lane.node_id:
                    self.wake(asked.state)  # the lanes of its new node waited for the end of this fetch

    def _on_overdue(self, lane: BrokerLane) -> None:
        """Handle an overdue fetch: the node may hang and another already lead its partitions."""
        lane.is_overdue = True
        if not self._abandon_overdue(lane):
            self._doubt(lane)

    def _abandon_overdue(self, lane: BrokerLane) -> bool:
        """Close an overdue fetch's connection if its partitions moved; return whether it did."""
        if lane.plan is None or not lane.is_overdue:
            return False
        if any(asked.state.source.node_id == lane.node_id for asked in lane.plan.asked):
            return False
        assert lane.connection is not None
        waited = asyncio.get_running_loop().time() - lane.asked_at
        reason = f"{lane.connection.who} did not respond to a fetch within {waited:.3f} s, and its partitions moved"
        lane.connection.close(RequestTimedOut(reason))
        return True

    def _doubt(self, lane: BrokerLane) -> None:
        self._client.metadata.request_update(f"node {lane.node_id} does not respond to a fetch: it may lead no longer")

    def _end_session(self, lane: BrokerLane) -> None:
        """Close the lane's session at the broker, whose slots are limited; ignores the response.

        Sent on the main connection, since a fetch may still be in flight on the lane's own.
        """
        turn = closing_turn(lane.session)
        connection = self._client.connection_nowait(lane.node_id)
        if turn is None or connection is None:
            return
        nothing = FetchPlan(asked=(), max_bytes=0, max_wait_ms=0, min_bytes=0)
        with contextlib.suppress(KafkaError):  # best effort: the connection may already be gone
            version = connection.versions.pick(fetch.FetchRequest, None if turn.by_id else FIRST_VERSION_WITH_IDS - 1)
            if version >= FIRST_VERSION:  # the main connection may have negotiated older versions
                request = fetch_request(nothing, turn, self._isolation, {})
                connection.send(request, version=version).add_done_callback(_settle)

    def _make_room(self) -> bool:
        """Drop chunks no waiting reader wants if wanted ones lack room; return whether it did."""
        room = self._limits.memory - self.in_use
        needed = max(self._limits.partition_bytes, min(self._handler.largest_batch, self._limits.share(len(self._led))))
        reader = self._reader
        return (
            room < needed
            and self._buffer.is_awaited
            and self._buffer.current(reader.wanted) is None
            and self._buffer.shed(list(self._states.values()), reader.wanted)
        )


def _settle(answer: asyncio.Future[fetch.FetchResponse]) -> None:
    """Retrieve the error of a response that is not awaited, so that asyncio does not log it."""
    if not answer.cancelled():
        answer.exception()
