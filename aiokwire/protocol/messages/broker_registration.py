"""BrokerRegistration (key 62), versions 0-4, flexible from 0.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

from aiokwire.protocol._codec import PlainReader, PlainWriter
from aiokwire.protocol.api import (
    EMPTY,
    ZERO_UUID,
    Request,
    Response,
    Struct,
    UnknownTags,
    VersionRange,
)
from aiokwire.protocol.api_key import ApiKey


class BrokerRegistrationResponse(Response):
    """Answers `BrokerRegistrationRequest`."""

    API: ClassVar[ApiKey] = ApiKey.BROKER_REGISTRATION
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 4, flexible=0)
    __slots__ = ("throttle_time_ms", "error_code", "broker_epoch", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        broker_epoch: int = -1,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.broker_epoch: int = broker_epoch
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.int64(self.broker_epoch)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.broker_epoch = src.int64()
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class Listener(Struct):
    """Stands in `BrokerRegistrationRequest.listeners`."""

    __slots__ = ("name", "host", "port", "security_protocol", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
        security_protocol: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port
        self.security_protocol: int = security_protocol
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.string(self.host)
        out.uint16(self.port)
        out.int16(self.security_protocol)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.host = src.string()
        self.port = src.uint16()
        self.security_protocol = src.int16()
        self.unknown_tags = src.tags()
        return self


class Feature(Struct):
    """Stands in `BrokerRegistrationRequest.features`."""

    __slots__ = ("name", "min_supported_version", "max_supported_version", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        min_supported_version: int = 0,
        max_supported_version: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.min_supported_version: int = min_supported_version
        self.max_supported_version: int = max_supported_version
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.int16(self.min_supported_version)
        out.int16(self.max_supported_version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.min_supported_version = src.int16()
        self.max_supported_version = src.int16()
        self.unknown_tags = src.tags()
        return self


class BrokerRegistrationRequest(Request[BrokerRegistrationResponse]):
    """Answered by `BrokerRegistrationResponse`."""

    API: ClassVar[ApiKey] = ApiKey.BROKER_REGISTRATION
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 4, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("controller",)
    RESPONSE: ClassVar[type[BrokerRegistrationResponse]] = BrokerRegistrationResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {
        "is_migrating_zk_broker": 1,
        "log_dirs": 2,
        "previous_broker_epoch": 3,
    }
    __slots__ = (
        "broker_id",
        "cluster_id",
        "incarnation_id",
        "listeners",
        "features",
        "rack",
        "is_migrating_zk_broker",
        "log_dirs",
        "previous_broker_epoch",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        cluster_id: str = "",
        incarnation_id: bytes = ZERO_UUID,
        listeners: list[Listener] = EMPTY,
        features: list[Feature] = EMPTY,
        rack: str | None = "",
        is_migrating_zk_broker: bool = False,  # v1+
        log_dirs: list[bytes] = EMPTY,  # v2+
        previous_broker_epoch: int = -1,  # v3+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.broker_id: int = broker_id
        self.cluster_id: str = cluster_id
        self.incarnation_id: bytes = incarnation_id
        self.listeners: list[Listener] = [] if listeners is EMPTY else listeners
        self.features: list[Feature] = [] if features is EMPTY else features
        self.rack: str | None = rack
        self.is_migrating_zk_broker: bool = is_migrating_zk_broker
        self.log_dirs: list[bytes] = [] if log_dirs is EMPTY else log_dirs
        self.previous_broker_epoch: int = previous_broker_epoch
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.broker_id)
        out.string(self.cluster_id)
        out.uuid(self.incarnation_id)
        out.array_length(len(self.listeners))
        for listener in self.listeners:
            listener.encode(out, version)
        out.array_length(len(self.features))
        for feature in self.features:
            feature.encode(out, version)
        out.nullable_string(self.rack)
        if version >= 1:
            out.boolean(self.is_migrating_zk_broker)
        elif self.is_migrating_zk_broker:
            raise self.unsupported("is_migrating_zk_broker", version)
        if version >= 2:
            out.uuids(self.log_dirs)
        if version >= 3:
            out.int64(self.previous_broker_epoch)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.broker_id = src.int32()
        self.cluster_id = src.string()
        self.incarnation_id = src.uuid()
        self.listeners = src.structs(Listener, version)
        self.features = src.structs(Feature, version)
        self.rack = src.nullable_string()
        self.is_migrating_zk_broker = src.boolean() if version >= 1 else False
        self.log_dirs = src.uuids() if version >= 2 else []
        self.previous_broker_epoch = src.int64() if version >= 3 else -1
        self.unknown_tags = src.tags()
        return self
