"""The common part of members of both protocols: one driver that runs a coroutine per state, retries
with backoff, lost memberships, the idle state after max_poll_interval_ms, and leaving within a
deadline.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import anyio
from anyio.abc import TaskGroup

from aiokwire._text import printable
from aiokwire.clock import loop_time
from aiokwire.cluster import Client, Cluster, failure_level
from aiokwire.errors import BrokerError, KafkaError, error_for, is_disk_error, is_transient
from aiokwire.group.commit_gate import CommitGate
from aiokwire.group.coordinator_client import CoordinatorClient
from aiokwire.group.heartbeats import HeartbeatScheduler, HeartbeatSource
from aiokwire.group.membership import Host, MemberOptions
from aiokwire.group.state_table import MemberEvent, Signals, StateTable
from aiokwire.group.status import MemberStatus, ProtocolState
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.machine import Machine
from aiokwire.net import ApiVersions
from aiokwire.protocol import Request
from aiokwire.types import GroupMetadata

StateT = TypeVar("StateT", bound=ProtocolState)

logger: FieldLogger = get_logger(__name__)

WARNED_ATTEMPT = 10  # consecutive attempts: about 6 seconds with the default backoff


class Departure(NamedTuple):
    """The call of `leave`."""

    deadline: float  # on the loop's clock
    reason: str


class LeaveRequest(NamedTuple):
    """The last request of a member."""

    member_id: str
    request: Request[Any]
    version: Callable[[ApiVersions], int] | None = None  # None: the newest


class MemberBase(HeartbeatSource, Generic[StateT]):
    """A member of a group, see `Membership`; one subclass per protocol. Runs on the consumer's
    loop, in the task that calls `run`."""

    def __init__(
        self,
        client: Client,
        options: MemberOptions,
        host: Host,
        status: MemberStatus,
        *,
        table: StateTable[StateT],
        severity: tuple[MemberEvent, ...],
        steps: Mapping[StateT, Callable[[], Awaitable[MemberEvent]]],
    ) -> None:
        """`severity`: the order of `Signals`. `steps`: the coroutine of each state that is neither
        final nor one of `StateTable`; it runs until an event ends the state."""
        self.commits: CommitGate = CommitGate()
        self._client = client
        self._options = options
        self._log = logger.bound(client_id=client.config.client_id, group_id=options.group_id)
        self._host = host
        self._coordinator = CoordinatorClient(client, options.group_id, status)
        self._table = table
        self._idle_state = table.idle
        self._steps = {table.unjoined: self._begin, table.losing: self._lose, table.idle: self._idle, **steps}
        self._machine: Machine[StateT, MemberEvent] = Machine(
            f"group {options.group_id}",
            table.transitions,
            table.unjoined,
            on_move=lambda state: status.moved(state, self.metadata.generation),
        )
        self._signals = Signals(severity)
        self._heartbeats = HeartbeatScheduler(
            client, self._coordinator, options, self, progressed_at=host.progressed_at
        )
        self._backoff = client.new_backoff()  # between failed attempts
        self._consecutive_losses = 0  # lost memberships and refusals since the last stable one
        self._reason = "a new member"  # of the next join
        self._refusal: KafkaError | None = None  # to raise in the application when IDLE begins
        self._unsent_leave: LeaveRequest | None = None  # while IDLE begins
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
    def metadata(self) -> GroupMetadata:
        """See `Membership`. Without a generation and a member id while it is not a member."""
        if self._is_member:
            return self._identity
        return GroupMetadata(self._options.group_id, -1, "", self._options.instance_id)

    def record_poll(self) -> None:
        """See `Membership`."""
        if self._machine.state is self._idle_state:
            self._polled.set()

    async def leave(self, timeout: float, *, reason: str) -> None:
        """See `Membership`."""
        if self._departure is None:
            log = self._log.bound(member_id=self._identity.member_id or None)
            log.info("%s: %s is leaving: %s", self._label, printable(self._identity.member_id or "a member"), reason)
            self._departure = Departure(loop_time() + timeout, reason)
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
        """Start the tasks that run alongside the driver."""
        tasks.start_soon(self._heartbeats.run, name=f"heartbeats of group {self._options.group_id}")

    async def _drive(self) -> None:
        while self._machine.state not in self._table.final:
            self._fire(await self._steps[self._machine.state]())

    def _fire(self, event: MemberEvent) -> None:
        if self._machine.fire(event) not in self._table.heartbeating:
            self._heartbeats.stop()

    async def _begin(self) -> MemberEvent:
        """UNJOINED: join, after the second consecutive loss with a pause."""
        self._refusal = None
        if self._consecutive_losses > 1:
            await self._client.pause(self._backoff.next())
        return MemberEvent.JOIN

    async def _lose(self) -> MemberEvent:
        """LOSING: release the partitions."""
        await self._let_go()
        self._consecutive_losses += 1
        return MemberEvent.RELEASED

    async def _idle(self) -> MemberEvent:
        """IDLE: leave the group until the application reads again."""
        self._polled = anyio.Event()
        if self._refusal is not None:
            self._host.fail(self._refusal, final=False)
            self._refusal = None
        is_expired = self._signals.has(MemberEvent.EXPIRED)
        if is_expired:
            self._warn_of_expiry()
        reason = "max_poll_interval_ms was exceeded" if is_expired else "refused by the coordinator"
        leave = self._unsent_leave = self._new_leave_request(reason)
        await self._let_go()
        await self._send_leave(leave)
        self._consecutive_losses += 1
        await self._polled.wait()
        self._reason = "reads again"
        return MemberEvent.POLLED

    def _warn_of_expiry(self) -> None:
        blocked = self._coordinator.status.blocked
        self._log.warning(
            "%s: no record was requested within max_poll_interval_ms=%d: leaving the group until the next read; "
            "process records in smaller steps, or raise the limit%s",
            self._label,
            round(self._options.max_poll_interval * 1000),
            f"; {blocked}" if blocked is not None else "",
        )

    # --- leaving ------------------------------------------------------------------------------------------------------

    async def _depart(self, departure: Departure) -> None:
        """Give up all partitions and leave, within the deadline."""
        self.commits.open()
        if self._machine.state in self._table.final:
            return
        with anyio.CancelScope(deadline=departure.deadline):
            owned = self._host.owned()
            leave = self._unsent_leave or self._new_leave_request(departure.reason)
            if owned and self._is_member and self._signals.terminal is None:
                await self._host.revoke(owned, departure.deadline)
            elif owned:
                await self._host.lose(owned)
            self._heartbeats.end()
            await self._send_leave(leave)
        self._heartbeats.end()
        self._forget()
        self._machine.fire(MemberEvent.LEAVE)

    async def _send_leave(self, leave: LeaveRequest | None) -> None:
        """Notify the coordinator, so that the group does not wait for the session to end."""
        if leave is None:
            return
        timeout = self._client.config.request_timeout
        try:
            await self._coordinator.request(leave.request, version=leave.version, timeout=timeout)
        except KafkaError as error:
            level = failure_level(error)
            self._log.log(level, "%s: member %s could not leave: %s", self._label, printable(leave.member_id), error)
        self._unsent_leave = None

    async def _let_go(self) -> None:
        """Forget the membership and lose its partitions."""
        self._heartbeats.stop()
        self._forget()
        owned = self._host.owned()
        if owned:
            await self._host.lose(owned)

    # --- failures -----------------------------------------------------------------------------------------------------

    async def _after_failure(self, error: KafkaError) -> MemberEvent:
        """Handle an attempt without a response, or with an unusable one."""
        if not is_transient(error):
            self._report(MemberEvent.REFUSED, error)
            return MemberEvent.REFUSED
        await self._pause_before_retry(error, f"{self._label}: {error}", failure_level(error))
        return MemberEvent.RETRY

    async def _after_refusal(self, event: MemberEvent, error: KafkaError) -> MemberEvent:
        """Handle a refused join or sync. `event`: the event to return."""
        if event is MemberEvent.RETRY:
            await self._pause_before_retry(error, str(error), logging.INFO)
        else:
            self._report(event, error)
        return event

    async def _pause_before_retry(self, error: KafkaError, why: str, level: int) -> None:
        """Log `why` and pause. Until the next success one line is a WARNING: of the first disk
        error, or of a late refusal."""
        pause = self._backoff.next()
        is_lasting = self._backoff.attempts == WARNED_ATTEMPT and level == logging.INFO
        if (is_disk_error(error) or is_lasting) and self._backoff.take_warning():
            level = logging.WARNING
        self._log.log(level, "%s, retrying in %.3f s", why, pause)
        await self._client.pause(pause)

    def _end_by(self, event: MemberEvent, code: int, request: str, message: str | None = None) -> None:
        """Handle a refused heartbeat or commit that ends the generation or epoch."""
        self._report(event, self._error(code, request, message))
        self._signal(event)

    def _report(self, event: MemberEvent, error: KafkaError) -> None:
        """Raise an error in the application if only the application can resolve it; log others.
        After a refusal the next read joins again: the error is raised when the member can notice
        that read, in IDLE."""
        if event is MemberEvent.FENCED:
            self._host.fail(error, final=True)
        elif event is MemberEvent.REFUSED:
            self._refusal = error
        else:
            self._log.info("%s", error)

    def _error(self, code: int, request: str, message: str | None = None) -> BrokerError:
        """Return the error for a code. `message`: the coordinator's explanation."""
        details = f" ({message})" if message else ""
        who = f"{self._label}: {request} as member {self._identity.member_id!r}"
        return error_for(code, f"{who}{details}", request=request)

    def _after_commit_error(self, event: MemberEvent | None, code: int, group: GroupMetadata) -> bool:
        """See `Membership.refused`. `event`: what the code leads to."""
        if event is None:
            return False
        now = self.metadata
        if (group.generation, group.member_id) != (now.generation, now.member_id):
            return now.generation >= 0  # in a newer generation already
        self._end_by(event, code, "OffsetCommit")
        return event is MemberEvent.REBALANCE

    # --- events -------------------------------------------------------------------------------------------------------

    def on_expired(self) -> None:
        """See `HeartbeatSource`."""
        self._signal(MemberEvent.EXPIRED)

    def _signal(self, event: MemberEvent) -> None:
        """Have the driver handle `event`."""
        self._signals.add(event)
        self._woken.set()

    # --- differences between the protocols, besides the contents of heartbeats ----------------------------------------

    @property
    @abstractmethod
    def _identity(self) -> GroupMetadata:
        """The member id and generation (or epoch) of the next request."""

    @property
    @abstractmethod
    def _is_member(self) -> bool:
        """Whether this member has a generation (or epoch)."""

    @abstractmethod
    def _forget(self) -> None:
        """Forget the membership and its signals."""

    @abstractmethod
    def _new_leave_request(self, reason: str) -> LeaveRequest | None:
        """Return the request to leave with; None if the coordinator does not expect one."""

    @abstractmethod
    def _on_metadata(self, cluster: Cluster) -> None:
        """Handle changed metadata."""

    # --- helpers ------------------------------------------------------------------------------------------------------

    @property
    def _label(self) -> str:
        return f"group {self._options.group_id!r}"

    @property
    def _revocation_deadline(self) -> float:
        return loop_time() + self._options.rebalance_timeout
