"""DescribeCluster (key 60), versions 0-2, flexible from 0.

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


class DescribeClusterBroker(Struct):
    """Stands in `DescribeClusterResponse.brokers`."""

    __slots__ = ("broker_id", "host", "port", "rack", "is_fenced", "unknown_tags")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        is_fenced: bool = False,  # v2+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.broker_id: int = broker_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack
        self.is_fenced: bool = is_fenced
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.broker_id)
        out.string(self.host)
        out.int32(self.port)
        out.nullable_string(self.rack)
        if version >= 2:
            out.boolean(self.is_fenced)
        elif self.is_fenced:
            raise self.unsupported("is_fenced", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.broker_id = src.int32()
        self.host = src.string()
        self.port = src.int32()
        self.rack = src.nullable_string()
        self.is_fenced = src.boolean() if version >= 2 else False
        self.unknown_tags = src.tags()
        return self


class DescribeClusterResponse(Response):
    """Answers `DescribeClusterRequest`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_CLUSTER
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=0)
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "endpoint_type",
        "cluster_id",
        "controller_id",
        "brokers",
        "cluster_authorized_operations",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,  # v1+
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterBroker] = EMPTY,
        cluster_authorized_operations: int = -2147483648,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.endpoint_type: int = endpoint_type
        self.cluster_id: str = cluster_id
        self.controller_id: int = controller_id
        self.brokers: list[DescribeClusterBroker] = [] if brokers is EMPTY else brokers
        self.cluster_authorized_operations: int = cluster_authorized_operations
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        if version >= 1:
            out.int8(self.endpoint_type)
        elif self.endpoint_type != 1:
            raise self.unsupported("endpoint_type", version)
        out.string(self.cluster_id)
        out.int32(self.controller_id)
        out.array_length(len(self.brokers))
        for describe_cluster_broker in self.brokers:
            describe_cluster_broker.encode(out, version)
        out.int32(self.cluster_authorized_operations)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.endpoint_type = src.int8() if version >= 1 else 1
        self.cluster_id = src.string()
        self.controller_id = src.int32()
        self.brokers = src.structs(DescribeClusterBroker, version)
        self.cluster_authorized_operations = src.int32()
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class DescribeClusterRequest(Request[DescribeClusterResponse]):
    """Answered by `DescribeClusterResponse`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_CLUSTER
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[DescribeClusterResponse]] = DescribeClusterResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"endpoint_type": 1, "include_fenced_brokers": 2}
    __slots__ = ("include_cluster_authorized_operations", "endpoint_type", "include_fenced_brokers", "unknown_tags")

    def __init__(
        self,
        *,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,  # v1+
        include_fenced_brokers: bool = False,  # v2+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.include_cluster_authorized_operations: bool = include_cluster_authorized_operations
        self.endpoint_type: int = endpoint_type
        self.include_fenced_brokers: bool = include_fenced_brokers
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.boolean(self.include_cluster_authorized_operations)
        if version >= 1:
            out.int8(self.endpoint_type)
        elif self.endpoint_type != 1:
            raise self.unsupported("endpoint_type", version)
        if version >= 2:
            out.boolean(self.include_fenced_brokers)
        elif self.include_fenced_brokers:
            raise self.unsupported("include_fenced_brokers", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.include_cluster_authorized_operations = src.boolean()
        self.endpoint_type = src.int8() if version >= 1 else 1
        self.include_fenced_brokers = src.boolean() if version >= 2 else False
        self.unknown_tags = src.tags()
        return self
