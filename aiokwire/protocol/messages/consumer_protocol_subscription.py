"""ConsumerProtocolSubscription, versions 0-3, not flexible.

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
    """Stands in `ConsumerProtocolSubscription.owned_partitions`."""

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


class ConsumerProtocolSubscription(Data):
    """Data that stands inside other messages."""

    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 3, flexible=4)
    __slots__ = ("topics", "user_data", "owned_partitions", "generation_id", "rack_id")

    def __init__(
        self,
        *,
        topics: list[str] = EMPTY,
        user_data: bytes | None = None,
        owned_partitions: list[TopicPartition] = EMPTY,  # v1+
        generation_id: int = -1,  # v2+
        rack_id: str | None = None,  # v3+
    ) -> None:
        self.topics: list[str] = [] if topics is EMPTY else topics
        self.user_data: bytes | None = user_data
        self.owned_partitions: list[TopicPartition] = [] if owned_partitions is EMPTY else owned_partitions
        self.generation_id: int = generation_id
        self.rack_id: str | None = rack_id

    def encode(self, out: PlainWriter, version: int) -> None:
        out.strings(self.topics)
        out.nullable_bytes(self.user_data)
        if version >= 1:
            out.array_length(len(self.owned_partitions))
            for topic_partition in self.owned_partitions:
                topic_partition.encode(out, version)
        if version >= 2:
            out.int32(self.generation_id)
        if version >= 3:
            out.nullable_string(self.rack_id)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topics = src.strings()
        self.user_data = src.nullable_bytes()
        self.owned_partitions = src.structs(TopicPartition, version) if version >= 1 else []
        self.generation_id = src.int32() if version >= 2 else -1
        self.rack_id = src.nullable_string() if version >= 3 else None
        return self
