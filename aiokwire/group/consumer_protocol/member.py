"""A member of a group that uses the consumer protocol (KIP-848): one coroutine per state, run by
the driver in `MemberBase`.

The coordinator assigns partitions in responses to heartbeats. A member revokes partitions,
acknowledges that, and then receives others. Heartbeats are sent from the join until the member
leaves.
"""

from __future__ import annotations

import base64
from collections.abc import Collection
from typing import Final

import anyio

from aiokwire._text import printable
from aiokwire.clock import loop_time
from aiokwire.cluster import Client, Cluster, failure_level
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import AuthenticationFailed, BrokerError, KafkaError, UnsupportedVersion, is_transient
from aiokwire.group.consumer_protocol import decisions
from aiokwire.group.consumer_protocol.requests import (
    JOINING,
    Description,
    HeartbeatBuilder,
    HeartbeatContent,
    Parts,
    leave_request,
    read_heartbeat,
)
from aiokwire.group.consumer_protocol.states import TABLE, ConsumerProtocolState
from aiokwire.group.heartbeat_thread import BuildHeartbeat
from aiokwire.group.member_base import LeaveRequest, MemberBase
from aiokwire.group.membership import Host, MemberOptions
from aiokwire.group.state_table import MemberEvent
from aiokwire.group.status import MemberStatus
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.net import ApiVersions
from aiokwire.protocol import Response
from aiokwire.protocol.messages import metadata
from aiokwire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from aiokwire.types import GroupMetadata

logger: FieldLogger = get_logger(__name__)

NOTHING: Parts = frozenset()
# The pauses between lookups of the names of assigned topics (seconds).
NAMES_INTERVAL = 1.0
LONGEST_NAMES_INTERVAL = 30.0
_NAMES_TIMEOUT: Final = 5.0  # seconds
# The first version of Metadata with requests by topic id (KIP-516).
_METADATA_BY_ID: Final = 12
# The pause between attempts of a static member to join while another member has its instance id (seconds).
UNRELEASED_INTERVAL = 1.0


class ConsumerProtocolMember(MemberBase[ConsumerProtocolState]):
    """A member that uses ConsumerGroupHeartbeat; see `MemberBase`. Its `commits` gate is always
    open: joins of this protocol do not affect commits."""

    def __init__(
        self, client: Client, options: MemberOptions, host: Host, status: MemberStatus, *, may_fall_back: bool = False
    ) -> None:
        """`may_fall_back`: end `run` without an error if the group cannot use this protocol."""
        super().__init__(
            client,
            options,
            host,
            status,
            table=TABLE,
            severity=decisions.SEVERITY,
            steps={
                ConsumerProtocolState.JOINING: self._join,
                ConsumerProtocolState.RECONCILING: self._reconcile,
                ConsumerProtocolState.STABLE: self._stay,
            },
        )
        # The member's id, and what it reports about itself.
        self._member_id = base64.urlsafe_b64encode(client.rng.randbytes(16)).decode().rstrip("=")
        self._wanted = Description(
            assignor=options.remote_assignor,
            rack_id=options.rack_id,
            rebalance_timeout_ms=round(options.rebalance_timeout * 1000),
        )
        self._sent: Description | None = None  # what the coordinator knows of that; None: not certain
        # The coordinator's assignment, and the part of it that is in force.
        self._epoch = JOINING  # 0 without an epoch
        self._target = NOTHING
        self._held = NOTHING
        self._names: dict[bytes, str] = {}
        self._acknowledge = False  # the next heartbeat reports `_held`
        self._unreleased_since: float | None = None
        self._may_fall_back = may_fall_back

    # --- for the consumer ---------------------------------------------------------------------------------------------

    def subscribe(self, topics: frozenset[str], pattern: str | None = None) -> None:
        """See `Membership`. `pattern`: matched by the coordinator."""
        self._wanted = self._wanted._replace(topics=topics, pattern=pattern)
        self._heartbeats.send_now()

    def rejoin(self, reason: str) -> None:
        """Log only: in this protocol the coordinator decides when to rebalance."""
        self._log.info("%s: ignoring rejoin (%s): only the coordinator rebalances this group", self._label, reason)

    def refused(self, code: int, group: GroupMetadata) -> bool:
        """See `Membership`."""
        if code == ErrorCode.STALE_MEMBER_EPOCH:
            if self._epoch == group.generation:
                self._heartbeats.send_now()  # the response contains the epoch
            return self._is_member
        return self._after_commit_error(decisions.on_commit_error(code), code, group)

    # --- states -------------------------------------------------------------------------------------------------------

    async def _join(self) -> MemberEvent:
        """JOINING: send a heartbeat with epoch 0."""
        self._signals.clear()
        wanted = self._wanted
        heartbeat = HeartbeatBuilder(self._identity, wanted, None, None)
        timeout = min(self._client.config.request_timeout, self._options.session_timeout)
        try:
            answer = await self._coordinator.request(heartbeat.request, version=heartbeat.version, timeout=timeout)
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
        log = self._log.bound(member_id=self._member_id)
        log.info("%s: joined as %s with epoch %d", self._label, printable(self._member_id), self._epoch)
        await self._heartbeats.start(answer.heartbeat_interval_ms / 1000 or self._options.heartbeat_interval)
        if self._wanted != wanted:
            self._heartbeats.send_now()
        return MemberEvent.JOINED

    async def _reconcile(self) -> MemberEvent:
        """RECONCILING: revoke and add partitions as assigned."""
        self._signals.discard(MemberEvent.ASSIGNMENT_CHANGED)
        target = self._target
        self._names = await _names_of(self._client, {part.topic_id for part in target})
        plan = decisions.plan_reconciliation(self._host.owned(), target, self._names)
        if plan.revoke:
            await self._host.revoke(plan.revoke, self._revocation_deadline)
            self._acknowledge_held(target)
        if (event := self._signals.most_severe) is not None:
            return event
        # Report the new partitions as held while the listener runs: if a full heartbeat leaves a partition out, the
        # coordinator assigns it to another member at once.
        self._held = decisions.held_of(target, self._names, self._host.owned() | plan.add)
        await self._host.assign(plan.add)
        self._acknowledge_held(target)
        return self._signals.most_severe or MemberEvent.SETTLED

    async def _stay(self) -> MemberEvent:
        """STABLE: wait for an event."""
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
            if await _names_of(self._client, unnamed):
                return MemberEvent.ASSIGNMENT_CHANGED

    # --- leaving ------------------------------------------------------------------------------------------------------

    def _new_leave_request(self, _reason: str) -> LeaveRequest | None:
        return LeaveRequest(self._member_id, leave_request(self._identity)) if self._is_member else None

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
                self._end_by(event, outcome.error_code, "ConsumerGroupHeartbeat", outcome.error_message)
            return
        # After a heartbeat without a response the next one is full: otherwise the coordinator would not repeat the
        # contents of the lost response.
        if self._sent is not None or content.sent is None:
            self._sent = content.now
        if content.held is not None and content.held == self._held:
            self._acknowledge = False
        self._take(outcome)

    def _on_failed_heartbeat(self, error: KafkaError) -> None:
        self._sent = None  # the coordinator may have received the heartbeat or not
        if is_transient(error) or isinstance(error, AuthenticationFailed):  # the session outlasts a short refusal
            self._log.log(failure_level(error), "%s: heartbeat failed: %s", self._label, error)
        else:
            self.on_refused(error)

    def on_refused(self, error: KafkaError) -> None:
        """See `HeartbeatSource`."""
        self._report(MemberEvent.REFUSED, error)
        self._signal(MemberEvent.REFUSED)

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
            self._signal(MemberEvent.ASSIGNMENT_CHANGED)

    def _acknowledge_held(self, target: Parts) -> None:
        """Report the part of `target` that is in force: the coordinator waits for that before it
        assigns the revoked partitions to other members, and others to this one."""
        self._held = decisions.held_of(target, self._names, self._host.owned())
        self._acknowledge = True
        self._heartbeats.send_now()

    # --- failures ----------------------------------------------------------------------------------------------

    async def _after_error_code(self, answer: ConsumerGroupHeartbeatResponse) -> MemberEvent:
        """Handle a refused join."""
        code = answer.error_code
        event = decisions.on_join_error(code)
        error = self._error(code, "ConsumerGroupHeartbeat", answer.error_message)
        if event is MemberEvent.UNSERVED or (code == ErrorCode.GROUP_ID_NOT_FOUND and self._may_fall_back):
            return self._after_unserved(error)
        if code == ErrorCode.UNRELEASED_INSTANCE_ID:
            return await self._after_unreleased(error)
        return await self._after_refusal(event, error)

    def _after_unserved(self, error: BrokerError) -> MemberEvent:
        """Handle a broker without this protocol, or a group that uses the other one."""
        if self._may_fall_back:
            self._log.info("%s: falling back to the classic protocol: %s", self._label, error)
        else:
            self._host.fail(error, final=True)
        return MemberEvent.UNSERVED

    async def _after_unreleased(self, error: BrokerError) -> MemberEvent:
        """Handle an instance id that is in use: by the process that this one replaces, until its
        session ends, or by a running one."""
        now = loop_time()
        if self._unreleased_since is None:
            self._unreleased_since = now
            self._log.warning(
                "%s; waiting up to %.0f s for that member's session to end", error, self._options.session_timeout
            )
        if now - self._unreleased_since > self._options.session_timeout:
            self._host.fail(error, final=True)
            return MemberEvent.FENCED
        await self._client.pause(UNRELEASED_INTERVAL)
        return MemberEvent.RETRY

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _on_metadata(self, cluster: Cluster) -> None:
        if any(cluster.topic_name(topic_id) is not None for topic_id in self._unnamed):
            self._signal(MemberEvent.ASSIGNMENT_CHANGED)

    @property
    def _unnamed(self) -> set[bytes]:
        """The ids of assigned topics whose names are not known yet."""
        return {part.topic_id for part in self._target} - self._names.keys()

    @property
    def _identity(self) -> GroupMetadata:
        return GroupMetadata(self._options.group_id, self._epoch, self._member_id, self._options.instance_id)


async def _names_of(client: Client, topic_ids: Collection[bytes]) -> dict[bytes, str]:
    """Return topic names, also of topics not in the client's metadata: one try at one broker."""
    found = {topic_id: name for topic_id in topic_ids if (name := client.cluster.topic_name(topic_id)) is not None}
    missing = sorted(set(topic_ids) - found.keys())
    if not missing:
        return found

    def ask(versions: ApiVersions) -> tuple[metadata.MetadataRequest, int]:
        version = versions.pick(metadata.MetadataRequest)
        if version < _METADATA_BY_ID:
            raise UnsupportedVersion("this broker does not support Metadata by topic id", request="Metadata")
        topics = [metadata.MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in missing]
        return metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=False), version

    try:
        with anyio.fail_after(_NAMES_TIMEOUT):
            answer = await client.ask_any(ask)
    except TimeoutError:
        return found
    except KafkaError as error:
        level = failure_level(error)
        logger.log(level, "cannot look up the names of %d assigned topics yet: %s", len(missing), error)
        return found
    found.update({topic.topic_id: topic.name for topic in answer.topics if topic.name and not topic.error_code})
    return found
