"""EndTxnMarker, versions 0, not flexible.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from typing import ClassVar, Self

from aiokwire.protocol._codec import PlainReader, PlainWriter
from aiokwire.protocol.api import (
    Data,
    VersionRange,
)


class EndTxnMarker(Data):
    """Data that stands inside other messages."""

    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=1)
    __slots__ = ("coordinator_epoch",)

    def __init__(
        self,
        *,
        coordinator_epoch: int = 0,
    ) -> None:
        self.coordinator_epoch: int = coordinator_epoch

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.coordinator_epoch)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.coordinator_epoch = src.int32()
        return self
