"""Conversion of batches between message formats, for requests of old producers and consumers.

It decodes each record, unlike the rest of the package: only clients older than 0.11 need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiokwire.errors import CorruptRecord, InvalidArgument
from aiokwire.records._batch import RecordBatch, scan_batches
from aiokwire.records._builder import BatchBuilder
from aiokwire.records._record import Record
from aiokwire.records.compression import DEFAULT_LIMIT
from aiokwire.types import Compression, TimestampType

if TYPE_CHECKING:
    from typing_extensions import Buffer

_NO_LIMIT = (1 << 31) - 1


def convert(
    data: Buffer,
    to_magic: int,
    *,
    base_offset: int | None = None,
    leader_epoch: int = -1,
    max_decompressed: int = DEFAULT_LIMIT,
) -> bytes:
    """Return the batches of `data` in format `to_magic`; batches in it are kept byte for byte.

    With `base_offset` the records get consecutive offsets from there, as a broker assigns them to
    records of an old producer; without it they keep theirs. Drops what the older format cannot
    hold: headers, producer state, control batches, in format 0 timestamps; zstd becomes gzip.

    Raises: CorruptRecord: for corrupt bytes or a cut batch; InvalidArgument: for an unknown format.
    """
    if to_magic not in (0, 1, 2):
        raise InvalidArgument(f"message format {to_magic} is unknown: choose 0, 1 or 2")
    batches = scan_batches(data, check_crcs=True, max_decompressed=max_decompressed)
    end = batches[-1].position + batches[-1].size if batches else 0
    if end != memoryview(data).nbytes:
        raise CorruptRecord(f"the bytes from {end} on are corrupt or truncated")
    converted: list[Buffer] = []
    for batch in batches:
        if batch.is_control and to_magic < 2:
            continue
        if batch.magic == to_magic and base_offset is None:
            converted.append(batch.data)
            continue
        records = batch.records()
        if not records:
            continue
        converted.append(_rebuild(batch, records, to_magic, base_offset, leader_epoch))
        if base_offset is not None:
            base_offset += len(records)
    return b"".join(converted)


def _rebuild(
    batch: RecordBatch, records: list[Record], to_magic: int, base_offset: int | None, leader_epoch: int
) -> memoryview | bytes:
    first = records[0].offset
    last = -1
    builder = BatchBuilder(to_magic, _NO_LIMIT, initial=4096)
    for index, record in enumerate(records):
        delta = index if base_offset is not None else record.offset - first
        if not last < delta < _NO_LIMIT:
            raise CorruptRecord("offsets are not ascending", topic=batch.topic, offset=record.offset)
        last = delta
        headers = record.headers if to_magic == 2 else ()
        builder.append_at(delta, record.timestamp, record.key, record.value, headers)
    stamped = batch.timestamp_type is TimestampType.LOG_APPEND_TIME and to_magic > 0
    return builder.seal(
        compression=_codec_for(batch.compression, to_magic),
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        transactional=batch.is_transactional,
        base_offset=first if base_offset is None else base_offset,
        leader_epoch=leader_epoch if leader_epoch >= 0 else batch.leader_epoch,
        log_append_time=batch.max_timestamp if stamped else None,
    )


def _codec_for(codec: Compression, magic: int) -> Compression:
    return Compression.GZIP if codec is Compression.ZSTD and magic < 2 else codec
