"""DescribeAcls (key 29), versions 0-3, flexible from 2.

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


class AclDescription(Struct):
    """Stands in `DescribeAclsResource.acls`."""

    __slots__ = ("principal", "host", "operation", "permission_type", "unknown_tags")

    def __init__(
        self,
        *,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.principal)
        out.string(self.host)
        out.int8(self.operation)
        out.int8(self.permission_type)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.principal = src.string()
        self.host = src.string()
        self.operation = src.int8()
        self.permission_type = src.int8()
        self.unknown_tags = src.tags()
        return self


class DescribeAclsResource(Struct):
    """Stands in `DescribeAclsResponse.resources`."""

    __slots__ = ("resource_type", "resource_name", "pattern_type", "acls", "unknown_tags")

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,  # v1+
        acls: list[AclDescription] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.pattern_type: int = pattern_type
        self.acls: list[AclDescription] = [] if acls is EMPTY else acls
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int8(self.resource_type)
        out.string(self.resource_name)
        if version >= 1:
            out.int8(self.pattern_type)
        elif self.pattern_type != 3:
            raise self.unsupported("pattern_type", version)
        out.array_length(len(self.acls))
        for acl_description in self.acls:
            acl_description.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.resource_type = src.int8()
        self.resource_name = src.string()
        self.pattern_type = src.int8() if version >= 1 else 3
        self.acls = src.structs(AclDescription, version)
        self.unknown_tags = src.tags()
        return self


class DescribeAclsResponse(Response):
    """Answers `DescribeAclsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_ACLS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 3, flexible=2)
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "resources", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        resources: list[DescribeAclsResource] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resources: list[DescribeAclsResource] = [] if resources is EMPTY else resources
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.array_length(len(self.resources))
        for describe_acls_resource in self.resources:
            describe_acls_resource.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.resources = src.structs(DescribeAclsResource, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class DescribeAclsRequest(Request[DescribeAclsResponse]):
    """Answered by `DescribeAclsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_ACLS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 3, flexible=2)
    SERVED_FROM: ClassVar[int | None] = 1
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[DescribeAclsResponse]] = DescribeAclsResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"pattern_type_filter": 1}
    __slots__ = (
        "resource_type_filter",
        "resource_name_filter",
        "pattern_type_filter",
        "principal_filter",
        "host_filter",
        "operation",
        "permission_type",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = "",
        pattern_type_filter: int = 3,  # v1+
        principal_filter: str | None = "",
        host_filter: str | None = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.resource_type_filter: int = resource_type_filter
        self.resource_name_filter: str | None = resource_name_filter
        self.pattern_type_filter: int = pattern_type_filter
        self.principal_filter: str | None = principal_filter
        self.host_filter: str | None = host_filter
        self.operation: int = operation
        self.permission_type: int = permission_type
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int8(self.resource_type_filter)
        out.nullable_string(self.resource_name_filter)
        if version >= 1:
            out.int8(self.pattern_type_filter)
        elif self.pattern_type_filter != 3:
            raise self.unsupported("pattern_type_filter", version)
        out.nullable_string(self.principal_filter)
        out.nullable_string(self.host_filter)
        out.int8(self.operation)
        out.int8(self.permission_type)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.resource_type_filter = src.int8()
        self.resource_name_filter = src.nullable_string()
        self.pattern_type_filter = src.int8() if version >= 1 else 3
        self.principal_filter = src.nullable_string()
        self.host_filter = src.nullable_string()
        self.operation = src.int8()
        self.permission_type = src.int8()
        self.unknown_tags = src.tags()
        return self
