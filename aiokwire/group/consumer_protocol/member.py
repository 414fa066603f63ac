"""A member of a group that speaks the consumer protocol (KIP-848): one coroutine per state, one driver that moves it.

modern_states     the table               modern_requests  bytes     beats        when to beat
modern_decisions  codes and partitions    link      one attempt      topic_names  of what is assigned by id

The coordinator decides who reads what, and says so in answers to heartbeats; a member gives up, says so, and is given
more. Heartbeats go on from the join to the end, by a task of their own.
"""

from __future__ import annotations

import base64
import logging

import anyio

from aiokwire._text import printable
from aiokwire.cluster import Client, Cluster
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, KafkaError, UnsupportedVersion, error_for
from aiokwire.group.commit_gate import CommitGate
from aiokwire.group.consumer_protocol import decisions
from aiokwire.group.consumer_protocol.heartbeats import Beats
from aiokwire.group.consumer_protocol.requests import JOINING, Beat, Description, Parts, Place, Saying, leaving, told
from aiokwire.group.consumer_protocol.states import (
    FINAL,
    HEARTBEATING,
    TRANSITIONS,
    ConsumerProtocolEvent,
    ConsumerProtocolState,
)
from aiokwire.group.consumer_protocol.topic_names import names_of
from aiokwire.group.coordinator_client import CoordinatorClient, is_passing
from aiokwire.group.life import Life
from aiokwire.group.membership import Host, MemberOptions
from aiokwire.group.status import MemberStatus
from aiokwire.machine import Machine
from aiokwire.protocol import Response
from aiokwire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from aiokwire.types import GroupMetadata

logger = logging.getLogger(__name__)

NOTHING: Parts = frozenset()
# How often the names of assigned topics are asked for that no broker has told yet (seconds).
NAMES_INTERVAL = 1.0
LONGEST_NAMES_INTERVAL = 30.0
# How often a static member tries to join whose instance id is still somebody's (seconds).
UNRELEASED_INTERVAL = 1.0


class ConsumerProtocolMember:
    """See `Membership`."""

    def __init__(
        self, client: Client, options: MemberOptions, host: Host, status: MemberStatus, *, may_fall_back: bool = False
    ) -> None:
        """`may_fall_back`: should this protocol not be spoken to the group, `run` ends, and the host is not told."""
        self.commits = CommitGate()  # always open: commits and this protocol do not get in each other's way
        self._client = client
        self._options = options
        self._host = host
        self._link = CoordinatorClient(client, options.group_id, status)
        self._machine: Machine[ConsumerProtocolState, ConsumerProtocolEvent] = Machine(
            f"group {options.group_id}",
            TRANSITIONS,
            ConsumerProtocolState.UNJOINED,
            on_move=lambda state: status.moved(state, self.metadata.generation),
        )
        self._beats = Beats(client, self._link, options, self, progressed_at=host.progressed_at)
        # Which member this is, and what it wants.
        self._member_id = base64.urlsafe_b64encode(client.rng.randbytes(16)).decode().rstrip("=")
        self._wanted = Description(
            assignor=options.remote_assignor,
            rack_id=options.rack_id,
            rebalance_timeout_ms=round(options.max_poll_interval * 1000),
        )
        self._said: Description | None = None  # what the coordinator knows of that; None: nothing for sure
        # What the coordinator gave, and what is in force of it.
        self._epoch = JOINING  # 0 while it has none
        self._target = NOTHING
        self._held = NOTHING
        self._names: dict[bytes, str] = {}
        self._acknowledge = False  # the next heartbeat says what is held
        # What others noticed and the driver has not dealt with.
        self._pending: set[ConsumerProtocolEvent] = set()
        self._woken = anyio.Event()
        self._polled = anyio.Event()
        self._backoff = client.new_backoff()  # of joins that failed
        self._consecutive_losses = 0  # epochs lost, and refusals, since one was stable
        self._unreleased_since: float | None = None
        self._may_fall_back = may_fall_back
        self._life = Life()
        self._steps = {
            ConsumerProtocolState.UNJOINED: self._begin,
            ConsumerProtocolState.JOINING: self._join,
            ConsumerProtocolState.RECONCILING: self._reconcile,
            ConsumerProtocolState.STABLE: self._stay,
            ConsumerProtocolState.LOSING: self._lose,
            ConsumerProtocolState.IDLE: self._idle,
        }

    # --- told by the consumer -----------------------------------------------------------------------------------------

    @property
    def state(self) -> ConsumerProtocolState:
        return self._machine.state

    @property
    def metadata(self) -> GroupMetadata:
        """With the member's epoch for a generation; without one while it has none."""
        if self._epoch == JOINING:
            return GroupMetadata(self._options.group_id, -1, "", self._options.instance_id)
        return GroupMetadata(self._options.group_id, self._epoch, self._member_id, self._options.instance_id)

    def subscribe(self, topics: frozenset[str], pattern: str | None = None) -> None:
        """See `Membership`; also with a `pattern` that the coordinator matches."""
        self._wanted = self._wanted._replace(topics=topics, pattern=pattern)
        self._beats.say()

    def record_poll(self) -> None:
        """See `Membership`."""
        if self._machine.state is ConsumerProtocolState.IDLE:
            self._polled.set()

    def rejoin(self, reason: str) -> None:
        """The coordinator decides when this protocol rebalances: nothing happens."""
        logger.info("%s: only the coordinator rebalances this group (%s)", self._who, reason)

    def refused(self, code: int, group: GroupMetadata) -> bool:
        """See `Membership`."""
        now = self.metadata
        if code == ErrorCode.STALE_MEMBER_EPOCH:
            if now.generation == group.generation:
                self._beats.say()  # its answer tells the epoch
            return now.generation >= 0
        event = decisions.on_commit_error(code)
        if event is None or now.generation != group.generation:
            return event is not None and now.generation >= 0
        self._note(event, code, "OffsetCommit")
        return False

    async def leave(self, timeout: float, *, reason: str) -> None:
        """See `Membership`."""
        if self._life.departure is None:
            logger.info("%s: leaving: %s", self._who, reason)
        await self._life.leave(timeout, reason)

    # --- the driver ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """See `Membership`."""
        self._client.metadata.add_listener(self._on_metadata)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._beats.run, name=f"heartbeats of group {self._options.group_id}")
                await self._life.work(self._drive)
                if self._life.departure is not None:
                    await self._depart(self._life.departure.deadline)
                elif self.state is not ConsumerProtocolState.UNSERVED:
                    await self._let_go()  # failed
                tasks.cancel_scope.cancel()
        finally:
            self._client.metadata.remove_listener(self._on_metadata)
            self._life.end()

    async def _drive(self) -> None:
        while self._machine.state not in FINAL:
            event = await self._steps[self._machine.state]()
            if self._machine.fire(event) not in HEARTBEATING:
                self._beats.stop()

    async def _begin(self) -> ConsumerProtocolEvent:
        """UNJOINED: join; after the second loss in a row only after a pause."""
        if self._consecutive_losses > 1:
            await self._client.pause(self._backoff.next())
        return ConsumerProtocolEvent.JOIN

    async def _join(self) -> ConsumerProtocolEvent:
        """JOINING."""
        self._pending.clear()
        wanted = self._wanted
        try:
            answer = await self._ask(Beat(self._place, wanted, None, None))
        except UnsupportedVersion as error:
            return self._after_unserved(error)
        except KafkaError as error:
            return await self._after_failure(error)
        if answer.error_code:
            return await self._after_refusal(answer)
        self._said = wanted
        self._unreleased_since = None
        self._backoff.reset()
        self._take(answer)
        self._acknowledge = False
        logger.info("%s: joined as %s with epoch %d", self._who, printable(self._member_id), self._epoch)
        await self._beats.start(answer.heartbeat_interval_ms / 1000 or self._options.heartbeat_interval)
        if self._wanted != wanted:
            self._beats.say()
        return ConsumerProtocolEvent.JOINED

    async def _reconcile(self) -> ConsumerProtocolEvent:
        """RECONCILING: from what is owned to what the coordinator gave."""
        self._pending.discard(ConsumerProtocolEvent.TOLD)
        target = self._target
        self._names = await names_of(self._client, {part.topic_id for part in target})
        plan = decisions.plan_reconciliation(self._host.owned(), target, self._names)
        if plan.revoke:
            await self._host.revoke(plan.revoke, anyio.current_time() + self._options.max_poll_interval)
            self._note_held(target)
        if (event := decisions.most_severe(self._pending)) is not None:
            return event
        # From here on it has them, whatever the listener still does: should everything have to be said again meanwhile,
        # what is left out would be others' at once.
        self._held = decisions.held_of(target, self._names, self._host.owned() | plan.add)
        await self._host.assign(plan.add)
        self._note_held(target)
        return decisions.most_severe(self._pending) or ConsumerProtocolEvent.SETTLED

    async def _stay(self) -> ConsumerProtocolEvent:
        """STABLE: until something happens."""
        self._consecutive_losses = 0
        patience = NAMES_INTERVAL
        while True:
            self._woken = anyio.Event()
            if (event := decisions.most_severe(self._pending)) is not None:
                return event
            nameless = self._nameless
            with anyio.move_on_after(patience if nameless else float("inf")):
                await self._woken.wait()
                continue
            patience = min(2 * patience, LONGEST_NAMES_INTERVAL)
            if await names_of(self._client, nameless):
                return ConsumerProtocolEvent.TOLD

    async def _lose(self) -> ConsumerProtocolEvent:
        """LOSING."""
        await self._let_go()
        self._consecutive_losses += 1
        return ConsumerProtocolEvent.RELEASED

    async def _idle(self) -> ConsumerProtocolEvent:
        """IDLE: out of the group until the application reads again."""
        self._polled = anyio.Event()
        if ConsumerProtocolEvent.EXPIRED in self._pending:
            logger.warning(
                "%s: no record was asked for within max_poll_interval_ms=%d: leaving the group until one is; work in "
                "smaller steps, or raise the limit",
                self._who,
                round(self._options.max_poll_interval * 1000),
            )
        place = self._place
        await self._let_go()
        await self._send_leave(place)
        self._consecutive_losses += 1
        await self._polled.wait()
        return ConsumerProtocolEvent.POLLED

    # --- the end ------------------------------------------------------------------------------------------------------

    async def _depart(self, deadline: float) -> None:
        """Give everything up, and leave, as far as the time allows. Heartbeats go on while the listener works."""
        if self._machine.state in FINAL:
            return
        with anyio.CancelScope(deadline=deadline):
            owned, place = self._host.owned(), self._place
            gone = self._epoch == JOINING or decisions.most_severe(self._pending) not in (
                None,
                ConsumerProtocolEvent.TOLD,
            )
            if owned and not gone:
                await self._host.revoke(owned, deadline)
            elif owned:
                await self._host.lose(owned)
            self._beats.end()
            await self._send_leave(place)
        self._beats.end()
        self._forget()
        self._machine.fire(ConsumerProtocolEvent.LEAVE)

    async def _send_leave(self, place: Place) -> None:
        """Tell the coordinator, so that the others need not wait for this member's session to end."""
        if place.epoch == JOINING:
            return
        try:
            await self._link.ask(leaving(place), timeout=self._client.config.request_timeout)
        except KafkaError as error:
            logger.info("%s: member %s could not leave: %s", self._who, printable(place.member_id), error)

    async def _let_go(self) -> None:
        """The epoch is gone."""
        self._beats.stop()
        self._forget()
        owned = self._host.owned()
        if owned:
            await self._host.lose(owned)

    def _forget(self) -> None:
        self._epoch = JOINING
        self._said = None
        self._target = self._held = NOTHING
        self._pending.clear()

    # --- heartbeats ---------------------------------------------------------------------------------------------------

    def next_saying(self) -> Saying:
        """See `Speaker`."""
        says_held = self._acknowledge or self._said is None
        return Saying(self._place, self._wanted, self._said, self._held if says_held else None)

    def on_answer(self, saying: Saying, outcome: Response | KafkaError) -> None:
        """See `Speaker`."""
        if isinstance(outcome, KafkaError):
            self._said = None  # it is not known what the coordinator has read
            if is_passing(outcome):
                logger.info("%s: a heartbeat failed: %s", self._who, outcome)
            else:
                self._host.fail(outcome, final=False)
                self._signal(ConsumerProtocolEvent.REFUSED)
            return
        assert isinstance(outcome, ConsumerGroupHeartbeatResponse)
        if outcome.error_code:
            self._said = None
            event = decisions.on_heartbeat_error(outcome.error_code)
            if event is not None:
                self._note(event, outcome.error_code, "ConsumerGroupHeartbeat", outcome.error_message)
            return
        # After a heartbeat without an answer all has to be said once more: what its answer told is not told again else.
        if self._said is not None or saying.said is None:
            self._said = saying.now
        if saying.held is not None and saying.held == self._held:
            self._acknowledge = False
        self._take(outcome)

    def on_expired(self) -> None:
        """See `Speaker`."""
        self._signal(ConsumerProtocolEvent.EXPIRED)

    async def _ask(self, beat: Beat) -> ConsumerGroupHeartbeatResponse:
        return await self._link.ask(
            beat.request,
            version=beat.version,
            timeout=min(self._client.config.request_timeout, self._options.session_timeout),
        )

    def _take(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        """What a good answer tells."""
        news = told(answer, self._member_id)
        if news.epoch != self._epoch or news.assignment is not None:
            self._beats.speed_up()
        self._member_id, self._epoch = news.member_id, news.epoch
        if news.assignment is not None:
            self._target = news.assignment
            self._signal(ConsumerProtocolEvent.TOLD)

    def _note_held(self, target: Parts) -> None:
        """Have the coordinator told what of `target` is in force: it waits for that before it gives what was given up
        to others, and more to this member."""
        self._held = decisions.held_of(target, self._names, self._host.owned())
        self._acknowledge = True
        self._beats.say()

    # --- what went wrong ----------------------------------------------------------------------------------------------

    async def _after_failure(self, error: KafkaError) -> ConsumerProtocolEvent:
        """A join that brought no answer, or one that cannot be used."""
        if not is_passing(error):
            self._host.fail(error, final=False)
            return ConsumerProtocolEvent.REFUSED
        pause = self._backoff.next()
        logger.info("%s: %s, again in %.3f s", self._who, error, pause)
        await self._client.pause(pause)
        return ConsumerProtocolEvent.RETRY

    async def _after_refusal(self, answer: ConsumerGroupHeartbeatResponse) -> ConsumerProtocolEvent:
        """A join that was refused."""
        code = answer.error_code
        event = decisions.on_join_error(code)
        error = self._error(code, "ConsumerGroupHeartbeat", answer.error_message)
        if event is ConsumerProtocolEvent.UNSERVED or (code == ErrorCode.GROUP_ID_NOT_FOUND and self._may_fall_back):
            return self._after_unserved(error)
        if code == ErrorCode.UNRELEASED_INSTANCE_ID:
            return await self._after_unreleased(error)
        if event is ConsumerProtocolEvent.RETRY:
            pause = self._backoff.next()
            logger.info("%s, again in %.3f s", error, pause)
            await self._client.pause(pause)
        elif event is ConsumerProtocolEvent.REFUSED:
            self._host.fail(error, final=False)
        elif event is ConsumerProtocolEvent.FENCED:
            self._host.fail(error, final=True)
        return event

    def _after_unserved(self, error: BrokerError) -> ConsumerProtocolEvent:
        """The broker does not speak this protocol, or not to this group."""
        if self._may_fall_back:
            logger.info("%s: the classic protocol it is: %s", self._who, error)
        else:
            self._host.fail(error, final=True)
        return ConsumerProtocolEvent.UNSERVED

    async def _after_unreleased(self, error: BrokerError) -> ConsumerProtocolEvent:
        """The instance id is still a member's: of the process that this one replaces, which ends with its session, or
        of another one that lives."""
        now = anyio.current_time()
        if self._unreleased_since is None:
            self._unreleased_since = now
            logger.warning("%s; waiting up to %.0f s for its session to end", error, self._options.session_timeout)
        if now - self._unreleased_since > self._options.session_timeout:
            self._host.fail(error, final=True)
            return ConsumerProtocolEvent.FENCED
        await self._client.pause(UNRELEASED_INTERVAL)
        return ConsumerProtocolEvent.RETRY

    def _note(self, event: ConsumerProtocolEvent, code: int, request: str, message: str | None = None) -> None:
        """A code that ends the epoch."""
        error = self._error(code, request, message)
        logger.info("%s", error)
        if event in (ConsumerProtocolEvent.FENCED, ConsumerProtocolEvent.REFUSED):
            self._host.fail(error, final=event is ConsumerProtocolEvent.FENCED)
        self._signal(event)

    def _error(self, code: int, request: str, message: str | None = None) -> BrokerError:
        said = f" ({message})" if message else ""
        return error_for(code, f"{self._who}: {request} as member {self._member_id}{said}", request=request)

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _signal(self, event: ConsumerProtocolEvent) -> None:
        self._pending.add(event)
        self._woken.set()

    def _on_metadata(self, cluster: Cluster) -> None:
        if any(cluster.topic_name(topic_id) is not None for topic_id in self._nameless):
            self._signal(ConsumerProtocolEvent.TOLD)

    @property
    def _nameless(self) -> set[bytes]:
        """Topics of which partitions are assigned, but whose names nobody has told yet."""
        return {part.topic_id for part in self._target} - self._names.keys()

    @property
    def _who(self) -> str:
        return f"group {self._options.group_id!r}"

    @property
    def _place(self) -> Place:
        return Place(self._options.group_id, self._member_id, self._epoch, self._options.instance_id)
