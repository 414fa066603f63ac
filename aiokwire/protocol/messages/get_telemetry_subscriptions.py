"""GetTelemetrySubscriptions (key 71), versions 0, flexible from 0.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Self

from aiokwire.protocol._codec import PlainReader, PlainWriter
from aiokwire.protocol.api import (
    EMPTY,
    ZERO_UUID,
    Request,
    Response,
    UnknownTags,
    VersionRange,
)
from aiokwire.protocol.api_key import ApiKey


class GetTelemetrySubscriptionsResponse(Response):
    """Answers `GetTelemetrySubscriptionsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.GET_TELEMETRY_SUBSCRIPTIONS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "client_instance_id",
        "subscription_id",
        "accepted_compression_types",
        "push_interval_ms",
        "telemetry_max_bytes",
        "delta_temporality",
        "requested_metrics",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        client_instance_id: bytes = ZERO_UUID,
        subscription_id: int = 0,
        accepted_compression_types: list[int] = EMPTY,
        push_interval_ms: int = 0,
        telemetry_max_bytes: int = 0,
        delta_temporality: bool = False,
        requested_metrics: list[str] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.client_instance_id: bytes = client_instance_id
        self.subscription_id: int = subscription_id
        self.accepted_compression_types: list[int] = (
            [] if accepted_compression_types is EMPTY else accepted_compression_types
        )
        self.push_interval_ms: int = push_interval_ms
        self.telemetry_max_bytes: int = telemetry_max_bytes
        self.delta_temporality: bool = delta_temporality
        self.requested_metrics: list[str] = [] if requested_metrics is EMPTY else requested_metrics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.uuid(self.client_instance_id)
        out.int32(self.subscription_id)
        out.int8s(self.accepted_compression_types)
        out.int32(self.push_interval_ms)
        out.int32(self.telemetry_max_bytes)
        out.boolean(self.delta_temporality)
        out.strings(self.requested_metrics)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.client_instance_id = src.uuid()
        self.subscription_id = src.int32()
        self.accepted_compression_types = src.int8s()
        self.push_interval_ms = src.int32()
        self.telemetry_max_bytes = src.int32()
        self.delta_temporality = src.boolean()
        self.requested_metrics = src.strings()
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class GetTelemetrySubscriptionsRequest(Request[GetTelemetrySubscriptionsResponse]):
    """Answered by `GetTelemetrySubscriptionsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.GET_TELEMETRY_SUBSCRIPTIONS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[GetTelemetrySubscriptionsResponse]] = GetTelemetrySubscriptionsResponse
    __slots__ = ("client_instance_id", "unknown_tags")

    def __init__(
        self,
        *,
        client_instance_id: bytes = ZERO_UUID,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.client_instance_id: bytes = client_instance_id
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.uuid(self.client_instance_id)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.client_instance_id = src.uuid()
        self.unknown_tags = src.tags()
        return self
