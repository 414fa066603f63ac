"""CreateAcls (key 30), versions 0-3, flexible from 2.

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


class AclCreationResult(Struct):
    """Stands in `CreateAclsResponse.results`."""

    __slots__ = ("error_code", "error_message", "unknown_tags")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.unknown_tags = src.tags()
        return self


class CreateAclsResponse(Response):
    """Answers `CreateAclsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.CREATE_ACLS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 3, flexible=2)
    __slots__ = ("throttle_time_ms", "results", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AclCreationResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[AclCreationResult] = [] if results is EMPTY else results
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.array_length(len(self.results))
        for acl_creation_result in self.results:
            acl_creation_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.results = src.structs(AclCreationResult, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        for entry in self.results:
            yield entry.error_code


class AclCreation(Struct):
    """Stands in `CreateAclsRequest.creations`."""

    __slots__ = (
        "resource_type",
        "resource_name",
        "resource_pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,  # v1+
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.resource_pattern_type: int = resource_pattern_type
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int8(self.resource_type)
        out.string(self.resource_name)
        if version >= 1:
            out.int8(self.resource_pattern_type)
        elif self.resource_pattern_type != 3:
            raise self.unsupported("resource_pattern_type", version)
        out.string(self.principal)
        out.string(self.host)
        out.int8(self.operation)
        out.int8(self.permission_type)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.resource_type = src.int8()
        self.resource_name = src.string()
        self.resource_pattern_type = src.int8() if version >= 1 else 3
        self.principal = src.string()
        self.host = src.string()
        self.operation = src.int8()
        self.permission_type = src.int8()
        self.unknown_tags = src.tags()
        return self


class CreateAclsRequest(Request[CreateAclsResponse]):
    """Answered by `CreateAclsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.CREATE_ACLS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 3, flexible=2)
    SERVED_FROM: ClassVar[int | None] = 1
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[CreateAclsResponse]] = CreateAclsResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"resource_pattern_type": 1}
    __slots__ = ("creations", "unknown_tags")

    def __init__(
        self,
        *,
        creations: list[AclCreation] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.creations: list[AclCreation] = [] if creations is EMPTY else creations
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.creations))
        for acl_creation in self.creations:
            acl_creation.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.creations = src.structs(AclCreation, version)
        self.unknown_tags = src.tags()
        return self
