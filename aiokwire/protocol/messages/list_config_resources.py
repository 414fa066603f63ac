"""ListConfigResources (key 74), versions 0-1, flexible from 0.

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


class ConfigResource(Struct):
    """Stands in `ListConfigResourcesResponse.config_resources`."""

    __slots__ = ("resource_name", "resource_type", "unknown_tags")

    def __init__(
        self,
        *,
        resource_name: str = "",
        resource_type: int = 16,  # v1+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.resource_name: str = resource_name
        self.resource_type: int = resource_type
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.resource_name)
        if version >= 1:
            out.int8(self.resource_type)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.resource_name = src.string()
        self.resource_type = src.int8() if version >= 1 else 16
        self.unknown_tags = src.tags()
        return self


class ListConfigResourcesResponse(Response):
    """Answers `ListConfigResourcesRequest`."""

    API: ClassVar[ApiKey] = ApiKey.LIST_CONFIG_RESOURCES
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=0)
    __slots__ = ("throttle_time_ms", "error_code", "config_resources", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        config_resources: list[ConfigResource] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.config_resources: list[ConfigResource] = [] if config_resources is EMPTY else config_resources
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.array_length(len(self.config_resources))
        for config_resource in self.config_resources:
            config_resource.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.config_resources = src.structs(ConfigResource, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class ListConfigResourcesRequest(Request[ListConfigResourcesResponse]):
    """Answered by `ListConfigResourcesResponse`."""

    API: ClassVar[ApiKey] = ApiKey.LIST_CONFIG_RESOURCES
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[ListConfigResourcesResponse]] = ListConfigResourcesResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"resource_types": 1}
    __slots__ = ("resource_types", "unknown_tags")

    def __init__(
        self,
        *,
        resource_types: list[int] = EMPTY,  # v1+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.resource_types: list[int] = [] if resource_types is EMPTY else resource_types
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 1:
            out.int8s(self.resource_types)
        elif self.resource_types:
            raise self.unsupported("resource_types", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.resource_types = src.int8s() if version >= 1 else []
        self.unknown_tags = src.tags()
        return self
