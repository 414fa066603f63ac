"""DescribeConfigs (key 32), versions 0-4, flexible from 4.

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


class DescribeConfigsSynonym(Struct):
    """Stands in `DescribeConfigsResourceResult.synonyms`."""

    __slots__ = ("name", "value", "source", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        source: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.source: int = source
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.nullable_string(self.value)
        out.int8(self.source)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.value = src.nullable_string()
        self.source = src.int8()
        self.unknown_tags = src.tags()
        return self


class DescribeConfigsResourceResult(Struct):
    """Stands in `DescribeConfigsResult.configs`."""

    __slots__ = (
        "name",
        "value",
        "read_only",
        "is_default",
        "config_source",
        "is_sensitive",
        "synonyms",
        "config_type",
        "documentation",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        is_default: bool = False,  # v0
        config_source: int = -1,  # v1+
        is_sensitive: bool = False,
        synonyms: list[DescribeConfigsSynonym] = EMPTY,  # v1+
        config_type: int = 0,  # v3+
        documentation: str | None = "",  # v3+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.read_only: bool = read_only
        self.is_default: bool = is_default
        self.config_source: int = config_source
        self.is_sensitive: bool = is_sensitive
        self.synonyms: list[DescribeConfigsSynonym] = [] if synonyms is EMPTY else synonyms
        self.config_type: int = config_type
        self.documentation: str | None = documentation
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.nullable_string(self.value)
        out.boolean(self.read_only)
        if version <= 0:
            out.boolean(self.is_default)
        elif self.is_default:
            raise self.unsupported("is_default", version)
        if version >= 1:
            out.int8(self.config_source)
        out.boolean(self.is_sensitive)
        if version >= 1:
            out.array_length(len(self.synonyms))
            for describe_configs_synonym in self.synonyms:
                describe_configs_synonym.encode(out, version)
        if version >= 3:
            out.int8(self.config_type)
            out.nullable_string(self.documentation)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.value = src.nullable_string()
        self.read_only = src.boolean()
        self.is_default = src.boolean() if version <= 0 else False
        self.config_source = src.int8() if version >= 1 else -1
        self.is_sensitive = src.boolean()
        self.synonyms = src.structs(DescribeConfigsSynonym, version) if version >= 1 else []
        if version >= 3:
            self.config_type = src.int8()
            self.documentation = src.nullable_string()
        else:
            self.config_type = 0
            self.documentation = ""
        self.unknown_tags = src.tags()
        return self


class DescribeConfigsResult(Struct):
    """Stands in `DescribeConfigsResponse.results`."""

    __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "configs", "unknown_tags")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[DescribeConfigsResourceResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configs: list[DescribeConfigsResourceResult] = [] if configs is EMPTY else configs
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.int8(self.resource_type)
        out.string(self.resource_name)
        out.array_length(len(self.configs))
        for describe_configs_resource_result in self.configs:
            describe_configs_resource_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.resource_type = src.int8()
        self.resource_name = src.string()
        self.configs = src.structs(DescribeConfigsResourceResult, version)
        self.unknown_tags = src.tags()
        return self


class DescribeConfigsResponse(Response):
    """Answers `DescribeConfigsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_CONFIGS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 4, flexible=4)
    __slots__ = ("throttle_time_ms", "results", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[DescribeConfigsResult] = [] if results is EMPTY else results
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.array_length(len(self.results))
        for describe_configs_result in self.results:
            describe_configs_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.results = src.structs(DescribeConfigsResult, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        for entry in self.results:
            yield entry.error_code


class DescribeConfigsResource(Struct):
    """Stands in `DescribeConfigsRequest.resources`."""

    __slots__ = ("resource_type", "resource_name", "configuration_keys", "unknown_tags")

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configuration_keys: list[str] | None = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configuration_keys: list[str] | None = [] if configuration_keys is EMPTY else configuration_keys
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int8(self.resource_type)
        out.string(self.resource_name)
        out.nullable_strings(self.configuration_keys)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.resource_type = src.int8()
        self.resource_name = src.string()
        self.configuration_keys = src.nullable_strings()
        self.unknown_tags = src.tags()
        return self


class DescribeConfigsRequest(Request[DescribeConfigsResponse]):
    """Answered by `DescribeConfigsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_CONFIGS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 4, flexible=4)
    SERVED_FROM: ClassVar[int | None] = 1
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[DescribeConfigsResponse]] = DescribeConfigsResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"include_synonyms": 1, "include_documentation": 3}
    __slots__ = ("resources", "include_synonyms", "include_documentation", "unknown_tags")

    def __init__(
        self,
        *,
        resources: list[DescribeConfigsResource] = EMPTY,
        include_synonyms: bool = False,  # v1+
        include_documentation: bool = False,  # v3+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.resources: list[DescribeConfigsResource] = [] if resources is EMPTY else resources
        self.include_synonyms: bool = include_synonyms
        self.include_documentation: bool = include_documentation
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.resources))
        for describe_configs_resource in self.resources:
            describe_configs_resource.encode(out, version)
        if version >= 1:
            out.boolean(self.include_synonyms)
        elif self.include_synonyms:
            raise self.unsupported("include_synonyms", version)
        if version >= 3:
            out.boolean(self.include_documentation)
        elif self.include_documentation:
            raise self.unsupported("include_documentation", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.resources = src.structs(DescribeConfigsResource, version)
        self.include_synonyms = src.boolean() if version >= 1 else False
        self.include_documentation = src.boolean() if version >= 3 else False
        self.unknown_tags = src.tags()
        return self
