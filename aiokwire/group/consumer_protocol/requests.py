"""ConsumerGroupHeartbeat in both versions. No I/O.

- A heartbeat has only what changed since the last one that was answered; after an unanswered one, and in a join, all.
- v0: the coordinator names members, and there are no patterns. v1: members name themselves (KIP-1082).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Final, NamedTuple

from aiokwire.errors import UnsupportedVersion
from aiokwire.net import ApiVersions
from aiokwire.protocol import Response
from aiokwire.protocol.messages import consumer_group_heartbeat as messages

JOINING: Final = 0  # epochs that are none
LEAVING: Final = -1
LEAVING_FOR_A_WHILE: Final = -2  # a static member that will be back
# Since when members name themselves, and may subscribe by pattern.
OWN_IDS_SINCE: Final = 1


class Part(NamedTuple):
    """A partition, as this protocol has them."""

    topic_id: bytes
    number: int


Parts = frozenset[Part]


class Identity(NamedTuple):
    """Who a member is; part of every heartbeat."""

    group_id: str
    member_id: str
    epoch: int = JOINING
    instance_id: str | None = None


class Description(NamedTuple):
    """What a member tells the coordinator about itself."""

    topics: frozenset[str] = frozenset()
    pattern: str | None = None  # matched by the coordinator, in the syntax of RE2
    assignor: str | None = None  # the coordinator's; None: whichever it prefers
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1


class HeartbeatAnswer(NamedTuple):
    """What the coordinator answered; the assignment is None if it did not change."""

    member_id: str
    epoch: int
    interval: float  # seconds
    assignment: Parts | None


class HeartbeatBuilder:
    """Builds one heartbeat; its fields are final once the version is chosen."""

    def __init__(self, identity: Identity, now: Description, sent: Description | None, held: Parts | None) -> None:
        """`sent`: what the coordinator knows of this member, None for nothing; `held`: what it has, None to leave that
        out."""
        self.request = request = messages.ConsumerGroupHeartbeatRequest(
            group_id=identity.group_id,
            member_id=identity.member_id,
            member_epoch=identity.epoch,
            instance_id=identity.instance_id,
        )
        self._joins = identity.epoch == JOINING
        if self._joins:
            sent, held = None, frozenset()
        if sent is None or now.topics != sent.topics:
            request.subscribed_topic_names = sorted(now.topics)
        if sent is None or now.pattern != sent.pattern:
            # An empty one ends what an older heartbeat, or the member that a static one replaces, subscribed to.
            unknown = self._joins and identity.instance_id is None
            request.subscribed_topic_regex = now.pattern if unknown else now.pattern or ""
        if sent is None or now.rebalance_timeout_ms != sent.rebalance_timeout_ms:
            request.rebalance_timeout_ms = now.rebalance_timeout_ms
        if sent is None or now.assignor != sent.assignor:
            request.server_assignor = now.assignor
        if sent is None:
            request.rack_id = now.rack_id
        if held is not None:
            request.topic_partitions = [
                messages.TopicPartitions(topic_id=topic_id, partitions=numbers)
                for topic_id, numbers in _by_topic(held).items()
            ]

    def version(self, versions: ApiVersions) -> int:
        """The newest version.

        Raises: UnsupportedVersion: the broker does not speak the protocol, or is too old for patterns.
        """
        picked = versions.pick(messages.ConsumerGroupHeartbeatRequest)
        if picked < OWN_IDS_SINCE:
            if self.request.subscribed_topic_regex:
                raise UnsupportedVersion(
                    "this broker matches no patterns (ConsumerGroupHeartbeat v1, Kafka 4.0); subscribe to names, or to "
                    "a compiled pattern, which is matched here",
                    request="ConsumerGroupHeartbeat",
                )
            self.request.subscribed_topic_regex = None
            if self._joins:
                self.request.member_id = ""
        return picked


@dataclasses.dataclass(frozen=True, slots=True)
class HeartbeatContent:
    """The contents of heartbeats until they change; a pure function, called in the heartbeat thread."""

    identity: Identity
    now: Description
    sent: Description | None
    held: Parts | None

    def __call__(
        self, versions: ApiVersions, last: Response | None
    ) -> tuple[messages.ConsumerGroupHeartbeatRequest, int]:
        """Build one with the epoch of the last response, which the member may not have seen yet."""
        identity = self.identity
        if isinstance(last, messages.ConsumerGroupHeartbeatResponse):
            identity = identity._replace(epoch=last.member_epoch)
        heartbeat = HeartbeatBuilder(identity, self.now, self.sent, self.held)
        return heartbeat.request, heartbeat.version(versions)


class Leaving:
    """The last heartbeat. A static member leaves temporarily: its partitions are kept until its session ends."""

    def __init__(self, identity: Identity) -> None:
        self.member_id = identity.member_id
        self.request = messages.ConsumerGroupHeartbeatRequest(
            group_id=identity.group_id,
            member_id=identity.member_id,
            member_epoch=LEAVING if identity.instance_id is None else LEAVING_FOR_A_WHILE,
            instance_id=identity.instance_id,
        )

    def version(self, versions: ApiVersions) -> int:
        """The newest version."""
        return versions.pick(messages.ConsumerGroupHeartbeatRequest)


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


def _by_topic(parts: Iterable[Part]) -> dict[bytes, list[int]]:
    topics: dict[bytes, list[int]] = {}
    for topic_id, number in sorted(parts):
        topics.setdefault(topic_id, []).append(number)
    return topics
