"""What members of a classic group send one another through the coordinator, which does not read it: in JoinGroup
what they subscribe to and own, in SyncGroup what they are given. Java calls it the consumer protocol.

Used by the driver of the classic protocol; what is decoded here is what assignors work on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from aiokwire.errors import ProtocolViolation
from aiokwire.protocol import decode_embedded, encode_embedded
from aiokwire.protocol.messages import consumer_protocol_assignment, consumer_protocol_subscription
from aiokwire.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from aiokwire.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from aiokwire.types import TopicPartition

NEWEST_VERSION: Final = ConsumerProtocolSubscription.VERSIONS.max
NO_GENERATION: Final = -1

# More partition numbers than one topic can have: other members' bytes are not believed beyond it.
_MOST_PARTITIONS: Final = 1_000_000


class MemberSubscription(NamedTuple):
    """One member, as the assignor sees it.

    `owned` and `generation` are empty and -1 from a member whose client is older than they are; `user_data` is what its
    assignor wrote.
    """

    member_id: str
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    user_data: bytes = b""
    instance_id: str | None = None
    rack_id: str | None = None


class _Entry(Protocol):
    topic: str
    partitions: list[int]


def encode_subscription(
    topics: Iterable[str],
    user_data: bytes = b"",
    owned: Iterable[TopicPartition] = (),
    generation: int = NO_GENERATION,
    rack: str | None = None,
    version: int = NEWEST_VERSION,
) -> bytes:
    """A member's subscription. An older version leaves out what it cannot carry: before 1 `owned`, before 2
    `generation`, before 3 `rack`."""
    message = ConsumerProtocolSubscription(topics=sorted(set(topics)), user_data=user_data or None)
    if version >= 1:
        message.owned_partitions = [
            consumer_protocol_subscription.TopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in _by_topic(owned)
        ]
    if version >= 2:
        message.generation_id = generation
    if version >= 3:
        message.rack_id = rack or None
    return encode_embedded(message, version)


def decode_subscription(member_id: str, data: bytes, instance_id: str | None = None) -> MemberSubscription:
    """What a member subscribed to; a version newer than known here is read as the newest known.

    Raises: ProtocolViolation: the bytes are not a subscription; the error names the member.
    """
    try:
        message = decode_embedded(data, ConsumerProtocolSubscription)
        owned = _partitions(message.owned_partitions)
    except ProtocolViolation as error:
        raise ProtocolViolation(f"the subscription of member {member_id!r}: {error}") from None
    return MemberSubscription(
        member_id=member_id,
        topics=tuple(dict.fromkeys(message.topics)),
        owned=tuple(owned),
        generation=message.generation_id,
        user_data=bytes(message.user_data or b""),
        instance_id=instance_id,
        rack_id=message.rack_id or None,
    )


def encode_assignment(
    partitions: Iterable[TopicPartition], user_data: bytes = b"", version: int = NEWEST_VERSION
) -> bytes:
    """Encode what the leader assigns to one member."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            consumer_protocol_assignment.TopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in _by_topic(partitions)
        ],
        user_data=user_data or None,
    )
    return encode_embedded(message, version)


def decode_assignment(data: bytes) -> tuple[list[TopicPartition], bytes]:
    """The partitions that this member was given, in order, and what the leader's assignor wrote for it.

    No bytes at all, which is what a coordinator hands to a member that the leader left out, mean no partition.

    Raises: ProtocolViolation: the bytes are not an assignment.
    """
    if not data:
        return [], b""
    message = decode_embedded(data, ConsumerProtocolAssignment)
    return _partitions(message.assigned_partitions), bytes(message.user_data or b"")


def _by_topic(partitions: Iterable[TopicPartition]) -> Iterable[tuple[str, list[int]]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics.items()


def _partitions(entries: Iterable[_Entry]) -> list[TopicPartition]:
    found: dict[TopicPartition, None] = {}
    for entry in entries:
        for partition in entry.partitions:
            if not 0 <= partition < _MOST_PARTITIONS:
                raise ProtocolViolation(f"{entry.topic!r} has no partition {partition}")
            found[TopicPartition(entry.topic, partition)] = None
    return list(found)
