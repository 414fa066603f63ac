"""ControlRecordTypeSchema, versions 0, not flexible.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from typing import ClassVar, Self

from aiokwire.protocol._codec import PlainReader, PlainWriter
from aiokwire.protocol.api import (
    Data,
    VersionRange,
)


class ControlRecordTypeSchema(Data):
    """Data that stands inside other messages."""

    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=1)
    __slots__ = ("type",)

    def __init__(
        self,
        *,
        type: int = 0,
    ) -> None:
        self.type: int = type

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.type)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.type = src.int16()
        return self
