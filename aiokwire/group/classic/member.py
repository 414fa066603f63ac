"""A member of a group that speaks the classic protocol: one coroutine per state, one driver that moves it.

states   the table               classic_requests  bytes            leading     what the leader does
decisions  codes and partitions  link              one attempt      heartbeats  while a generation lasts
strategy   which assignors are offered, and what becomes of partitions when another one is chosen
"""

from __future__ import annotations

import logging

import anyio

from aiokwire._text import printable
from aiokwire.cluster import JOIN, Client, Cluster
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import KafkaError, error_for
from aiokwire.group.assignors import Assignor
from aiokwire.group.classic import decisions
from aiokwire.group.classic.generation import Generation, watch
from aiokwire.group.classic.heartbeats import Heartbeats
from aiokwire.group.classic.incompatibility import explain
from aiokwire.group.classic.leader import know_topics, nothing_for, share_out, subscriptions
from aiokwire.group.classic.member_id import MemberId
from aiokwire.group.classic.requests import Identity, Leaving, heartbeat_request, join_request, sync_request
from aiokwire.group.classic.states import (
    FINAL,
    HEARTBEATING,
    JOINING,
    TRANSITIONS,
    ClassicProtocolEvent,
    ClassicProtocolState,
)
from aiokwire.group.commit_gate import CommitGate
from aiokwire.group.coordinator_client import CoordinatorClient, is_passing
from aiokwire.group.interruption import Interruption
from aiokwire.group.life import Departure, Life
from aiokwire.group.membership import Host, MemberOptions
from aiokwire.group.status import MemberStatus
from aiokwire.group.subscription_format import decode_assignment
from aiokwire.machine import Machine
from aiokwire.protocol.messages.join_group import JoinGroupResponse
from aiokwire.types import GroupMetadata, TopicPartition

logger = logging.getLogger(__name__)

# A join is answered when the last member has come or its time is over; the answer may take a little longer.
ANSWER_SLACK = 5.0  # seconds (Java: JOIN_GROUP_TIMEOUT_LAPSE)


class ClassicMember:
    """See `Membership`."""

    def __init__(self, client: Client, options: MemberOptions, host: Host, status: MemberStatus) -> None:
        self.commits = CommitGate()
        self._client = client
        self._options = options
        self._host = host
        self._link = CoordinatorClient(client, options.group_id, status)
        self._machine: Machine[ClassicProtocolState, ClassicProtocolEvent] = Machine(
            f"group {options.group_id}",
            TRANSITIONS,
            ClassicProtocolState.UNJOINED,
            on_move=lambda state: status.moved(state, self.metadata.generation),
        )
        self._strategy = options.strategy
        self._offered = options.strategy.assignors  # in the last join
        self._must_revoke = False  # everything, before the next join: only eager assignors would do
        self._signals = decisions.Signals()
        self._waiting = Interruption()  # for the answer to a JoinGroup or SyncGroup
        self._heartbeats = Heartbeats(
            client, self._link, options, progressed_at=host.progressed_at, signal=self._on_heartbeat
        )
        self._topics: frozenset[str] = frozenset()  # subscribed to
        self._id = MemberId()
        self._generation: Generation | None = None
        self._assigned: list[TopicPartition] = []  # by the last SyncGroup
        self._reason = "a new member"  # why it joins
        self._backoff = client.new_backoff()  # of attempts that failed
        self._consecutive_losses = 0  # generations lost, and refusals, since one was stable
        self._woken = anyio.Event()
        self._polled = anyio.Event()
        self._life = Life()
        self._steps = {
            ClassicProtocolState.UNJOINED: self._begin,
            ClassicProtocolState.PREPARING_REBALANCE: self._join,
            ClassicProtocolState.COMPLETING_REBALANCE: self._sync,
            ClassicProtocolState.RECONCILING: self._reconcile,
            ClassicProtocolState.STABLE: self._stay,
            ClassicProtocolState.REVOKING: self._revoke,
            ClassicProtocolState.LOSING: self._lose,
            ClassicProtocolState.IDLE: self._idle,
        }

    # --- told by the consumer -----------------------------------------------------------------------------------------

    @property
    def state(self) -> ClassicProtocolState:
        return self._machine.state

    @property
    def metadata(self) -> GroupMetadata:
        """Without a generation while it has none."""
        member_id = "" if self._generation is None else self._id.current
        return GroupMetadata(self._options.group_id, self._generation_number, member_id, self._options.instance_id)

    def subscribe(self, topics: frozenset[str]) -> None:
        """See `Membership`."""
        self._topics = topics
        self._woken.set()

    def record_poll(self) -> None:
        """See `Membership`."""
        if self._machine.state is ClassicProtocolState.IDLE:
            self._polled.set()

    def rejoin(self, reason: str) -> None:
        """See `Membership`."""
        self._reason = reason
        self._signal(ClassicProtocolEvent.REBALANCE)

    def refused(self, code: int, group: GroupMetadata) -> bool:
        """See `Membership`."""
        event = decisions.on_commit_error(code)
        if event is None:
            return False
        now = self.metadata
        if (group.generation, group.member_id) != (now.generation, now.member_id):
            return now.generation >= 0  # it is in a newer generation already
        self._forget_id(code)
        self._tell_if_fenced(event, code, "OffsetCommit")
        self._signal(event)
        return event is ClassicProtocolEvent.REBALANCE

    async def leave(self, timeout: float, *, reason: str) -> None:
        """See `Membership`."""
        await self._life.leave(timeout, reason)

    # --- the driver ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """See `Membership`."""
        self._client.metadata.add_listener(self._on_metadata)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._heartbeats.run, name=f"heartbeats of group {self._options.group_id}")
                tasks.start_soon(self._look_around, name=f"topics of group {self._options.group_id}")
                await self._life.work(self._drive)
                self._heartbeats.end()
                if self._life.departure is not None:
                    await self._depart(self._life.departure)
                else:
                    await self._let_go()  # failed
                tasks.cancel_scope.cancel()
        finally:
            self._client.metadata.remove_listener(self._on_metadata)
            self.commits.open()
            self._life.end()

    async def _drive(self) -> None:
        while self._machine.state not in FINAL:
            event = await self._steps[self._machine.state]()
            self._fire(event)

    def _fire(self, event: ClassicProtocolEvent) -> None:
        state = self._machine.fire(event)
        if state not in JOINING:
            self.commits.open()
        if state not in HEARTBEATING:
            self._heartbeats.stop()

    async def _begin(self) -> ClassicProtocolEvent:
        """UNJOINED: join; after the second loss in a row only after a pause."""
        self._generation = None
        if self._consecutive_losses > 1:
            await self._client.pause(self._backoff.next())
        return ClassicProtocolEvent.JOIN

    async def _join(self) -> ClassicProtocolEvent:
        """PREPARING_REBALANCE."""
        options = self._options
        await self.commits.close(options.session_timeout / 2)
        self._signals.clear()
        topics, owned = self._topics, self._host.owned()
        self._offered = self._strategy.offered(self._assignor, owns=bool(owned))
        request = join_request(
            self._identity,
            self._strategy.encode(self._offered, topics, owned, self._generation_number, options.rack_id),
            session_timeout=options.session_timeout,
            rebalance_timeout=options.max_poll_interval,
            reason=self._reason,
        )
        try:
            answer = await self._waiting.unless(self._link.ask(request, lane=JOIN, timeout=self._patience))
        except KafkaError as error:
            self._id.moved()  # perhaps the coordinator restarts
            return await self._after_failure(error)
        if answer is None:
            return self._ended
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._id.given(answer.member_id)
            return ClassicProtocolEvent.RETRY
        if code := answer.error_code:
            if code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
                return await self._after_incompatibility(code)
            event = await self._after_refusal(decisions.on_join_error(code), code, "JoinGroup")
            if code in decisions.RELOADED:
                self._id.moved()
            return event
        return self._on_joined(answer, topics)

    def _on_joined(self, answer: JoinGroupResponse, topics: frozenset[str]) -> ClassicProtocolEvent:
        self._id.given(answer.member_id)
        assignor = next((each for each in self._offered if each.name == answer.protocol_name), None)
        if assignor is None:
            self._refuse(
                KafkaError(f"{self._who}: the coordinator chose {answer.protocol_name!r}, which was not offered")
            )
            return ClassicProtocolEvent.REFUSED
        is_leader = answer.leader == answer.member_id
        yields = self._strategy.is_auto and not assignor.cooperative and bool(self._host.owned())
        if yields and not is_leader and (self._generation is None or answer.leader != self._generation.leader):
            logger.warning("%s: a new leader assigns by %r what this member owns", self._who, assignor.name)
            return ClassicProtocolEvent.LOST
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
        self._link.status.members = len(answer.members) if is_leader else None
        self._must_revoke = False
        self._strategy.warn_of(assignor, self._who)
        logger.info(
            "%s: joined generation %d as %s%s",
            self._who,
            generation.number,
            printable(self._id.current),
            " (leader)" * is_leader,
        )
        self._heartbeats.start(heartbeat_request(self._identity, generation.number))
        return ClassicProtocolEvent.JOINED

    async def _sync(self) -> ClassicProtocolEvent:
        """COMPLETING_REBALANCE."""
        generation = self._generation
        assert generation is not None
        if (gone := self._signals.terminal) is not None:
            return gone
        try:
            assignments = await self._assignments(generation)
            request = sync_request(self._identity, generation.number, generation.assignor.name, assignments)
            answer = await self._waiting.unless(self._link.ask(request, lane=JOIN, timeout=self._patience))
            if answer is None:
                return self._ended
            if answer.error_code:
                return await self._after_refusal(
                    decisions.on_sync_error(answer.error_code), answer.error_code, "SyncGroup"
                )
            self._assigned, _ = decode_assignment(bytes(answer.assignment))
        except KafkaError as error:
            return await self._after_failure(error)
        self._id.settled()
        self._backoff.reset()
        return self._signals.terminal or ClassicProtocolEvent.SYNCED

    async def _assignments(self, generation: Generation) -> dict[str, bytes]:
        """The leader's decision; empty for everybody else."""
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

    async def _reconcile(self) -> ClassicProtocolEvent:
        """RECONCILING: from what is owned to what was assigned."""
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
            self._reason = "gave up partitions that others are to have"
            return ClassicProtocolEvent.REBALANCE
        if self._strategy.should_offer_more(generation.assignor, self._offered):
            self._reason = "offers eager assignors again"
            return ClassicProtocolEvent.REBALANCE
        return ClassicProtocolEvent.SETTLED

    async def _stay(self) -> ClassicProtocolEvent:
        """STABLE: until something happens."""
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
                return ClassicProtocolEvent.REBALANCE
            await self._woken.wait()

    async def _revoke(self) -> ClassicProtocolEvent:
        """REVOKING: what must not be kept while the group rebalances."""
        keeps = not self._must_revoke and self._strategy.is_cooperative(self._assignor)
        given_up = decisions.plan_revocation(self._host.owned(), self._topics, cooperative=keeps)
        if given_up:
            await self._host.revoke(given_up, self._revocation_deadline)
        return self._signals.terminal or ClassicProtocolEvent.REVOKED

    async def _lose(self) -> ClassicProtocolEvent:
        """LOSING."""
        await self._let_go()
        self._consecutive_losses += 1
        return ClassicProtocolEvent.RELEASED

    async def _idle(self) -> ClassicProtocolEvent:
        """IDLE: out of the group until the application reads again."""
        self._polled = anyio.Event()
        expired = self._signals.most_severe is ClassicProtocolEvent.EXPIRED
        if expired:
            logger.warning(
                "%s: no record was asked for within max_poll_interval_ms=%d: leaving the group until one is; work in "
                "smaller steps, or raise the limit%s",
                self._who,
                round(self._options.max_poll_interval * 1000),
                f"; {self._link.status.blocked}" if self._link.status.blocked is not None else "",
            )
        await self._let_go()
        await self._send_leave("max_poll_interval_ms was exceeded" if expired else "refused by the coordinator")
        self._consecutive_losses += 1
        await self._polled.wait()
        self._reason = "reads again"
        return ClassicProtocolEvent.POLLED

    # --- the end ------------------------------------------------------------------------------------------------------

    async def _depart(self, departure: Departure) -> None:
        """Give everything up, and leave, as far as the time allows."""
        self.commits.open()
        if self._machine.state in FINAL:
            return
        with anyio.CancelScope(deadline=departure.deadline):
            owned = self._host.owned()
            if owned and self._generation is not None and self._signals.terminal is None:
                await self._host.revoke(owned, departure.deadline)
            elif owned:
                await self._host.lose(owned)
            await self._send_leave(departure.reason)
        self._generation = None
        self._machine.fire(ClassicProtocolEvent.LEAVE)

    async def _send_leave(self, reason: str) -> None:
        """Tell the coordinator, so that the others need not wait for this member's session to end. A static member
        stays: it is expected back."""
        if not self._id.current or self._options.instance_id is not None:
            return
        leaving = Leaving(self._identity, reason)
        member_id = self._id.left()
        try:
            await self._link.ask(leaving.request, version=leaving.version, timeout=self._client.config.request_timeout)
        except KafkaError as error:
            logger.info("%s: member %s could not leave: %s", self._who, printable(member_id), error)

    async def _let_go(self) -> None:
        """The generation is gone."""
        self._generation = None
        self._signals.clear()
        owned = self._host.owned()
        if owned:
            await self._host.lose(owned)

    # --- what went wrong ----------------------------------------------------------------------------------------------

    async def _after_failure(self, error: KafkaError) -> ClassicProtocolEvent:
        """An attempt that brought no answer, or one that cannot be used."""
        if not is_passing(error):
            self._refuse(error)
            return ClassicProtocolEvent.REFUSED
        pause = self._backoff.next()
        logger.info("%s: %s, again in %.3f s", self._who, error, pause)
        await self._client.pause(pause)
        return ClassicProtocolEvent.RETRY

    async def _after_refusal(self, event: ClassicProtocolEvent, code: int, request: str) -> ClassicProtocolEvent:
        error = error_for(code, f"{self._who}: {request} as member {self._id.current!r}", request=request)
        self._forget_id(code)
        if event is ClassicProtocolEvent.RETRY:
            pause = self._backoff.next()
            logger.info("%s, again in %.3f s", error, pause)
            await self._client.pause(pause)
        elif event is ClassicProtocolEvent.REFUSED:
            self._refuse(error)
        elif event is ClassicProtocolEvent.FENCED:
            self._host.fail(error, final=True)
        else:
            logger.info("%s", error)
        return event

    async def _after_incompatibility(self, code: int) -> ClassicProtocolEvent:
        """No assignor that was offered is one of all other members."""
        if self._offered != self._strategy.assignors and self._generation is not None:
            logger.info("%s: its members need an eager assignor: giving up all partitions before the join", self._who)
            self._must_revoke = True
            self._heartbeats.start(heartbeat_request(self._identity, self._generation.number))
            return ClassicProtocolEvent.INCOMPATIBLE
        why = await explain(self._link, self._options.group_id, self._offered)
        self._refuse(error_for(code, f"{self._who}: cannot join: {why}", request="JoinGroup"))
        return ClassicProtocolEvent.REFUSED

    def _refuse(self, error: KafkaError) -> None:
        self._host.fail(error, final=False)

    def _forget_id(self, code: int) -> None:
        if code in decisions.FORGOTTEN:
            self._id.refused()

    # --- signals ------------------------------------------------------------------------------------------------------

    def _signal(self, event: ClassicProtocolEvent) -> None:
        self._signals.add(event)
        self._woken.set()
        if self._signals.terminal is not None and self._machine.can(self._signals.terminal):
            self._waiting.end()

    def _on_heartbeat(self, event: ClassicProtocolEvent, code: int) -> None:
        if code:
            self._forget_id(code)
            logger.info("%s: a heartbeat was answered %s", self._who, ErrorCode.of(code).name)
        self._tell_if_fenced(event, code, "Heartbeat")
        self._signal(event)

    def _tell_if_fenced(self, event: ClassicProtocolEvent, code: int, request: str) -> None:
        if event is ClassicProtocolEvent.FENCED:
            self._host.fail(error_for(code, f"{self._who}: {request}", request=request), final=True)

    def _on_metadata(self, _cluster: Cluster) -> None:
        self._woken.set()

    async def _look_around(self) -> None:
        """Have topics and partitions noticed that were added."""
        while True:
            generation = self._generation
            watched = () if generation is None or generation.watch is None else generation.watch.topics
            await anyio.sleep(decisions.metadata_refresh_interval(len(watched)))
            generation = self._generation
            if generation is not None and generation.watch is not None:
                self._client.metadata.want(generation.watch.topics)
                self._client.metadata.request_update("the leader of a group looks for new partitions")

    # --- helpers ------------------------------------------------------------------------------------------------------

    @property
    def _who(self) -> str:
        return f"group {self._options.group_id!r}"

    @property
    def _identity(self) -> Identity:
        return Identity(self._options.group_id, self._id.current, self._options.instance_id)

    @property
    def _ended(self) -> ClassicProtocolEvent:
        """What ended the wait for a generation."""
        event = self._signals.terminal
        assert event is not None
        return event

    @property
    def _patience(self) -> float:
        return max(self._options.max_poll_interval + ANSWER_SLACK, self._client.config.request_timeout)

    @property
    def _revocation_deadline(self) -> float:
        return anyio.current_time() + self._options.max_poll_interval

    @property
    def _generation_number(self) -> int:
        return -1 if self._generation is None else self._generation.number

    @property
    def _assignor(self) -> Assignor | None:
        """Of the generation that it is in."""
        return None if self._generation is None else self._generation.assignor
