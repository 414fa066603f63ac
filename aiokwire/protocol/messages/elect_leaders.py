"""ElectLeaders (key 43), versions 0-2, flexible from 2.

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


class PartitionResult(Struct):
    """Stands in `ReplicaElectionResult.partition_result`."""

    __slots__ = ("partition_id", "error_code", "error_message", "unknown_tags")

    def __init__(
        self,
        *,
        partition_id: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_id: int = partition_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_id)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_id = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.unknown_tags = src.tags()
        return self


class ReplicaElectionResult(Struct):
    """Stands in `ElectLeadersResponse.replica_election_results`."""

    __slots__ = ("topic", "partition_result", "unknown_tags")

    def __init__(
        self,
        *,
        topic: str = "",
        partition_result: list[PartitionResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic: str = topic
        self.partition_result: list[PartitionResult] = [] if partition_result is EMPTY else partition_result
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic)
        out.array_length(len(self.partition_result))
        for partition_result in self.partition_result:
            partition_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic = src.string()
        self.partition_result = src.structs(PartitionResult, version)
        self.unknown_tags = src.tags()
        return self


class ElectLeadersResponse(Response):
    """Answers `ElectLeadersRequest`."""

    API: ClassVar[ApiKey] = ApiKey.ELECT_LEADERS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=2)
    __slots__ = ("throttle_time_ms", "error_code", "replica_election_results", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,  # v1+
        replica_election_results: list[ReplicaElectionResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.replica_election_results: list[ReplicaElectionResult] = (
            [] if replica_election_results is EMPTY else replica_election_results
        )
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        if version >= 1:
            out.int16(self.error_code)
        elif self.error_code != 0:
            raise self.unsupported("error_code", version)
        out.array_length(len(self.replica_election_results))
        for replica_election_result in self.replica_election_results:
            replica_election_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16() if version >= 1 else 0
        self.replica_election_results = src.structs(ReplicaElectionResult, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class TopicPartitions(Struct):
    """Stands in `ElectLeadersRequest.topic_partitions`."""

    __slots__ = ("topic", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic)
        out.int32s(self.partitions)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic = src.string()
        self.partitions = src.int32s()
        self.unknown_tags = src.tags()
        return self


class ElectLeadersRequest(Request[ElectLeadersResponse]):
    """Answered by `ElectLeadersResponse`."""

    API: ClassVar[ApiKey] = ApiKey.ELECT_LEADERS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=2)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[ElectLeadersResponse]] = ElectLeadersResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"election_type": 1}
    __slots__ = ("election_type", "topic_partitions", "timeout_ms", "unknown_tags")

    def __init__(
        self,
        *,
        election_type: int = 0,  # v1+
        topic_partitions: list[TopicPartitions] | None = EMPTY,
        timeout_ms: int = 60000,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.election_type: int = election_type
        self.topic_partitions: list[TopicPartitions] | None = [] if topic_partitions is EMPTY else topic_partitions
        self.timeout_ms: int = timeout_ms
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 1:
            out.int8(self.election_type)
        elif self.election_type != 0:
            raise self.unsupported("election_type", version)
        out.nullable_array_length(-1 if self.topic_partitions is None else len(self.topic_partitions))
        for topic_partitions in self.topic_partitions or ():
            topic_partitions.encode(out, version)
        out.int32(self.timeout_ms)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.election_type = src.int8() if version >= 1 else 0
        self.topic_partitions = src.nullable_structs(TopicPartitions, version)
        self.timeout_ms = src.int32()
        self.unknown_tags = src.tags()
        return self

    def broker_wait_ms(self) -> int:
        return max(self.timeout_ms, 0)
