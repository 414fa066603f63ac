"""SnapshotFooterRecord, versions 0, flexible from 0.

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


class SnapshotFooterRecord(Data):
    """Data that stands inside other messages."""

    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    __slots__ = ("version", "unknown_tags")

    def __init__(
        self,
        *,
        version: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.version: int = version
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.version = src.int16()
        self.unknown_tags = src.tags()
        return self
