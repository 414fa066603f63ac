"""VotersRecord, versions 0, flexible from 0.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from typing import ClassVar, Self

from aiokwire.protocol._codec import PlainReader, PlainWriter
from aiokwire.protocol.api import (
    EMPTY,
    ZERO_UUID,
    Data,
    Struct,
    UnknownTags,
    VersionRange,
)


class Endpoint(Struct):
    """Stands in `Voter.endpoints`."""

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
    """Stands in `Voter.kraft_version_feature`."""

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


class Voter(Struct):
    """Stands in `VotersRecord.voters`."""

    __slots__ = ("voter_id", "voter_directory_id", "endpoints", "kraft_version_feature", "unknown_tags")

    def __init__(
        self,
        *,
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
        endpoints: list[Endpoint] = EMPTY,
        kraft_version_feature: KRaftVersionFeature | None = None,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.voter_id: int = voter_id
        self.voter_directory_id: bytes = voter_directory_id
        self.endpoints: list[Endpoint] = [] if endpoints is EMPTY else endpoints
        self.kraft_version_feature: KRaftVersionFeature = (
            KRaftVersionFeature() if kraft_version_feature is None else kraft_version_feature
        )
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.voter_id)
        out.uuid(self.voter_directory_id)
        out.array_length(len(self.endpoints))
        for endpoint in self.endpoints:
            endpoint.encode(out, version)
        self.kraft_version_feature.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.voter_id = src.int32()
        self.voter_directory_id = src.uuid()
        self.endpoints = src.structs(Endpoint, version)
        self.kraft_version_feature = KRaftVersionFeature.decode(src, version)
        self.unknown_tags = src.tags()
        return self


class VotersRecord(Data):
    """Data that stands inside other messages."""

    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    __slots__ = ("version", "voters", "unknown_tags")

    def __init__(
        self,
        *,
        version: int = 0,
        voters: list[Voter] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.version: int = version
        self.voters: list[Voter] = [] if voters is EMPTY else voters
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.version)
        out.array_length(len(self.voters))
        for voter in self.voters:
            voter.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.version = src.int16()
        self.voters = src.structs(Voter, version)
        self.unknown_tags = src.tags()
        return self
