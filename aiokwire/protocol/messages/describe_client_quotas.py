"""DescribeClientQuotas (key 48), versions 0-1, flexible from 1.

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
    """Stands in `EntryData.entity`."""

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


class ValueData(Struct):
    """Stands in `EntryData.values`."""

    __slots__ = ("key", "value", "unknown_tags")

    def __init__(
        self,
        *,
        key: str = "",
        value: float = 0.0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.key: str = key
        self.value: float = value
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.key)
        out.float64(self.value)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.key = src.string()
        self.value = src.float64()
        self.unknown_tags = src.tags()
        return self


class EntryData(Struct):
    """Stands in `DescribeClientQuotasResponse.entries`."""

    __slots__ = ("entity", "values", "unknown_tags")

    def __init__(
        self,
        *,
        entity: list[EntityData] = EMPTY,
        values: list[ValueData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.entity: list[EntityData] = [] if entity is EMPTY else entity
        self.values: list[ValueData] = [] if values is EMPTY else values
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.entity))
        for entity_data in self.entity:
            entity_data.encode(out, version)
        out.array_length(len(self.values))
        for value_data in self.values:
            value_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.entity = src.structs(EntityData, version)
        self.values = src.structs(ValueData, version)
        self.unknown_tags = src.tags()
        return self


class DescribeClientQuotasResponse(Response):
    """Answers `DescribeClientQuotasRequest`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_CLIENT_QUOTAS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=1)
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "entries", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: list[EntryData] | None = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.entries: list[EntryData] | None = [] if entries is EMPTY else entries
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.nullable_array_length(-1 if self.entries is None else len(self.entries))
        for entry_data in self.entries or ():
            entry_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.entries = src.nullable_structs(EntryData, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class ComponentData(Struct):
    """Stands in `DescribeClientQuotasRequest.components`."""

    __slots__ = ("entity_type", "match_type", "match", "unknown_tags")

    def __init__(
        self,
        *,
        entity_type: str = "",
        match_type: int = 0,
        match: str | None = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.entity_type: str = entity_type
        self.match_type: int = match_type
        self.match: str | None = match
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.entity_type)
        out.int8(self.match_type)
        out.nullable_string(self.match)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.entity_type = src.string()
        self.match_type = src.int8()
        self.match = src.nullable_string()
        self.unknown_tags = src.tags()
        return self


class DescribeClientQuotasRequest(Request[DescribeClientQuotasResponse]):
    """Answered by `DescribeClientQuotasResponse`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_CLIENT_QUOTAS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=1)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[DescribeClientQuotasResponse]] = DescribeClientQuotasResponse
    __slots__ = ("components", "strict", "unknown_tags")

    def __init__(
        self,
        *,
        components: list[ComponentData] = EMPTY,
        strict: bool = False,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.components: list[ComponentData] = [] if components is EMPTY else components
        self.strict: bool = strict
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.components))
        for component_data in self.components:
            component_data.encode(out, version)
        out.boolean(self.strict)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.components = src.structs(ComponentData, version)
        self.strict = src.boolean()
        self.unknown_tags = src.tags()
        return self
