"""LeaderChangeMessage, versions 0-1, flexible from 0.

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


class Voter(Struct):
    """Stands in `LeaderChangeMessage.voters`."""

    __slots__ = ("voter_id", "voter_directory_id", "unknown_tags")

    def __init__(
        self,
        *,
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,  # v1+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.voter_id: int = voter_id
        self.voter_directory_id: bytes = voter_directory_id
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.voter_id)
        if version >= 1:
            out.uuid(self.voter_directory_id)
        elif self.voter_directory_id != ZERO_UUID:
            raise self.unsupported("voter_directory_id", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.voter_id = src.int32()
        self.voter_directory_id = src.uuid() if version >= 1 else ZERO_UUID
        self.unknown_tags = src.tags()
        return self


class LeaderChangeMessage(Data):
    """Data that stands inside other messages."""

    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=0)
    __slots__ = ("version", "leader_id", "voters", "granting_voters", "unknown_tags")

    def __init__(
        self,
        *,
        version: int = 0,
        leader_id: int = 0,
        voters: list[Voter] = EMPTY,
        granting_voters: list[Voter] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.version: int = version
        self.leader_id: int = leader_id
        self.voters: list[Voter] = [] if voters is EMPTY else voters
        self.granting_voters: list[Voter] = [] if granting_voters is EMPTY else granting_voters
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.version)
        out.int32(self.leader_id)
        out.array_length(len(self.voters))
        for voter in self.voters:
            voter.encode(out, version)
        out.array_length(len(self.granting_voters))
        for voter in self.granting_voters:
            voter.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.version = src.int16()
        self.leader_id = src.int32()
        self.voters = src.structs(Voter, version)
        self.granting_voters = src.structs(Voter, version)
        self.unknown_tags = src.tags()
        return self
