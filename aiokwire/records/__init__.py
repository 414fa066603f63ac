"""The records kernel: Kafka's record batches and message sets, built and read in compiled code.

The producer builds (`BatchBuilder`), the consumer reads (`read_batches`), the broker scans and
patches (`scan_batches`, `assign_offsets`, ...). No I/O, nothing of the protocol around records.
"""

from __future__ import annotations

from aiokwire.records._avro import AvroField, AvroPlan, AvroRows, framed_ids
from aiokwire.records._batch import RecordBatch, fill_columns, read_batches, scan_batches, take_sound
from aiokwire.records._builder import BatchBuilder, estimate_size
from aiokwire.records._columns import Columns, Spare
from aiokwire.records._hash import murmur2
from aiokwire.records._record import DeserializedRecord, Record
from aiokwire.records._rows import ArrowRows
from aiokwire.records.arrow import columns_to_arrow, need_arrow, records_to_arrow, to_arrow
from aiokwire.records.arrow_rows import rows_of
from aiokwire.records.checksum import crc32c
from aiokwire.records.compression import TooLarge, check_level, compress, decompress
from aiokwire.records.convert import convert
from aiokwire.records.isolation import Visible, select_visible
from aiokwire.records.patch import assign_offsets, set_log_append_time, set_max_timestamp, set_producer_state
from aiokwire.records.validation import RecordCheck, find_offset_for_timestamp, max_timestamp_record, validate_records

__all__ = [
    "ArrowRows",
    "AvroField",
    "AvroPlan",
    "AvroRows",
    "BatchBuilder",
    "Columns",
    "DeserializedRecord",
    "Record",
    "RecordBatch",
    "RecordCheck",
    "Spare",
    "TooLarge",
    "Visible",
    "assign_offsets",
    "check_level",
    "columns_to_arrow",
    "compress",
    "convert",
    "crc32c",
    "decompress",
    "estimate_size",
    "fill_columns",
    "find_offset_for_timestamp",
    "framed_ids",
    "max_timestamp_record",
    "murmur2",
    "need_arrow",
    "read_batches",
    "records_to_arrow",
    "rows_of",
    "scan_batches",
    "select_visible",
    "set_log_append_time",
    "set_max_timestamp",
    "set_producer_state",
    "take_sound",
    "to_arrow",
    "validate_records",
]
