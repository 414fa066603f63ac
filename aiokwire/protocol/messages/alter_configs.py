"""AlterConfigs (key 33), versions 0-2, flexible from 2.

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


class AlterConfigsResourceResponse(Struct):
    """Stands in `AlterConfigsResponse.responses`."""

    __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "unknown_tags")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.int8(self.resource_type)
        out.string(self.resource_name)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.resource_type = src.int8()
        self.resource_name = src.string()
        self.unknown_tags = src.tags()
        return self


class AlterConfigsResponse(Response):
    """Answers `AlterConfigsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.ALTER_CONFIGS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=2)
    __slots__ = ("throttle_time_ms", "responses", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[AlterConfigsResourceResponse] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.responses: list[AlterConfigsResourceResponse] = [] if responses is EMPTY else responses
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.array_length(len(self.responses))
        for alter_configs_resource_response in self.responses:
            alter_configs_resource_response.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.responses = src.structs(AlterConfigsResourceResponse, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        for entry in self.responses:
            yield entry.error_code


class AlterableConfig(Struct):
    """Stands in `AlterConfigsResource.configs`."""

    __slots__ = ("name", "value", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.nullable_string(self.value)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.value = src.nullable_string()
        self.unknown_tags = src.tags()
        return self


class AlterConfigsResource(Struct):
    """Stands in `AlterConfigsRequest.resources`."""

    __slots__ = ("resource_type", "resource_name", "configs", "unknown_tags")

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[AlterableConfig] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configs: list[AlterableConfig] = [] if configs is EMPTY else configs
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int8(self.resource_type)
        out.string(self.resource_name)
        out.array_length(len(self.configs))
        for alterable_config in self.configs:
            alterable_config.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.resource_type = src.int8()
        self.resource_name = src.string()
        self.configs = src.structs(AlterableConfig, version)
        self.unknown_tags = src.tags()
        return self


class AlterConfigsRequest(Request[AlterConfigsResponse]):
    """Answered by `AlterConfigsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.ALTER_CONFIGS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=2)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[AlterConfigsResponse]] = AlterConfigsResponse
    __slots__ = ("resources", "validate_only", "unknown_tags")

    def __init__(
        self,
        *,
        resources: list[AlterConfigsResource] = EMPTY,
        validate_only: bool = False,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.resources: list[AlterConfigsResource] = [] if resources is EMPTY else resources
        self.validate_only: bool = validate_only
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.resources))
        for alter_configs_resource in self.resources:
            alter_configs_resource.encode(out, version)
        out.boolean(self.validate_only)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.resources = src.structs(AlterConfigsResource, version)
        self.validate_only = src.boolean()
        self.unknown_tags = src.tags()
        return self
