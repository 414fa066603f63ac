"""The bytes that members of a classic group exchange through the coordinator, which does not read
them: subscriptions in JoinGroup, assignments in SyncGroup. Java calls this the consumer protocol.

Used by the driver of the classic protocol. Assignors receive the decoded subscriptions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol, TypeVar

from aiokwire.errors import ProtocolViolation
from aiokwire.protocol import decode_embedded, encode_embedded
from aiokwire.protocol.messages import consumer_protocol_assignment, consumer_protocol_subscription
from aiokwire.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from aiokwire.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from aiokwire.types import TopicPartition

TopicT = TypeVar("TopicT", str, bytes)

NEWEST_VERSION: Final = ConsumerProtocolSubscription.VERSIONS.max
NO_GENERATION: Final = -1

# More partitions than a topic can have: larger numbers in other members' bytes are rejected.
_MOST_PARTITIONS: Final = 1_000_000


class MemberSubscription(NamedTuple):
    """One member, as the assignor sees it.

    `owned` is empty and `generation` is -1 if the member's client is too old to send them;
    `user_data` is written by its assignor.
    """

    member_id: str
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    user_data: bytes = b""
    instance_id: str | None = None
    rack_id: str | None = None


def by_topic(partitions: Iterable[tuple[TopicT, int]]) -> dict[TopicT, list[int]]:
    """Return the partition numbers of each topic, all in order. Topics are names or ids."""
    topics: dict[TopicT, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


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
    """Encode a member's subscription. Older versions leave fields out: before 1 `owned`, before 2
    `generation`, before 3 `rack`."""
    message = ConsumerProtocolSubscription(
        topics=sorted(set(topics)),
        user_data=user_data or None,
        owned_partitions=[
            consumer_protocol_subscription.TopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(owned if version >= 1 else ()).items()
        ],
        generation_id=generation if version >= 2 else NO_GENERATION,
        rack_id=rack or None if version >= 3 else None,
    )
    return encode_embedded(message, version)


def decode_subscription(member_id: str, data: bytes, instance_id: str | None = None) -> MemberSubscription:
    """Decode a member's subscription. A version newer than the newest known is read as that one.

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
            for topic, numbers in by_topic(partitions).items()
        ],
        user_data=user_data or None,
    )
    return encode_embedded(message, version)


def decode_assignment(data: bytes) -> tuple[list[TopicPartition], bytes]:
    """Return the partitions assigned to this member, in order, and the user data of the leader's
    assignor.

    Empty bytes mean no partitions: the coordinator sends them to a member that the leader left out.

    Raises: ProtocolViolation: the bytes are not an assignment.
    """
    if not data:
        return [], b""
    message = decode_embedded(data, ConsumerProtocolAssignment)
    return _partitions(message.assigned_partitions), bytes(message.user_data or b"")


def _partitions(entries: Iterable[_Entry]) -> list[TopicPartition]:
    found: dict[TopicPartition, None] = {}
    for entry in entries:
        for partition in entry.partitions:
            if not 0 <= partition < _MOST_PARTITIONS:
                raise ProtocolViolation(f"{entry.topic!r} has no partition {partition}")
            found[TopicPartition(entry.topic, partition)] = None
    return list(found)
