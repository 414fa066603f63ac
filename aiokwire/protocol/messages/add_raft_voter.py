"""AddRaftVoter (key 80), versions 0-1, flexible from 0.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

from aiokwire.protocol._codec import PlainReader, PlainWriter
from aiokwire.protocol.api import (
    EMPTY,
    ZERO_UUID,
    Request,
    Response,
    Struct,
    UnknownTags,
    VersionRange,
)
from aiokwire.protocol.api_key import ApiKey


class AddRaftVoterResponse(Response):
    """Answers `AddRaftVoterRequest`."""

    API: ClassVar[ApiKey] = ApiKey.ADD_RAFT_VOTER
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=0)
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class Listener(Struct):
    """Stands in `AddRaftVoterRequest.listeners`."""

    __slots__ = ("name", "host", "port", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.string(self.host)
        out.uint16(self.port)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.host = src.string()
        self.port = src.uint16()
        self.unknown_tags = src.tags()
        return self


class AddRaftVoterRequest(Request[AddRaftVoterResponse]):
    """Answered by `AddRaftVoterResponse`."""

    API: ClassVar[ApiKey] = ApiKey.ADD_RAFT_VOTER
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("controller", "broker")
    RESPONSE: ClassVar[type[AddRaftVoterResponse]] = AddRaftVoterResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"ack_when_committed": 1}
    __slots__ = (
        "cluster_id",
        "timeout_ms",
        "voter_id",
        "voter_directory_id",
        "listeners",
        "ack_when_committed",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        timeout_ms: int = 0,
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
        listeners: list[Listener] = EMPTY,
        ack_when_committed: bool = True,  # v1+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.timeout_ms: int = timeout_ms
        self.voter_id: int = voter_id
        self.voter_directory_id: bytes = voter_directory_id
        self.listeners: list[Listener] = [] if listeners is EMPTY else listeners
        self.ack_when_committed: bool = ack_when_committed
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.nullable_string(self.cluster_id)
        out.int32(self.timeout_ms)
        out.int32(self.voter_id)
        out.uuid(self.voter_directory_id)
        out.array_length(len(self.listeners))
        for listener in self.listeners:
            listener.encode(out, version)
        if version >= 1:
            out.boolean(self.ack_when_committed)
        elif not self.ack_when_committed:
            raise self.unsupported("ack_when_committed", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.cluster_id = src.nullable_string()
        self.timeout_ms = src.int32()
        self.voter_id = src.int32()
        self.voter_directory_id = src.uuid()
        self.listeners = src.structs(Listener, version)
        self.ack_when_committed = src.boolean() if version >= 1 else True
        self.unknown_tags = src.tags()
        return self

    def broker_wait_ms(self) -> int:
        return max(self.timeout_ms, 0)
