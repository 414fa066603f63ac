"""ConsumerProtocolAssignment, versions 0-3, not flexible.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from typing import ClassVar, Self

from aiokwire.protocol._codec import PlainReader, PlainWriter
from aiokwire.protocol.api import (
    EMPTY,
    Data,
    Struct,
    VersionRange,
)


class TopicPartition(Struct):
    """Stands in `ConsumerProtocolAssignment.assigned_partitions`."""

    __slots__ = ("topic", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is EMPTY else partitions

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic)
        out.int32s(self.partitions)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic = src.string()
        self.partitions = src.int32s()
        return self


class ConsumerProtocolAssignment(Data):
    """Data that stands inside other messages."""

    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 3, flexible=4)
    __slots__ = ("assigned_partitions", "user_data")

    def __init__(
        self,
        *,
        assigned_partitions: list[TopicPartition] = EMPTY,
        user_data: bytes | None = None,
    ) -> None:
        self.assigned_partitions: list[TopicPartition] = [] if assigned_partitions is EMPTY else assigned_partitions
        self.user_data: bytes | None = user_data

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.assigned_partitions))
        for topic_partition in self.assigned_partitions:
            topic_partition.encode(out, version)
        out.nullable_bytes(self.user_data)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.assigned_partitions = src.structs(TopicPartition, version)
        self.user_data = src.nullable_bytes()
        return self
