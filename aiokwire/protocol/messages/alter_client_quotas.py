"""AlterClientQuotas (key 49), versions 0-1, flexible from 1.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator
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


class EntityData(Struct):
    """Stands in `AlterClientQuotasResponseEntryData.entity`."""

    __slots__ = ("entity_type", "entity_name", "unknown_tags")

    def __init__(
        self,
        *,
        entity_type: str = "",
        entity_name: str | None = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.entity_type: str = entity_type
        self.entity_name: str | None = entity_name
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.entity_type)
        out.nullable_string(self.entity_name)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.entity_type = src.string()
        self.entity_name = src.nullable_string()
        self.unknown_tags = src.tags()
        return self


class AlterClientQuotasResponseEntryData(Struct):
    """Stands in `AlterClientQuotasResponse.entries`."""

    __slots__ = ("error_code", "error_message", "entity", "unknown_tags")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        entity: list[EntityData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.entity: list[EntityData] = [] if entity is EMPTY else entity
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.array_length(len(self.entity))
        for entity_data in self.entity:
            entity_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.entity = src.structs(EntityData, version)
        self.unknown_tags = src.tags()
        return self


class AlterClientQuotasResponse(Response):
    """Answers `AlterClientQuotasRequest`."""

    API: ClassVar[ApiKey] = ApiKey.ALTER_CLIENT_QUOTAS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=1)
    __slots__ = ("throttle_time_ms", "entries", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        entries: list[AlterClientQuotasResponseEntryData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.entries: list[AlterClientQuotasResponseEntryData] = [] if entries is EMPTY else entries
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.array_length(len(self.entries))
        for alter_client_quotas_response_entry_data in self.entries:
            alter_client_quotas_response_entry_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.entries = src.structs(AlterClientQuotasResponseEntryData, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        for entry in self.entries:
            yield entry.error_code


class OpData(Struct):
    """Stands in `AlterClientQuotasRequestEntryData.ops`."""

    __slots__ = ("key", "value", "remove", "unknown_tags")

    def __init__(
        self,
        *,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.key: str = key
        self.value: float = value
        self.remove: bool = remove
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.key)
        out.float64(self.value)
        out.boolean(self.remove)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.key = src.string()
        self.value = src.float64()
        self.remove = src.boolean()
        self.unknown_tags = src.tags()
        return self


class AlterClientQuotasRequestEntryData(Struct):
    """Stands in `AlterClientQuotasRequest.entries`."""

    __slots__ = ("entity", "ops", "unknown_tags")

    def __init__(
        self,
        *,
        entity: list[EntityData] = EMPTY,
        ops: list[OpData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.entity: list[EntityData] = [] if entity is EMPTY else entity
        self.ops: list[OpData] = [] if ops is EMPTY else ops
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.entity))
        for entity_data in self.entity:
            entity_data.encode(out, version)
        out.array_length(len(self.ops))
        for op_data in self.ops:
            op_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.entity = src.structs(EntityData, version)
        self.ops = src.structs(OpData, version)
        self.unknown_tags = src.tags()
        return self


class AlterClientQuotasRequest(Request[AlterClientQuotasResponse]):
    """Answered by `AlterClientQuotasResponse`."""

    API: ClassVar[ApiKey] = ApiKey.ALTER_CLIENT_QUOTAS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=1)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[AlterClientQuotasResponse]] = AlterClientQuotasResponse
    __slots__ = ("entries", "validate_only", "unknown_tags")

    def __init__(
        self,
        *,
        entries: list[AlterClientQuotasRequestEntryData] = EMPTY,
        validate_only: bool = False,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.entries: list[AlterClientQuotasRequestEntryData] = [] if entries is EMPTY else entries
        self.validate_only: bool = validate_only
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.entries))
        for alter_client_quotas_request_entry_data in self.entries:
            alter_client_quotas_request_entry_data.encode(out, version)
        out.boolean(self.validate_only)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.entries = src.structs(AlterClientQuotasRequestEntryData, version)
        self.validate_only = src.boolean()
        self.unknown_tags = src.tags()
        return self
