"""kafka-python's and aiokafka's record code as oracles, both ways, for every format and codec."""

from __future__ import annotations

import struct
import warnings
from typing import Any

import pytest
from aiokafka.record.default_records import (  # type: ignore[import-untyped]  # ships no annotations
    DefaultRecordBatchBuilder as AiokafkaBatchBuilder,
)
from aiokafka.record.legacy_records import (  # type: ignore[import-untyped]  # ships no annotations
    LegacyRecordBatchBuilder as AiokafkaSetBuilder,
)
from aiokafka.record.memory_records import (  # type: ignore[import-untyped]  # ships no annotations
    MemoryRecords as AiokafkaRecords,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from aiokwire.records import BatchBuilder, Record, read_batches
from aiokwire.types import Compression, TimestampType
from tests.records.reference import Row
from tests.records.strategies import rows

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it reads its schemas in a way that Python has deprecated
    from kafka.record.memory_records import (  # type: ignore[import-untyped]  # ships no annotations
        MemoryRecords as KafkaPythonRecords,
    )
    from kafka.record.memory_records import MemoryRecordsBuilder

# zstd is of format 2; the old LZ4 header of format 0 is beyond both without a further library
KINDS = st.sampled_from(
    [
        (magic, codec)
        for magic in (0, 1, 2)
        for codec in Compression
        if (magic == 2 or codec is not Compression.ZSTD) and (magic, codec) != (0, Compression.LZ4)
    ]
)
# both libraries take None and negative times differently; real ones are what they agree on
SANE = rows().map(lambda content: [row._replace(timestamp=abs(row.timestamp) % (1 << 42)) for row in content])


def fitting(content: list[Row], magic: int) -> list[Row]:
    return content if magic == 2 else [row._replace(headers=()) for row in content]


def ours(content: list[Row], magic: int, codec: Compression) -> bytes:
    builder = BatchBuilder(magic, 1 << 20)
    for row in content:
        builder.append(row.timestamp, row.key, row.value, row.headers)
    return bytes(builder.seal(compression=codec))


def expected(content: list[Row], magic: int) -> list[Record]:
    kind = TimestampType.CREATE_TIME if magic else TimestampType.NONE
    return [
        Record("t", 0, row.delta, row.timestamp if magic else -1, row.key, row.value, row.headers, timestamp_type=kind)
        for row in content
    ]


def read_ours(data: bytes) -> list[Record]:
    records = [record for batch in read_batches(data, "t", 0) for record in batch.records()]
    # what others write in the leader epoch of a produced batch is theirs
    return [
        Record("t", 0, one.offset, one.timestamp, one.key, one.value, one.headers, timestamp_type=one.timestamp_type)
        for one in records
    ]


def stored(data: bytearray | bytes, content: list[Row], kind: tuple[int, Compression]) -> bytes:
    """What a broker makes of produced bytes: compressed format 1 gets the last record's offset."""
    return struct.pack(">q", len(content) - 1) + data[8:] if kind[0] == 1 and kind[1] else bytes(data)


def as_rows(records: list[Any], magic: int) -> list[Row]:
    return [
        Row(one.offset, one.timestamp if magic else -1, one.key, one.value, tuple(map(tuple, one.headers)))
        for one in records
    ]


def timeless(content: list[Row], magic: int) -> list[Row]:
    return content if magic else [row._replace(timestamp=-1) for row in content]


@settings(max_examples=100)
@given(SANE, KINDS)
def test_kafka_python_reads_ours(content: list[Row], kind: tuple[int, Compression]) -> None:
    content = fitting(content, kind[0])
    found = []
    for batch in KafkaPythonRecords(ours(content, *kind)):
        assert batch.validate_crc()
        found += list(batch)
    assert as_rows(found, kind[0]) == timeless(content, kind[0])


@settings(max_examples=100)
@given(SANE, KINDS)
def test_ours_reads_kafka_python(content: list[Row], kind: tuple[int, Compression]) -> None:
    content = fitting(content, kind[0])
    builder = MemoryRecordsBuilder(magic=kind[0], compression_type=int(kind[1]), batch_size=1 << 20)
    for row in content:
        builder.append(timestamp=row.timestamp, key=row.key, value=row.value, headers=list(row.headers))
    builder.close()
    assert read_ours(stored(builder.buffer(), content, kind)) == expected(content, kind[0])


@settings(max_examples=100)
@given(SANE, KINDS)
def test_aiokafka_reads_ours(content: list[Row], kind: tuple[int, Compression]) -> None:
    content = fitting(content, kind[0])
    found: list[Any] = []
    records = AiokafkaRecords(ours(content, *kind))
    while records.has_next():
        batch = records.next_batch()
        assert batch is not None
        assert batch.validate_crc()
        found += list(batch)
    assert as_rows(found, kind[0]) == timeless(content, kind[0])


@settings(max_examples=100)
@given(SANE, KINDS)
def test_ours_reads_aiokafka(content: list[Row], kind: tuple[int, Compression]) -> None:
    magic, codec = kind
    content = fitting(content, magic)
    builder: Any = (
        AiokafkaBatchBuilder(magic, int(codec), 0, -1, -1, -1, 1 << 20)
        if magic == 2
        else AiokafkaSetBuilder(magic, int(codec), 1 << 20)
    )
    for row in content:
        builder.append(row.delta, row.timestamp, row.key, row.value, list(row.headers))
    assert read_ours(stored(builder.build(), content, kind)) == expected(content, magic)


@pytest.mark.parametrize("transactional", [False, True])
def test_aiokafka_sees_our_producer_state(*, transactional: bool) -> None:
    builder = BatchBuilder(2, 1000)
    builder.append(5, b"k", b"v")
    sealed = builder.seal(producer_id=9, producer_epoch=2, base_sequence=4, transactional=transactional)
    batch: Any = AiokafkaRecords(bytes(sealed)).next_batch()
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (9, 2, 4)
    assert bool(batch.is_transactional) is transactional
