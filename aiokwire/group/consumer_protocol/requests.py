"""ConsumerGroupHeartbeat in both versions: plain functions, used by `modern.py`.

- A heartbeat says only what changed since the last one that was answered; after one that was not, and at a join, all.
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


class Place(NamedTuple):
    """Who a member is; said in every heartbeat."""

    group_id: str
    member_id: str
    epoch: int = JOINING
    instance_id: str | None = None


class Description(NamedTuple):
    """What a member says of itself."""

    topics: frozenset[str] = frozenset()
    pattern: str | None = None  # matched by the coordinator, in the syntax of RE2
    assignor: str | None = None  # the coordinator's; None: whichever it prefers
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1


class Told(NamedTuple):
    """What the coordinator answered; the assignment is None where it is what it was."""

    member_id: str
    epoch: int
    interval: float  # seconds
    assignment: Parts | None


class Beat:
    """One heartbeat, which takes its shape when the version is chosen."""

    def __init__(self, place: Place, now: Description, said: Description | None, held: Parts | None) -> None:
        """`said`: what the coordinator knows of this member, None for nothing; `held`: what it has, None to leave that
        out."""
        self.request = request = messages.ConsumerGroupHeartbeatRequest(
            group_id=place.group_id,
            member_id=place.member_id,
            member_epoch=place.epoch,
            instance_id=place.instance_id,
        )
        self._joins = place.epoch == JOINING
        if self._joins:
            said, held = None, frozenset()
        if said is None or now.topics != said.topics:
            request.subscribed_topic_names = sorted(now.topics)
        if said is None or now.pattern != said.pattern:
            # An empty one ends what an older heartbeat, or the member that a static one replaces, subscribed to.
            unknown = self._joins and place.instance_id is None
            request.subscribed_topic_regex = now.pattern if unknown else now.pattern or ""
        if said is None or now.rebalance_timeout_ms != said.rebalance_timeout_ms:
            request.rebalance_timeout_ms = now.rebalance_timeout_ms
        if said is None or now.assignor != said.assignor:
            request.server_assignor = now.assignor
        if said is None:
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
class Saying:
    """What heartbeats say until there is something else to say; a pure function, for `HeartbeatThread`."""

    place: Place
    now: Description
    said: Description | None
    held: Parts | None

    def __call__(
        self, versions: ApiVersions, last: Response | None
    ) -> tuple[messages.ConsumerGroupHeartbeatRequest, int]:
        """With the epoch of the last answer, should it not have come to the member yet."""
        place = self.place
        if isinstance(last, messages.ConsumerGroupHeartbeatResponse):
            place = place._replace(epoch=last.member_epoch)
        beat = Beat(place, self.now, self.said, self.held)
        return beat.request, beat.version(versions)


def leaving(place: Place) -> messages.ConsumerGroupHeartbeatRequest:
    """The last heartbeat. A static member leaves for a while: what it had is kept for it until its session ends."""
    return messages.ConsumerGroupHeartbeatRequest(
        group_id=place.group_id,
        member_id=place.member_id,
        member_epoch=LEAVING if place.instance_id is None else LEAVING_FOR_A_WHILE,
        instance_id=place.instance_id,
    )


def told(response: messages.ConsumerGroupHeartbeatResponse, member_id: str) -> Told:
    """A good answer to the heartbeat of `member_id`."""
    assignment = None
    if response.assignment is not None:
        assignment = frozenset(
            Part(topic.topic_id, number)
            for topic in response.assignment.topic_partitions
            for number in topic.partitions
        )
    return Told(
        response.member_id or member_id, response.member_epoch, response.heartbeat_interval_ms / 1000, assignment
    )


def _by_topic(parts: Iterable[Part]) -> dict[bytes, list[int]]:
    topics: dict[bytes, list[int]] = {}
    for topic_id, number in sorted(parts):
        topics.setdefault(topic_id, []).append(number)
    return topics
