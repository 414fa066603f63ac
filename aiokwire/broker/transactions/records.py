"""A transaction as a record of `__transaction_state`, in Kafka's format.

`DumpLogSegments --transaction-log-decoder` reads it, and this broker reads Kafka's records.
"""

from __future__ import annotations

import dataclasses
import struct
from itertools import groupby
from typing import Self

from aiokwire.broker.transactions.states import TransactionState
from aiokwire.broker.transactions.transaction import NO_ID, Transaction
from aiokwire.errors import CorruptRecord, ProtocolViolation
from aiokwire.protocol import Data, PlainReader, PlainWriter, Struct, VersionRange, decode_embedded, encode_embedded
from aiokwire.types import TopicPartition

WRITTEN_VERSION = 1
_KEY_TYPE = 0
_PREVIOUS_ID, _NEXT_ID, _CLIENT_VERSION = 0, 1, 2  # tags
_LONG = struct.Struct(">q")
_SHORT = struct.Struct(">h")


class PartitionsOfTopic(Struct):
    """Stands in `TransactionLogValue.topics`."""

    __slots__ = ("topic", "partitions", "unknown_tags")

    def __init__(self, topic: str, partitions: list[int]) -> None:
        self.topic: str = topic
        self.partitions: list[int] = partitions
        self.unknown_tags: tuple[tuple[int, bytes], ...] = ()

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic)
        out.int32s(self.partitions)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        topic = src.string()
        self = cls(topic, src.int32s())
        self.unknown_tags = src.tags()
        return self


class TransactionLogValue(Data):
    """The value of a record."""

    VERSIONS = VersionRange(0, 1, flexible=1)
    __slots__ = ("transaction",)

    def __init__(self, transaction: Transaction) -> None:
        self.transaction: Transaction = transaction

    def encode(self, out: PlainWriter, version: int) -> None:
        one = self.transaction
        out.int64(one.producer_id)
        out.int16(one.epoch)
        out.int32(one.timeout_ms)
        out.int8(one.state)
        if one.state is TransactionState.EMPTY:
            out.nullable_array_length(-1)
        else:
            topics = _by_topic(one)
            out.nullable_array_length(len(topics))
            for topic in topics:
                topic.encode(out, version)
        out.int64(one.updated_ms)
        out.int64(one.started_ms)
        tagged = [
            (_PREVIOUS_ID, _LONG.pack(one.previous_producer_id), one.previous_producer_id != NO_ID),
            (_NEXT_ID, _LONG.pack(one.next_producer_id), one.next_producer_id != NO_ID),
            (_CLIENT_VERSION, _SHORT.pack(one.client_version), one.client_version != 0),
        ]
        out.tags(tuple((tag, content) for tag, content, is_set in tagged if is_set))

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        producer_id, epoch, timeout_ms, state = src.int64(), src.int16(), src.int32(), src.int8()
        topics = [PartitionsOfTopic.decode(src, version) for _ in range(max(src.nullable_array_length(), 0))]
        updated_ms, started_ms = src.int64(), src.int64()
        tags = dict(src.tags())
        try:
            return cls(
                Transaction(
                    transactional_id="",
                    producer_id=producer_id,
                    epoch=epoch,
                    timeout_ms=timeout_ms,
                    state=TransactionState(state),
                    partitions=frozenset(
                        TopicPartition(one.topic, index) for one in topics for index in one.partitions
                    ),
                    updated_ms=updated_ms,
                    started_ms=started_ms,
                    previous_producer_id=_number(_LONG, tags.get(_PREVIOUS_ID), NO_ID),
                    next_producer_id=_number(_LONG, tags.get(_NEXT_ID), NO_ID),
                    client_version=_number(_SHORT, tags.get(_CLIENT_VERSION), 0),
                )
            )
        except (ValueError, struct.error) as error:
            raise ProtocolViolation(f"a transaction record is corrupt: {error}") from error


def _number(form: struct.Struct, content: bytes | None, default: int) -> int:
    return default if content is None else int(form.unpack(content)[0])


def _by_topic(transaction: Transaction) -> list[PartitionsOfTopic]:
    return [
        PartitionsOfTopic(topic, [tp.partition for tp in group])
        for topic, group in groupby(sorted(transaction.partitions), key=lambda tp: tp.topic)
    ]


def encode_key(transactional_id: str) -> bytes:
    """The key of a transactional id's records."""
    name = transactional_id.encode()
    return struct.pack(">hh", _KEY_TYPE, len(name)) + name


def decode_key(key: bytes | None) -> str | None:
    """The transactional id, None for a record of another kind.

    Raises: CorruptRecord.
    """
    try:
        src = PlainReader(key or b"")
        return src.string() if src.int16() == _KEY_TYPE else None
    except ProtocolViolation as error:
        raise CorruptRecord(f"the key of a transaction record is corrupt: {error}") from error


def encode_value(transaction: Transaction) -> bytes:
    """The value of a record."""
    return encode_embedded(TransactionLogValue(transaction), WRITTEN_VERSION)


def decode_value(transactional_id: str, value: bytes) -> Transaction:
    """The transaction in a record.

    Raises: CorruptRecord.
    """
    try:
        found = decode_embedded(value, TransactionLogValue).transaction
    except ProtocolViolation as error:
        raise CorruptRecord(f"the record of transactional id {transactional_id!r} is corrupt: {error}") from error
    return dataclasses.replace(found, transactional_id=transactional_id)
