"""DeleteGroups (key 42), versions 0-2, flexible from 2.

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


class DeletableGroupResult(Struct):
    """Stands in `DeleteGroupsResponse.results`."""

    __slots__ = ("group_id", "error_code", "unknown_tags")

    def __init__(
        self,
        *,
        group_id: str = "",
        error_code: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str = group_id
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.group_id)
        out.int16(self.error_code)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.string()
        self.error_code = src.int16()
        self.unknown_tags = src.tags()
        return self


class DeleteGroupsResponse(Response):
    """Answers `DeleteGroupsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.DELETE_GROUPS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=2)
    __slots__ = ("throttle_time_ms", "results", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DeletableGroupResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[DeletableGroupResult] = [] if results is EMPTY else results
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.array_length(len(self.results))
        for deletable_group_result in self.results:
            deletable_group_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.results = src.structs(DeletableGroupResult, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        for entry in self.results:
            yield entry.error_code


class DeleteGroupsRequest(Request[DeleteGroupsResponse]):
    """Answered by `DeleteGroupsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.DELETE_GROUPS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=2)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[DeleteGroupsResponse]] = DeleteGroupsResponse
    __slots__ = ("groups_names", "unknown_tags")

    def __init__(
        self,
        *,
        groups_names: list[str] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.groups_names: list[str] = [] if groups_names is EMPTY else groups_names
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.strings(self.groups_names)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.groups_names = src.strings()
        self.unknown_tags = src.tags()
        return self
