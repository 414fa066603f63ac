"""What goes wrong in a consumer alone."""

from __future__ import annotations

from aiokwire.errors import KafkaError
from aiokwire.records import Record


class DeserializationError(KafkaError):
    """A deserializer raised for a record; the position stays before it.

    `record` has the bytes as they came (KIP-1036): look at them, then seek past `record.offset` or stop.
    """

    def __init__(self, message: str, *, record: Record) -> None:
        super().__init__(message)
        self.record = record
        self.topic = record.topic
        self.partition = record.partition
        self.offset = record.offset
