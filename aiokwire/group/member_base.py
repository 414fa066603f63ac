"""What members of both protocols have in common: one driver that runs a coroutine per state, attempts with backoff,
losses, the time out of the group after max_poll_interval_ms, and the departure within a deadline.
"""

from __future__ import annotations

import enum
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import anyio
from anyio.abc import TaskGroup

from aiokwire._text import printable
from aiokwire.cluster import Client, Cluster, failure_level
from aiokwire.errors import KafkaError, is_transient
from aiokwire.group.commit_gate import CommitGate
from aiokwire.group.coordinator_client import CoordinatorClient
from aiokwire.group.heartbeat_thread import BuildHeartbeat
from aiokwire.group.heartbeats import HeartbeatScheduler
from aiokwire.group.membership import Host, MemberOptions
from aiokwire.group.state_table import Signals, StateTable
from aiokwire.group.status import MemberStatus, ProtocolState
from aiokwire.machine import Machine
from aiokwire.net import ApiVersions
from aiokwire.protocol import Request, Response
from aiokwire.types import GroupMetadata

StateT = TypeVar("StateT", bound=ProtocolState)
EventT = TypeVar("EventT", bound=enum.Enum)

logger = logging.getLogger(__name__)


class Departure(NamedTuple):
    """How to leave."""

    deadline: float  # on the loop's clock
    reason: str


class LeaveRequest(Protocol):
    """The last request of a member."""

    @property
    def member_id(self) -> str: ...

    @property
    def request(self) -> Request[Any]: ...

    def version(self, versions: ApiVersions) -> int: ...


class MemberBase(ABC, Generic[StateT, EventT]):
    """A member of a group, see `Membership`; one class per protocol extends it. Runs on the consumer's loop, in the
    task that calls `run`."""

    def __init__(
        self,
        client: Client,
        options: MemberOptions,
        host: Host,
        status: MemberStatus,
        *,
        table: StateTable[StateT, EventT],
        signals: Signals[EventT],
        steps: Mapping[StateT, Callable[[], Awaitable[EventT]]],
        join_reason: str,
    ) -> None:
        """`steps`: for each state that is not final, what the member does in it until an event ends it."""
        self.commits = CommitGate()
        self._client = client
        self._options = options
        self._host = host
        self._coordinator = CoordinatorClient(client, options.group_id, status)
        self._table = table
        self._idle_state = table.idle
        self._steps = steps
        self._machine: Machine[StateT, EventT] = Machine(
            f"group {options.group_id}",
            table.transitions,
            table.unjoined,
            on_move=lambda state: status.moved(state, self.metadata.generation),
        )
        self._signals = signals
        self._heartbeats = HeartbeatScheduler(
            client, self._coordinator, options, self, progressed_at=host.progressed_at
        )
        self._backoff = client.new_backoff()  # of attempts that failed
        self._consecutive_losses = 0  # memberships lost, and refusals, since the last stable one
        self._reason = join_reason  # of the next join
        self._woken = anyio.Event()
        self._polled = anyio.Event()
        self._departure: Departure | None = None  # set by `leave`
        self._working: anyio.CancelScope | None = None  # around the driver, while it runs
        self._ended = anyio.Event()

    # --- for the consumer ---------------------------------------------------------------------------------------------

    @property
    def state(self) -> StateT:
        return self._machine.state

    @property
    @abstractmethod
    def metadata(self) -> GroupMetadata:
        """See `Membership`."""

    def record_poll(self) -> None:
        """See `Membership`."""
        if self._machine.state is self._idle_state:
            self._polled.set()

    async def leave(self, timeout: float, *, reason: str) -> None:
        """See `Membership`."""
        if self._departure is None:
            logger.info("%s: leaving: %s", self._label, reason)
            self._departure = Departure(anyio.current_time() + timeout, reason)
            if self._working is not None:
                self._working.cancel()
        if self._working is not None:
            with anyio.move_on_after(timeout):
                await self._ended.wait()

    # --- the driver ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """See `Membership`."""
        self._client.metadata.add_listener(self._on_metadata)
        try:
            async with anyio.create_task_group() as tasks:
                self._start_tasks(tasks)
                with anyio.CancelScope() as self._working:
                    if self._departure is None:
                        await self._drive()
                if self._departure is not None:
                    await self._depart(self._departure)
                else:
                    await self._let_go()  # failed
                tasks.cancel_scope.cancel()
        finally:
            self._client.metadata.remove_listener(self._on_metadata)
            self.commits.open()
            self._ended.set()

    def _start_tasks(self, tasks: TaskGroup) -> None:
        """Start what runs beside the driver."""
        tasks.start_soon(self._heartbeats.run, name=f"heartbeats of group {self._options.group_id}")

    async def _drive(self) -> None:
        while self._machine.state not in self._table.final:
            self._fire(await self._steps[self._machine.state]())

    def _fire(self, event: EventT) -> None:
        if self._machine.fire(event) not in self._table.heartbeating:
            self._heartbeats.stop()

    async def _begin(self) -> EventT:
        """UNJOINED: join; after the second loss in a row only after a pause."""
        if self._consecutive_losses > 1:
            await self._client.pause(self._backoff.next())
        return self._table.join

    async def _lose(self) -> EventT:
        """LOSING."""
        await self._let_go()
        self._consecutive_losses += 1
        return self._table.released

    async def _idle(self) -> EventT:
        """IDLE: out of the group until the application reads again."""
        self._polled = anyio.Event()
        is_expired = self._signals.has(self._table.expired)
        if is_expired:
            self._warn_of_expiry()
        reason = "max_poll_interval_ms was exceeded" if is_expired else "refused by the coordinator"
        leave = self._new_leave_request(reason)
        await self._let_go()
        await self._send_leave(leave)
        self._consecutive_losses += 1
        await self._polled.wait()
        self._reason = "reads again"
        return self._table.polled

    def _warn_of_expiry(self) -> None:
        blocked = self._coordinator.status.blocked
        logger.warning(
            "%s: no record was asked for within max_poll_interval_ms=%d: leaving the group until one is; work in "
            "smaller steps, or raise the limit%s",
            self._label,
            round(self._options.max_poll_interval * 1000),
            f"; {blocked}" if blocked is not None else "",
        )

    # --- the end ------------------------------------------------------------------------------------------------------

    async def _depart(self, departure: Departure) -> None:
        """Give up all partitions, and leave, as far as the time allows."""
        self.commits.open()
        self.commits.open()
        if self._machine.state in self._table.final:
            return
        with anyio.CancelScope(deadline=departure.deadline):
            owned = self._host.owned()
            leave = self._new_leave_request(departure.reason)
            if owned and self._is_member and self._signals.terminal is None:
                await self._host.revoke(owned, departure.deadline)
            elif owned:
                await self._host.lose(owned)
            self._heartbeats.end()
            await self._send_leave(leave)
        self._heartbeats.end()
        self._forget()
        self._machine.fire(self._table.leave)

    async def _send_leave(self, leave: LeaveRequest | None) -> None:
        """Notify the coordinator, so that the others need not wait for this member's session to end."""
        if leave is None:
            return
        timeout = self._client.config.request_timeout
        try:
            await self._coordinator.request(leave.request, version=leave.version, timeout=timeout)
        except KafkaError as error:
            level = failure_level(error)
            logger.log(level, "%s: member %s could not leave: %s", self._label, printable(leave.member_id), error)

    async def _let_go(self) -> None:
        """The membership is gone, and with it the partitions."""
        self._heartbeats.stop()
        self._forget()
        owned = self._host.owned()
        if owned:
            await self._host.lose(owned)

    # --- failures -----------------------------------------------------------------------------------------------------

    async def _after_failure(self, error: KafkaError) -> EventT:
        """An attempt without a response, or with an unusable one."""
        if not is_transient(error):
            self._host.fail(error, final=False)
            return self._table.refused
        await self._pause_before_retry(f"{self._label}: {error}", failure_level(error))
        return self._table.retry

    async def _after_refusal(self, event: EventT, error: KafkaError) -> EventT:
        """The coordinator refused a request; `event` is what that leads to."""
        if event is self._table.retry:
            await self._pause_before_retry(str(error), logging.INFO)
        elif event in (self._table.refused, self._table.fenced):
            self._host.fail(error, final=event is self._table.fenced)
        else:
            logger.info("%s", error)
        return event

    async def _pause_before_retry(self, why: str, level: int) -> None:
        pause = self._backoff.next()
        logger.log(level, "%s, retrying in %.3f s", why, pause)
        await self._client.pause(pause)

    # --- events -------------------------------------------------------------------------------------------------------

    def on_expired(self) -> None:
        """See `HeartbeatSource`."""
        self._signal(self._table.expired)

    def _signal(self, event: EventT) -> None:
        """Have the driver handle `event`."""
        self._signals.add(event)
        self._woken.set()

    # --- what the protocols do differently ----------------------------------------------------------------------------

    @abstractmethod
    def next_heartbeat(self) -> BuildHeartbeat:
        """See `HeartbeatSource`."""

    @abstractmethod
    def on_heartbeat(self, content: BuildHeartbeat, outcome: Response | KafkaError) -> None:
        """See `HeartbeatSource`."""

    @abstractmethod
    def on_lookup_refused(self, error: KafkaError) -> None:
        """See `HeartbeatSource`."""

    @property
    @abstractmethod
    def _is_member(self) -> bool:
        """Whether the coordinator counts this one among the members."""

    @abstractmethod
    def _forget(self) -> None:
        """Forget the membership and its signals."""

    @abstractmethod
    def _new_leave_request(self, reason: str) -> LeaveRequest | None:
        """Return the request to leave with. None: the coordinator does not expect one."""

    @abstractmethod
    def _on_metadata(self, cluster: Cluster) -> None:
        """The metadata changed."""

    # --- helpers ------------------------------------------------------------------------------------------------------

    @property
    def _label(self) -> str:
        return f"group {self._options.group_id!r}"

    @property
    def _revocation_deadline(self) -> float:
        return anyio.current_time() + self._options.max_poll_interval
