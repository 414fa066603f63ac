"""A member of a group that uses the consumer protocol (KIP-848): one coroutine per state, one driver that moves it
(`MemberBase`).

The coordinator assigns the partitions, in responses to heartbeats. A member revokes partitions, acknowledges that, and
receives more. Heartbeats continue from the join to the end, in a task of their own.
"""

from __future__ import annotations

import base64
import logging

import anyio

from aiokwire._text import printable
from aiokwire.cluster import Client, Cluster, failure_level
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, KafkaError, UnsupportedVersion, error_for, is_transient
from aiokwire.group.consumer_protocol import decisions
from aiokwire.group.consumer_protocol.requests import (
    JOINING,
    Description,
    HeartbeatBuilder,
    HeartbeatContent,
    Identity,
    Leaving,
    Parts,
    read_heartbeat,
)
from aiokwire.group.consumer_protocol.states import TABLE, ConsumerProtocolEvent, ConsumerProtocolState
from aiokwire.group.consumer_protocol.topic_names import names_of
from aiokwire.group.heartbeat_thread import BuildHeartbeat
from aiokwire.group.member_base import LeaveRequest, MemberBase
from aiokwire.group.membership import Host, MemberOptions
from aiokwire.group.state_table import Signals
from aiokwire.group.status import MemberStatus
from aiokwire.protocol import Response
from aiokwire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from aiokwire.types import GroupMetadata

logger = logging.getLogger(__name__)

NOTHING: Parts = frozenset()
# How often unknown names of assigned topics are looked up (seconds).
NAMES_INTERVAL = 1.0
LONGEST_NAMES_INTERVAL = 30.0
# How often a static member tries to join while another member has its instance id (seconds).
UNRELEASED_INTERVAL = 1.0


class ConsumerProtocolMember(MemberBase[ConsumerProtocolState, ConsumerProtocolEvent]):
    """A member that uses ConsumerGroupHeartbeat; see `MemberBase`. Its `commits` gate is always open: commits and this
    protocol do not get in each other's way."""

    def __init__(
        self, client: Client, options: MemberOptions, host: Host, status: MemberStatus, *, may_fall_back: bool = False
    ) -> None:
        """`may_fall_back`: if the group cannot use this protocol, `run` ends without an error for the application."""
        super().__init__(
            client,
            options,
            host,
            status,
            table=TABLE,
            signals=Signals(decisions.SEVERITY),
            steps={
                ConsumerProtocolState.UNJOINED: self._begin,
                ConsumerProtocolState.JOINING: self._join,
                ConsumerProtocolState.RECONCILING: self._reconcile,
                ConsumerProtocolState.STABLE: self._stay,
                ConsumerProtocolState.LOSING: self._lose,
                ConsumerProtocolState.IDLE: self._idle,
            },
            join_reason="",
        )
        # Which member this is, and what it wants.
        self._member_id = base64.urlsafe_b64encode(client.rng.randbytes(16)).decode().rstrip("=")
        self._wanted = Description(
            assignor=options.remote_assignor,
            rack_id=options.rack_id,
            rebalance_timeout_ms=round(options.max_poll_interval * 1000),
        )
        self._sent: Description | None = None  # what the coordinator knows of that; None: nothing for sure
        # What the coordinator assigned, and what is in force of it.
        self._epoch = JOINING  # 0 while it has none
        self._target = NOTHING
        self._held = NOTHING
        self._names: dict[bytes, str] = {}
        self._acknowledge = False  # the next heartbeat reports what is held
        self._unreleased_since: float | None = None
        self._may_fall_back = may_fall_back

    # --- for the consumer ---------------------------------------------------------------------------------------------

    @property
    def metadata(self) -> GroupMetadata:
        """With the member's epoch for a generation; without one while it has none."""
        if self._epoch == JOINING:
            return GroupMetadata(self._options.group_id, -1, "", self._options.instance_id)
        return GroupMetadata(self._options.group_id, self._epoch, self._member_id, self._options.instance_id)

    def subscribe(self, topics: frozenset[str], pattern: str | None = None) -> None:
        """See `Membership`; also with a `pattern` that the coordinator matches."""
        self._wanted = self._wanted._replace(topics=topics, pattern=pattern)
        self._heartbeats.send_now()

    def rejoin(self, reason: str) -> None:
        """The coordinator decides when this protocol rebalances: nothing happens."""
        logger.info("%s: only the coordinator rebalances this group (%s)", self._label, reason)

    def refused(self, code: int, group: GroupMetadata) -> bool:
        """See `Membership`."""
        now = self.metadata
        if code == ErrorCode.STALE_MEMBER_EPOCH:
            if now.generation == group.generation:
                self._heartbeats.send_now()  # the response contains the epoch
            return now.generation >= 0
        event = decisions.on_commit_error(code)
        if event is None or now.generation != group.generation:
            return event is not None and now.generation >= 0
        self._note(event, code, "OffsetCommit")
        return False

    # --- states -------------------------------------------------------------------------------------------------------

    async def _join(self) -> ConsumerProtocolEvent:
        """JOINING."""
        self._signals.clear()
        wanted = self._wanted
        try:
            answer = await self._ask(HeartbeatBuilder(self._identity, wanted, None, None))
        except UnsupportedVersion as error:
            return self._after_unserved(error)
        except KafkaError as error:
            return await self._after_failure(error)
        if answer.error_code:
            return await self._after_error_code(answer)
        self._sent = wanted
        self._unreleased_since = None
        self._backoff.reset()
        self._take(answer)
        self._acknowledge = False
        logger.info("%s: joined as %s with epoch %d", self._label, printable(self._member_id), self._epoch)
        await self._heartbeats.start(answer.heartbeat_interval_ms / 1000 or self._options.heartbeat_interval)
        if self._wanted != wanted:
            self._heartbeats.send_now()
        return ConsumerProtocolEvent.JOINED

    async def _reconcile(self) -> ConsumerProtocolEvent:
        """RECONCILING: from what is owned to what the coordinator gave."""
        self._signals.discard(ConsumerProtocolEvent.ASSIGNMENT_CHANGED)
        target = self._target
        self._names = await names_of(self._client, {part.topic_id for part in target})
        plan = decisions.plan_reconciliation(self._host.owned(), target, self._names)
        if plan.revoke:
            await self._host.revoke(plan.revoke, anyio.current_time() + self._options.max_poll_interval)
            self._acknowledge_held(target)
        if (event := self._signals.most_severe) is not None:
            return event
        # From here on it has them, whatever the listener still does: if everything has to be sent again meanwhile, the
        # coordinator would assign to others at once what is left out.
        self._held = decisions.held_of(target, self._names, self._host.owned() | plan.add)
        await self._host.assign(plan.add)
        self._acknowledge_held(target)
        return self._signals.most_severe or ConsumerProtocolEvent.SETTLED

    async def _stay(self) -> ConsumerProtocolEvent:
        """STABLE: until something happens."""
        self._consecutive_losses = 0
        pause = NAMES_INTERVAL
        while True:
            self._woken = anyio.Event()
            if (event := self._signals.most_severe) is not None:
                return event
            unnamed = self._unnamed
            with anyio.move_on_after(pause if unnamed else float("inf")):
                await self._woken.wait()
                continue
            pause = min(2 * pause, LONGEST_NAMES_INTERVAL)
            if await names_of(self._client, unnamed):
                return ConsumerProtocolEvent.ASSIGNMENT_CHANGED

    # --- the end ------------------------------------------------------------------------------------------------------

    def _new_leave_request(self, _reason: str) -> LeaveRequest | None:
        return None if self._epoch == JOINING else Leaving(self._identity)

    @property
    def _is_member(self) -> bool:
        return self._epoch != JOINING

    def _forget(self) -> None:
        self._epoch = JOINING
        self._sent = None
        self._target = self._held = NOTHING
        self._signals.clear()

    # --- heartbeats ---------------------------------------------------------------------------------------------------

    def next_heartbeat(self) -> HeartbeatContent:
        """See `HeartbeatSource`."""
        has_held = self._acknowledge or self._sent is None
        return HeartbeatContent(self._identity, self._wanted, self._sent, self._held if has_held else None)

    def on_heartbeat(self, content: BuildHeartbeat, outcome: Response | KafkaError) -> None:
        """See `HeartbeatSource`."""
        if isinstance(outcome, KafkaError):
            self._on_failed_heartbeat(outcome)
            return
        assert isinstance(content, HeartbeatContent)
        assert isinstance(outcome, ConsumerGroupHeartbeatResponse)
        if outcome.error_code:
            self._sent = None
            event = decisions.on_heartbeat_error(outcome.error_code)
            if event is not None:
                self._note(event, outcome.error_code, "ConsumerGroupHeartbeat", outcome.error_message)
            return
        # After a heartbeat without a response everything is sent once more: otherwise the coordinator would not repeat
        # what that response contained.
        if self._sent is not None or content.sent is None:
            self._sent = content.now
        if content.held is not None and content.held == self._held:
            self._acknowledge = False
        self._take(outcome)

    def _on_failed_heartbeat(self, error: KafkaError) -> None:
        self._sent = None  # it is not known what the coordinator has read
        if is_transient(error):
            logger.log(failure_level(error), "%s: a heartbeat failed: %s", self._label, error)
        else:
            self._host.fail(error, final=False)
            self._signal(ConsumerProtocolEvent.REFUSED)

    def on_lookup_refused(self, error: KafkaError) -> None:
        """Nothing: the lookup is repeated, until the session ends or a request to the coordinator reports the error."""

    async def _ask(self, heartbeat: HeartbeatBuilder) -> ConsumerGroupHeartbeatResponse:
        return await self._coordinator.request(
            heartbeat.request,
            version=heartbeat.version,
            timeout=min(self._client.config.request_timeout, self._options.session_timeout),
        )

    def _take(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        """Apply a response without an error."""
        news = read_heartbeat(answer, self._member_id)
        if news.epoch != self._epoch or news.assignment is not None:
            self._heartbeats.speed_up()
        self._member_id, self._epoch = news.member_id, news.epoch
        if news.interval:
            self._heartbeats.set_interval(news.interval)
        if news.assignment is not None:
            self._target = news.assignment
            self._signal(ConsumerProtocolEvent.ASSIGNMENT_CHANGED)

    def _acknowledge_held(self, target: Parts) -> None:
        """Report what of `target` is in force: the coordinator waits for that before it assigns what was revoked to
        others, and more to this member."""
        self._held = decisions.held_of(target, self._names, self._host.owned())
        self._acknowledge = True
        self._heartbeats.send_now()

    # --- failures ----------------------------------------------------------------------------------------------

    async def _after_error_code(self, answer: ConsumerGroupHeartbeatResponse) -> ConsumerProtocolEvent:
        """A join that was refused."""
        code = answer.error_code
        event = decisions.on_join_error(code)
        error = self._error(code, "ConsumerGroupHeartbeat", answer.error_message)
        if event is ConsumerProtocolEvent.UNSERVED or (code == ErrorCode.GROUP_ID_NOT_FOUND and self._may_fall_back):
            return self._after_unserved(error)
        if code == ErrorCode.UNRELEASED_INSTANCE_ID:
            return await self._after_unreleased(error)
        return await self._after_refusal(event, error)

    def _after_unserved(self, error: BrokerError) -> ConsumerProtocolEvent:
        """The broker does not support this protocol, or the group uses the other one."""
        if self._may_fall_back:
            logger.info("%s: falling back to the classic protocol: %s", self._label, error)
        else:
            self._host.fail(error, final=True)
        return ConsumerProtocolEvent.UNSERVED

    async def _after_unreleased(self, error: BrokerError) -> ConsumerProtocolEvent:
        """Another member has the instance id: the process that this one replaces, until its session ends, or one that
        is alive."""
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
        """Handle a code that ends the epoch."""
        error = self._error(code, request, message)
        logger.info("%s", error)
        if event in (ConsumerProtocolEvent.FENCED, ConsumerProtocolEvent.REFUSED):
            self._host.fail(error, final=event is ConsumerProtocolEvent.FENCED)
        self._signal(event)

    def _error(self, code: int, request: str, message: str | None = None) -> BrokerError:
        said = f" ({message})" if message else ""
        return error_for(code, f"{self._label}: {request} as member {self._member_id}{said}", request=request)

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _on_metadata(self, cluster: Cluster) -> None:
        if any(cluster.topic_name(topic_id) is not None for topic_id in self._unnamed):
            self._signal(ConsumerProtocolEvent.ASSIGNMENT_CHANGED)

    @property
    def _unnamed(self) -> set[bytes]:
        """Ids of assigned topics whose names are not known yet."""
        return {part.topic_id for part in self._target} - self._names.keys()

    @property
    def _identity(self) -> Identity:
        return Identity(self._options.group_id, self._member_id, self._epoch, self._options.instance_id)
