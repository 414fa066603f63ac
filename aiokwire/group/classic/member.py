"""A member of a group that uses the classic protocol: one coroutine per state, run by the driver in
`MemberBase`.

The coordinator chooses one member as the leader, which assigns the partitions to all members
(`leader`). `strategy` decides which assignors are offered, and which partitions are kept when
another one is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import anyio
from anyio.abc import TaskGroup

from aiokwire._text import printable
from aiokwire.clock import background_pause
from aiokwire.cluster import JOIN, Client, Cluster, failure_level
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import KafkaError
from aiokwire.group.assignors import Assignor
from aiokwire.group.classic import decisions
from aiokwire.group.classic.generation import Generation, MemberId
from aiokwire.group.classic.leader import know_topics, nothing_for, share_out, subscriptions, watch
from aiokwire.group.classic.requests import PROTOCOL_TYPE, HeartbeatContent, join_request, leave_request, sync_request
from aiokwire.group.classic.states import JOINING, TABLE, ClassicProtocolState
from aiokwire.group.coordinator_client import CoordinatorClient
from aiokwire.group.heartbeat_thread import BuildHeartbeat
from aiokwire.group.member_base import Departure, LeaveRequest, MemberBase
from aiokwire.group.membership import Host, MemberOptions, metadata_refresh_interval
from aiokwire.group.state_table import MemberEvent
from aiokwire.group.status import MemberStatus
from aiokwire.group.subscription_format import decode_assignment
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.protocol import Request, Response
from aiokwire.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from aiokwire.protocol.messages.heartbeat import HeartbeatResponse
from aiokwire.protocol.messages.join_group import JoinGroupResponse
from aiokwire.types import GroupMetadata, TopicPartition

ResponseT = TypeVar("ResponseT", bound=Response)

logger: FieldLogger = get_logger(__name__)

# The response to a join follows when all members have joined, or when the rebalance timeout is over, plus this slack.
RESPONSE_SLACK = 5.0  # seconds (Java: JOIN_GROUP_TIMEOUT_LAPSE)
_DESCRIBE_TIMEOUT: Final = 5.0  # seconds, of the request that explains incompatible assignors
_SHOWN: Final = 5  # members in that explanation


class ClassicMember(MemberBase[ClassicProtocolState]):
    """A member that uses JoinGroup, SyncGroup, Heartbeat and LeaveGroup; see `MemberBase`."""

    def __init__(self, client: Client, options: MemberOptions, host: Host, status: MemberStatus) -> None:
        super().__init__(
            client,
            options,
            host,
            status,
            table=TABLE,
            severity=decisions.SEVERITY,
            steps={
                ClassicProtocolState.PREPARING_REBALANCE: self._join,
                ClassicProtocolState.COMPLETING_REBALANCE: self._sync,
                ClassicProtocolState.RECONCILING: self._reconcile,
                ClassicProtocolState.STABLE: self._stay,
                ClassicProtocolState.REVOKING: self._revoke,
            },
        )
        self._strategy = options.strategy
        self._offered = options.strategy.assignors  # in the last join
        self._must_revoke = False  # all partitions, before the next join: the group needs an eager assignor
        self._request_scope: anyio.CancelScope | None = None  # around the last JoinGroup or SyncGroup
        self._topics: frozenset[str] = frozenset()  # the subscription
        self._id = MemberId()
        self._generation: Generation | None = None
        self._heartbeat: HeartbeatContent | None = None  # of the last generation that began
        self._assigned: list[TopicPartition] = []  # by the last SyncGroup

    # --- for the consumer ---------------------------------------------------------------------------------------------

    def subscribe(self, topics: frozenset[str]) -> None:
        """See `Membership`."""
        self._topics = topics
        self._woken.set()

    def rejoin(self, reason: str) -> None:
        """See `Membership`."""
        self._reason = reason
        self._signal(MemberEvent.REBALANCE)

    def refused(self, code: int, group: GroupMetadata) -> bool:
        """See `Membership`."""
        if self._machine.state is ClassicProtocolState.PREPARING_REBALANCE and code in decisions.GENERATION_ENDED:
            self.commits.close_early()
            return True
        return self._after_commit_error(decisions.on_commit_error(code), code, group)

    # --- the driver ---------------------------------------------------------------------------------------------------

    def _start_tasks(self, tasks: TaskGroup) -> None:
        super()._start_tasks(tasks)
        tasks.start_soon(self._refresh_metadata, name=f"topics of group {self._options.group_id}")

    def _fire(self, event: MemberEvent) -> None:
        super()._fire(event)
        if self._machine.state not in JOINING:
            self.commits.open()

    async def _begin(self) -> MemberEvent:
        self._generation = None
        return await super()._begin()

    async def _join(self) -> MemberEvent:
        """PREPARING_REBALANCE: send JoinGroup."""
        options = self._options
        await self.commits.close(options.session_timeout / 2)
        self._signals.clear()
        topics, owned = self._topics, self._host.owned()
        self._offered = self._strategy.offered(self._assignor, owns=bool(owned))
        request = join_request(
            self._identity,
            self._strategy.encode(self._offered, topics, owned, self._identity.generation, options.rack_id),
            session_timeout=options.session_timeout,
            rebalance_timeout=options.rebalance_timeout,
            reason=self._reason,
        )
        if owned and self._id.current:
            self.commits.open_early()
        try:
            answer = await self._request_join_lane(request)
        except KafkaError as error:
            self._id.moved()  # the coordinator may be restarting
            return await self._after_failure(error)
        finally:
            self.commits.close_early()
        if answer is None:
            return self._terminal
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._id.given(answer.member_id)
            return MemberEvent.RETRY
        if code := answer.error_code:
            if code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
                return await self._after_incompatibility(code)
            event = await self._after_error_code(decisions.on_join_error(code), code, "JoinGroup")
            if code in decisions.RELOADED:
                self._id.moved()
            return event
        return await self._on_joined(answer, topics)

    async def _on_joined(self, answer: JoinGroupResponse, topics: frozenset[str]) -> MemberEvent:
        self._id.given(answer.member_id)
        assignor = next((each for each in self._offered if each.name == answer.protocol_name), None)
        if assignor is None:
            return await self._after_failure(
                KafkaError(f"{self._label}: the coordinator chose {answer.protocol_name!r}, which was not offered")
            )
        is_leader = answer.leader == answer.member_id
        yields = self._strategy.is_auto and not assignor.cooperative and bool(self._host.owned())
        if yields and not is_leader and (self._generation is None or answer.leader != self._generation.leader):
            self._log.warning(
                "%s: the new leader chose the eager assignor %r: giving up this member's partitions",
                self._label,
                assignor.name,
            )
            return MemberEvent.LOST
        generation = Generation(
            answer.generation_id,
            assignor,
            topics,
            watch(self._client.cluster, topics) if is_leader else None,
            answer.members if is_leader else [],
            answer.skip_assignment,
            answer.leader,
            yields,
        )
        self._generation = generation
        self._coordinator.status.joined(len(answer.members) if is_leader else None)
        self._must_revoke = False
        self._strategy.warn_of(assignor, self._label)
        self._log.info(
            "%s: joined generation %d as %s%s",
            self._label,
            generation.number,
            printable(self._id.current),
            " (leader)" * is_leader,
            extra={"member_id": self._id.current},
        )
        await self._start_heartbeats()
        return MemberEvent.JOINED

    async def _sync(self) -> MemberEvent:
        """COMPLETING_REBALANCE: send SyncGroup."""
        generation = self._generation
        assert generation is not None
        if (gone := self._signals.terminal) is not None:
            return gone
        try:
            assignments = await self._assignments(generation)
            request = sync_request(self._identity, generation.assignor.name, assignments)
            answer = await self._request_join_lane(request)
            if answer is None:
                return self._terminal
            if answer.error_code:
                return await self._after_error_code(
                    decisions.on_sync_error(answer.error_code), answer.error_code, "SyncGroup"
                )
            self._assigned, _ = decode_assignment(bytes(answer.assignment))
        except KafkaError as error:
            return await self._after_failure(error)
        self._id.settled()
        self._backoff.reset()
        return self._signals.terminal or MemberEvent.SYNCED

    async def _request_join_lane(self, request: Request[ResponseT]) -> ResponseT | None:
        """Return the response to a JoinGroup or SyncGroup; None: a signal ended the wait."""
        timeout = max(self._options.rebalance_timeout + RESPONSE_SLACK, self._client.config.request_timeout)
        with anyio.CancelScope() as self._request_scope:
            return await self._coordinator.request(request, lane=JOIN, timeout=timeout)
        return None

    async def _assignments(self, generation: Generation) -> dict[str, bytes]:
        """Return the leader's decision; empty if this member does not lead."""
        if generation.watch is None:
            return {}
        members = subscriptions(generation.members)
        topics = {topic for member in members.values() for topic in member.topics}
        cluster = await know_topics(self._client, topics)
        self._generation = generation._replace(watch=watch(cluster, topics))
        if generation.is_given:
            return {}
        if self._strategy.must_yield(generation.assignor, members.values()):
            return nothing_for(members)
        return share_out(generation.assignor, members, cluster)

    async def _reconcile(self) -> MemberEvent:
        """RECONCILING: revoke and add partitions as assigned."""
        generation = self._generation
        assert generation is not None
        assigned = [tp for tp in self._assigned if tp.topic in self._topics and not generation.yields]
        is_cooperative = generation.yields or self._strategy.is_cooperative(generation.assignor)
        plan = decisions.plan_reconciliation(self._host.owned(), assigned, cooperative=is_cooperative)
        if plan.revoke:
            await self._host.revoke(plan.revoke, self._revocation_deadline)
            if (gone := self._signals.terminal) is not None:
                return gone
        self._strategy.on_assignment(generation.assignor, assigned, generation.number)
        await self._host.assign(plan.add)
        if (gone := self._signals.terminal) is not None:
            return gone
        if plan.rejoin:
            self._reason = "revoked partitions that other members receive"
            return MemberEvent.REBALANCE
        if self._strategy.should_offer_more(generation.assignor, self._offered):
            self._reason = "offers eager assignors again"
            return MemberEvent.REBALANCE
        return MemberEvent.SETTLED

    async def _stay(self) -> MemberEvent:
        """STABLE: wait for an event."""
        self._consecutive_losses = 0
        generation = self._generation
        assert generation is not None
        while True:
            self._woken = anyio.Event()
            event = self._signals.most_severe
            if event is not None:
                return event
            reason = generation.outdated(self._topics, self._client.cluster)
            if reason is not None:
                self._reason = reason
                return MemberEvent.REBALANCE
            await self._woken.wait()

    async def _revoke(self) -> MemberEvent:
        """REVOKING: revoke the partitions that must not be kept while the group rebalances."""
        keeps = not self._must_revoke and self._strategy.is_cooperative(self._assignor)
        revoked = decisions.plan_revocation(self._host.owned(), self._topics, cooperative=keeps)
        if revoked:
            await self._host.revoke(revoked, self._revocation_deadline)
        return self._signals.terminal or MemberEvent.REVOKED

    # --- leaving ------------------------------------------------------------------------------------------------------

    async def _depart(self, departure: Departure) -> None:
        self._heartbeats.end()
        await super()._depart(departure)

    def _new_leave_request(self, reason: str) -> LeaveRequest | None:
        """A static member sends none: it stays in the group until its session ends."""
        if not self._id.current or self._options.instance_id is not None:
            return None
        return LeaveRequest(self._id.current, *leave_request(self._identity, reason))

    async def _send_leave(self, leave: LeaveRequest | None) -> None:
        if leave is not None:
            self._id.left()
        await super()._send_leave(leave)

    @property
    def _is_member(self) -> bool:
        return self._generation is not None

    def _forget(self) -> None:
        self._generation = None
        self._signals.clear()

    # --- failures -----------------------------------------------------------------------------------------------------

    async def _after_error_code(self, event: MemberEvent, code: int, request: str) -> MemberEvent:
        error = self._error(code, request)
        self._forget_id(code)
        return await self._after_refusal(event, error)

    async def _after_incompatibility(self, code: int) -> MemberEvent:
        """None of the offered assignors is supported by all other members."""
        if self._offered != self._strategy.assignors and self._generation is not None:
            self._log.info(
                "%s: the group needs an eager assignor: revoking all partitions before the join", self._label
            )
            self._must_revoke = True
            await self._start_heartbeats()
            return MemberEvent.INCOMPATIBLE
        why = await _explain_incompatibility(self._coordinator, self._options.group_id, self._offered)
        return await self._after_refusal(MemberEvent.REFUSED, self._error(code, "JoinGroup", why))

    def _forget_id(self, code: int) -> None:
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._id.refused()

    # --- heartbeats and signals ---------------------------------------------------------------------------------------

    async def _start_heartbeats(self) -> None:
        self._heartbeat = HeartbeatContent(self._identity)
        await self._heartbeats.start(self._options.heartbeat_interval)

    def next_heartbeat(self) -> BuildHeartbeat:
        """See `HeartbeatSource`."""
        assert self._heartbeat is not None
        return self._heartbeat

    def on_heartbeat(self, content: BuildHeartbeat, outcome: Response | KafkaError) -> None:
        """See `HeartbeatSource`."""
        if isinstance(outcome, KafkaError):
            self._log.log(failure_level(outcome), "%s: heartbeat failed: %s", self._label, outcome)
            return
        assert isinstance(outcome, HeartbeatResponse)
        event = decisions.on_heartbeat_error(outcome.error_code)
        if event is not None:
            self._end_by(event, outcome.error_code, "Heartbeat")

    def on_refused(self, error: KafkaError) -> None:
        """See `HeartbeatSource`. The next join meets the error again and reports it."""
        self._signal(MemberEvent.REBALANCE)

    def _end_by(self, event: MemberEvent, code: int, request: str, message: str | None = None) -> None:
        super()._end_by(event, code, request, message)
        self._forget_id(code)

    def _signal(self, event: MemberEvent) -> None:
        super()._signal(event)
        terminal = self._signals.terminal
        if terminal is not None and self._machine.can(terminal) and self._request_scope is not None:
            self._request_scope.cancel()

    def _on_metadata(self, _cluster: Cluster) -> None:
        self._woken.set()

    async def _refresh_metadata(self) -> None:
        """Look for new topics and partitions while this member leads."""
        while True:
            generation = self._generation
            watched = () if generation is None or generation.watch is None else generation.watch.topics
            await anyio.sleep(background_pause(metadata_refresh_interval(len(watched))))
            generation = self._generation
            if generation is not None and generation.watch is not None:
                self._client.metadata.want(generation.watch.topics)
                self._client.metadata.request_update("the leader of a group looks for new partitions")

    # --- helpers ------------------------------------------------------------------------------------------------------

    @property
    def _identity(self) -> GroupMetadata:
        generation = -1 if self._generation is None else self._generation.number
        return GroupMetadata(self._options.group_id, generation, self._id.current, self._options.instance_id)

    @property
    def _terminal(self) -> MemberEvent:
        """The event that ended the wait for a generation."""
        event = self._signals.terminal
        assert event is not None
        return event

    @property
    def _assignor(self) -> Assignor | None:
        """The assignor of the current generation."""
        return None if self._generation is None else self._generation.assignor


async def _explain_incompatibility(coordinator: CoordinatorClient, group_id: str, offered: Sequence[Assignor]) -> str:
    """Explain INCONSISTENT_GROUP_PROTOCOL: the assignors offered and in use, and what to change.

    Sends one request to the coordinator; a response is not required.
    """
    names = ", ".join(assignor.name for assignor in offered)
    try:
        answer = await coordinator.request(DescribeGroupsRequest(groups=[group_id]), timeout=_DESCRIBE_TIMEOUT)
    except KafkaError:
        answer = None
    group = answer.groups[0] if answer is not None and answer.groups else None
    return f"this member offers {names}; {_found(group)}"


def _found(group: DescribedGroup | None) -> str:
    change = 'set partition_assignment_strategy="auto", or an assignor that all members have'
    if group is None or group.error_code or not group.members:
        return f"the assignors of the other members are not known; {change}"
    members = ", ".join(f"{member.client_id!r} at {member.client_host}" for member in group.members[:_SHOWN])
    more = f" and {len(group.members) - _SHOWN} more" if len(group.members) > _SHOWN else ""
    if group.protocol_type not in ("", PROTOCOL_TYPE):
        return (
            f"the group has members of the type {group.protocol_type!r} ({members}{more}), which share no partitions "
            "with consumers; choose another group_id"
        )
    used = f"use {group.protocol_data!r}" if group.protocol_data else "are in a rebalance"
    return f"the group's members ({members}{more}) {used}; {change}"
