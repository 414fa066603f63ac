"""The subscriptions and assignments that group members exchange, as assignors of aiokafka see
them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final, Self

from aiokwire.protocol import decode_embedded, encode_embedded
from aiokwire.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from aiokwire.protocol.messages.consumer_protocol_assignment import TopicPartition as TopicEntry
from aiokwire.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from aiokwire.types import TopicPartition


class _Value:
    """Compared by its attributes."""

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if type(other) is type(self) else NotImplemented

    __hash__: ClassVar[None]  # type: ignore[assignment]  # its lists may change

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


class ConsumerProtocolMemberMetadata(_Value):
    """A member's subscription."""

    def __init__(self, version: int, subscription: Iterable[str], user_data: bytes) -> None:
        self.version = version
        self.subscription: list[str] = list(subscription)
        self.user_data = user_data

    def encode(self) -> bytes:
        """Return the bytes of JoinGroup."""
        data = ConsumerProtocolSubscription(topics=self.subscription, user_data=self.user_data)
        return encode_embedded(data, self.version)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read the bytes of JoinGroup."""
        found = decode_embedded(data, ConsumerProtocolSubscription)
        return cls(int.from_bytes(data[:2]), found.topics, bytes(found.user_data or b""))


class ConsumerProtocolMemberAssignment(_Value):
    """A member's assignment: pairs of a topic and its partitions."""

    def __init__(self, version: int, assignment: Iterable[Any], user_data: bytes) -> None:
        self.version = version
        self.assignment: list[tuple[Any, list[Any]]] = [(topic, list(partitions)) for topic, partitions in assignment]
        self.user_data = user_data

    def partitions(self) -> list[TopicPartition]:
        """Return the assigned partitions."""
        return [TopicPartition(topic, partition) for topic, found in self.assignment for partition in found]

    def encode(self) -> bytes:
        """Return the bytes of SyncGroup."""
        entries = [TopicEntry(topic=topic, partitions=partitions) for topic, partitions in self.assignment]
        data = ConsumerProtocolAssignment(assigned_partitions=entries, user_data=self.user_data)
        return encode_embedded(data, self.version)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read the bytes of SyncGroup."""
        found = decode_embedded(data, ConsumerProtocolAssignment)
        entries = [(each.topic, each.partitions) for each in found.assigned_partitions]
        return cls(int.from_bytes(data[:2]), entries, bytes(found.user_data or b""))


class ConsumerProtocol:
    """The names of the protocol."""

    PROTOCOL_TYPE: Final = "consumer"
    ASSIGNMENT_STRATEGIES: Final = ("range", "roundrobin")
    METADATA: Final = ConsumerProtocolMemberMetadata
    ASSIGNMENT: Final = ConsumerProtocolMemberAssignment
