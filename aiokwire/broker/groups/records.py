"""What a record of `__consumer_offsets` that is not an offset is about."""

from __future__ import annotations

from aiokwire.broker.groups import classic_records, consumer_records
from aiokwire.broker.groups.consumer_records import ConsumerKey
from aiokwire.errors import CorruptRecord, ProtocolViolation
from aiokwire.protocol import PlainReader


def decode_key(key: bytes | None) -> str | ConsumerKey | None:
    """A group of the classic protocol by its id, something of the consumer protocol, or None for other kinds.

    Raises: CorruptRecord.
    """
    try:
        src = PlainReader(key or b"")
        kind = src.int16()
        return src.string() if kind == classic_records.KEY_TYPE else consumer_records.decode_key(kind, src)
    except ProtocolViolation as error:
        raise CorruptRecord(f"the key of a group's record is damaged: {error}") from error
