"""ControlledShutdown (key 7), versions 0-3, flexible from 3.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

from aiokwire.protocol._codec import PlainReader, PlainWriter
from aiokwire.protocol.api import (
    EMPTY,
    Request,
    Response,
    Struct,
    UnknownTags,
    VersionRange,
)
from aiokwire.protocol.api_key import ApiKey


class RemainingPartition(Struct):
    """Stands in `ControlledShutdownResponse.remaining_partitions`."""

    __slots__ = ("topic_name", "partition_index", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partition_index: int = partition_index
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        out.int32(self.partition_index)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.partition_index = src.int32()
        self.unknown_tags = src.tags()
        return self


class ControlledShutdownResponse(Response):
    """Answers `ControlledShutdownRequest`."""

    API: ClassVar[ApiKey] = ApiKey.CONTROLLED_SHUTDOWN
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 3, flexible=3)
    __slots__ = ("error_code", "remaining_partitions", "unknown_tags")

    def __init__(
        self,
        *,
        error_code: int = 0,
        remaining_partitions: list[RemainingPartition] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.remaining_partitions: list[RemainingPartition] = (
            [] if remaining_partitions is EMPTY else remaining_partitions
        )
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.array_length(len(self.remaining_partitions))
        for remaining_partition in self.remaining_partitions:
            remaining_partition.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.remaining_partitions = src.structs(RemainingPartition, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class ControlledShutdownRequest(Request[ControlledShutdownResponse]):
    """Answered by `ControlledShutdownResponse`."""

    API: ClassVar[ApiKey] = ApiKey.CONTROLLED_SHUTDOWN
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 3, flexible=3)
    SERVED_FROM: ClassVar[int | None] = None
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ()
    RESPONSE: ClassVar[type[ControlledShutdownResponse]] = ControlledShutdownResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"broker_epoch": 2}
    __slots__ = ("broker_id", "broker_epoch", "unknown_tags")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,  # v2+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.broker_id)
        if version >= 2:
            out.int64(self.broker_epoch)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.broker_id = src.int32()
        self.broker_epoch = src.int64() if version >= 2 else -1
        self.unknown_tags = src.tags()
        return self
