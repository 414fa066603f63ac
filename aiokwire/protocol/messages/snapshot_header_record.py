"""SnapshotHeaderRecord, versions 0, flexible from 0.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from typing import ClassVar, Self

from aiokwire.protocol._codec import PlainReader, PlainWriter
from aiokwire.protocol.api import (
    Data,
    UnknownTags,
    VersionRange,
)


class SnapshotHeaderRecord(Data):
    """Data that stands inside other messages."""

    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    __slots__ = ("version", "last_contained_log_timestamp", "unknown_tags")

    def __init__(
        self,
        *,
        version: int = 0,
        last_contained_log_timestamp: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.version: int = version
        self.last_contained_log_timestamp: int = last_contained_log_timestamp
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.version)
        out.int64(self.last_contained_log_timestamp)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.version = src.int16()
        self.last_contained_log_timestamp = src.int64()
        self.unknown_tags = src.tags()
        return self
