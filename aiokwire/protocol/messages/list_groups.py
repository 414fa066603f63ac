"""ListGroups (key 16), versions 0-5, flexible from 3.

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


class ListedGroup(Struct):
    """Stands in `ListGroupsResponse.groups`."""

    __slots__ = ("group_id", "protocol_type", "group_state", "group_type", "unknown_tags")

    def __init__(
        self,
        *,
        group_id: str = "",
        protocol_type: str = "",
        group_state: str = "",  # v4+
        group_type: str = "",  # v5+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str = group_id
        self.protocol_type: str = protocol_type
        self.group_state: str = group_state
        self.group_type: str = group_type
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.group_id)
        out.string(self.protocol_type)
        if version >= 4:
            out.string(self.group_state)
        if version >= 5:
            out.string(self.group_type)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.string()
        self.protocol_type = src.string()
        self.group_state = src.string() if version >= 4 else ""
        self.group_type = src.string() if version >= 5 else ""
        self.unknown_tags = src.tags()
        return self


class ListGroupsResponse(Response):
    """Answers `ListGroupsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.LIST_GROUPS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 5, flexible=3)
    __slots__ = ("throttle_time_ms", "error_code", "groups", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # v1+
        error_code: int = 0,
        groups: list[ListedGroup] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.groups: list[ListedGroup] = [] if groups is EMPTY else groups
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 1:
            out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.array_length(len(self.groups))
        for listed_group in self.groups:
            listed_group.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32() if version >= 1 else 0
        self.error_code = src.int16()
        self.groups = src.structs(ListedGroup, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class ListGroupsRequest(Request[ListGroupsResponse]):
    """Answered by `ListGroupsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.LIST_GROUPS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 5, flexible=3)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[ListGroupsResponse]] = ListGroupsResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"states_filter": 4, "types_filter": 5}
    __slots__ = ("states_filter", "types_filter", "unknown_tags")

    def __init__(
        self,
        *,
        states_filter: list[str] = EMPTY,  # v4+
        types_filter: list[str] = EMPTY,  # v5+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.states_filter: list[str] = [] if states_filter is EMPTY else states_filter
        self.types_filter: list[str] = [] if types_filter is EMPTY else types_filter
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 4:
            out.strings(self.states_filter)
        elif self.states_filter:
            raise self.unsupported("states_filter", version)
        if version >= 5:
            out.strings(self.types_filter)
        elif self.types_filter:
            raise self.unsupported("types_filter", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.states_filter = src.strings() if version >= 4 else []
        self.types_filter = src.strings() if version >= 5 else []
        self.unknown_tags = src.tags()
        return self
