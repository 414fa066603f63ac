"""UpdateRaftVoter (key 82), versions 0, flexible from 0.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator
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


class CurrentLeader(Struct):
    """Stands in `UpdateRaftVoterResponse.current_leader`."""

    __slots__ = ("leader_id", "leader_epoch", "host", "port", "unknown_tags")

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
        host: str = "",
        port: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.host: str = host
        self.port: int = port
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.leader_id)
        out.int32(self.leader_epoch)
        out.string(self.host)
        out.int32(self.port)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.leader_id = src.int32()
        self.leader_epoch = src.int32()
        self.host = src.string()
        self.port = src.int32()
        self.unknown_tags = src.tags()
        return self


class UpdateRaftVoterResponse(Response):
    """Answers `UpdateRaftVoterRequest`."""

    API: ClassVar[ApiKey] = ApiKey.UPDATE_RAFT_VOTER
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    __slots__ = ("throttle_time_ms", "error_code", "current_leader", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        current_leader: CurrentLeader | None = None,  # tag 0
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.current_leader: CurrentLeader | None = current_leader
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        known: list[tuple[int, PlainWriter]] = []
        if self.current_leader is not None:
            field = out.nested()
            self.current_leader.encode(field, version)
            known.append((0, field))
        out.tags(self.unknown_tags, known)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.current_leader = None
        unknown = []
        for tag, field in src.tagged():
            if tag == 0:
                self.current_leader = CurrentLeader.decode(field, version)
            else:
                unknown.append((tag, field.rest()))
            field.end()
        self.unknown_tags = tuple(unknown)
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class Listener(Struct):
    """Stands in `UpdateRaftVoterRequest.listeners`."""

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


class KRaftVersionFeature(Struct):
    """Stands in `UpdateRaftVoterRequest.kraft_version_feature`."""

    __slots__ = ("min_supported_version", "max_supported_version", "unknown_tags")

    def __init__(
        self,
        *,
        min_supported_version: int = 0,
        max_supported_version: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.min_supported_version: int = min_supported_version
        self.max_supported_version: int = max_supported_version
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.min_supported_version)
        out.int16(self.max_supported_version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.min_supported_version = src.int16()
        self.max_supported_version = src.int16()
        self.unknown_tags = src.tags()
        return self


class UpdateRaftVoterRequest(Request[UpdateRaftVoterResponse]):
    """Answered by `UpdateRaftVoterResponse`."""

    API: ClassVar[ApiKey] = ApiKey.UPDATE_RAFT_VOTER
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("controller",)
    RESPONSE: ClassVar[type[UpdateRaftVoterResponse]] = UpdateRaftVoterResponse
    __slots__ = (
        "cluster_id",
        "current_leader_epoch",
        "voter_id",
        "voter_directory_id",
        "listeners",
        "kraft_version_feature",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        current_leader_epoch: int = 0,
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
        listeners: list[Listener] = EMPTY,
        kraft_version_feature: KRaftVersionFeature | None = None,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.current_leader_epoch: int = current_leader_epoch
        self.voter_id: int = voter_id
        self.voter_directory_id: bytes = voter_directory_id
        self.listeners: list[Listener] = [] if listeners is EMPTY else listeners
        self.kraft_version_feature: KRaftVersionFeature = (
            KRaftVersionFeature() if kraft_version_feature is None else kraft_version_feature
        )
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.nullable_string(self.cluster_id)
        out.int32(self.current_leader_epoch)
        out.int32(self.voter_id)
        out.uuid(self.voter_directory_id)
        out.array_length(len(self.listeners))
        for listener in self.listeners:
            listener.encode(out, version)
        self.kraft_version_feature.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.cluster_id = src.nullable_string()
        self.current_leader_epoch = src.int32()
        self.voter_id = src.int32()
        self.voter_directory_id = src.uuid()
        self.listeners = src.structs(Listener, version)
        self.kraft_version_feature = KRaftVersionFeature.decode(src, version)
        self.unknown_tags = src.tags()
        return self
