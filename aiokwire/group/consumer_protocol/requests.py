"""ConsumerGroupHeartbeat in both versions. No I/O.

- A heartbeat names only what changed since the last one with a response; after one without a
  response, and in a join, it names everything.
- v0: the coordinator generates member ids and takes no patterns. v1: members generate their
  ids (KIP-1082).
"""

from __future__ import annotations

import dataclasses
from typing import Final, NamedTuple

from aiokwire.errors import UnsupportedVersion
from aiokwire.group.subscription_format import by_topic
from aiokwire.net import ApiVersions
from aiokwire.protocol import Response
from aiokwire.protocol.messages import consumer_group_heartbeat as messages
from aiokwire.types import GroupMetadata

JOINING: Final = 0  # member epochs with a special meaning
LEAVING: Final = -1
LEAVING_TEMPORARILY: Final = -2  # a static member that will return
# The first version in which members generate their ids, and may subscribe by pattern.
FIRST_VERSION_WITH_OWN_IDS: Final = 1


class Part(NamedTuple):
    """A partition as this protocol names it."""

    topic_id: bytes
    number: int


Parts = frozenset[Part]


class Description(NamedTuple):
    """The fields that a member reports about itself to the coordinator."""

    topics: frozenset[str] = frozenset()
    pattern: str | None = None  # matched by the coordinator, in the syntax of RE2
    assignor: str | None = None  # the coordinator's; None: its default
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1


class HeartbeatAnswer(NamedTuple):
    """A response without an error; the assignment is None if it did not change."""

    member_id: str
    epoch: int
    interval: float  # seconds
    assignment: Parts | None


class HeartbeatBuilder:
    """Builds one heartbeat; its fields are final when the version is chosen."""

    def __init__(self, member: GroupMetadata, now: Description, sent: Description | None, held: Parts | None) -> None:
        """`sent`: what the coordinator knows of this member, None: nothing. `held`: the partitions
        in force, None to leave them out."""
        request = messages.ConsumerGroupHeartbeatRequest(
            group_id=member.group_id,
            member_id=member.member_id,
            member_epoch=member.generation,
            instance_id=member.group_instance_id,
        )
        self.request: messages.ConsumerGroupHeartbeatRequest = request
        self._joins = member.generation == JOINING
        if self._joins:
            sent, held = None, frozenset()
        if sent is None or now.topics != sent.topics:
            request.subscribed_topic_names = sorted(now.topics)
        if sent is None or now.pattern != sent.pattern:
            # An empty pattern ends the one of an earlier heartbeat, or of the member that a static one replaces.
            is_new = self._joins and member.group_instance_id is None
            request.subscribed_topic_regex = now.pattern if is_new else now.pattern or ""
        if sent is None or now.rebalance_timeout_ms != sent.rebalance_timeout_ms:
            request.rebalance_timeout_ms = now.rebalance_timeout_ms
        if sent is None or now.assignor != sent.assignor:
            request.server_assignor = now.assignor
        if sent is None:
            request.rack_id = now.rack_id
        if held is not None:
            request.topic_partitions = [
                messages.TopicPartitions(topic_id=topic_id, partitions=numbers)
                for topic_id, numbers in by_topic(held).items()
            ]

    def version(self, versions: ApiVersions) -> int:
        """Return the newest version.

        Raises: UnsupportedVersion: the broker does not support the protocol, or is too old for
        patterns.
        """
        picked = versions.pick(messages.ConsumerGroupHeartbeatRequest)
        if picked < FIRST_VERSION_WITH_OWN_IDS:
            if self.request.subscribed_topic_regex:
                raise UnsupportedVersion(
                    "this broker does not support patterns, which need ConsumerGroupHeartbeat v1 (Kafka 4.0); "
                    "subscribe to names, or to a compiled pattern, which the client matches",
                    request="ConsumerGroupHeartbeat",
                )
            self.request.subscribed_topic_regex = None
            if self._joins:
                self.request.member_id = ""
        return picked


@dataclasses.dataclass(frozen=True, slots=True)
class HeartbeatContent:
    """The contents of heartbeats until they change; a pure function, for the heartbeat thread."""

    member: GroupMetadata
    now: Description
    sent: Description | None
    held: Parts | None

    def __call__(
        self, versions: ApiVersions, last: Response | None
    ) -> tuple[messages.ConsumerGroupHeartbeatRequest, int]:
        """Build one with the epoch of the last response, which the member may not know yet."""
        member = self.member
        if isinstance(last, messages.ConsumerGroupHeartbeatResponse):
            member = member._replace(generation=last.member_epoch)
        heartbeat = HeartbeatBuilder(member, self.now, self.sent, self.held)
        return heartbeat.request, heartbeat.version(versions)


def leave_request(member: GroupMetadata) -> messages.ConsumerGroupHeartbeatRequest:
    """Build the last heartbeat. A static member keeps its partitions until its session ends."""
    return messages.ConsumerGroupHeartbeatRequest(
        group_id=member.group_id,
        member_id=member.member_id,
        member_epoch=LEAVING if member.group_instance_id is None else LEAVING_TEMPORARILY,
        instance_id=member.group_instance_id,
    )


def read_heartbeat(response: messages.ConsumerGroupHeartbeatResponse, member_id: str) -> HeartbeatAnswer:
    """Read a response without an error to a heartbeat of `member_id`."""
    assignment = None
    if response.assignment is not None:
        assignment = frozenset(
            Part(topic.topic_id, number)
            for topic in response.assignment.topic_partitions
            for number in topic.partitions
        )
    return HeartbeatAnswer(
        response.member_id or member_id, response.member_epoch, response.heartbeat_interval_ms / 1000, assignment
    )
