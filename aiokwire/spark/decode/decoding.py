"""Decoding of keys and values to the configured formats, and `mode` for those that do not decode.

The data source checks the options with it on the driver; `convert` decodes in the tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import types as spark

from aiokwire.errors import KafkaError
from aiokwire.spark.decode.columns import Column, Faults
from aiokwire.spark.decode.json_values import coerce_for
from aiokwire.spark.decode.options import Decoding, Format, Mode, Side

ColumnDecoder: TypeAlias = Callable[[Column], tuple[Column, Faults]]


class UndecodableRecord(KafkaError):
    """A key or value does not match its format or schema, with `mode=failfast`."""


class Fault(NamedTuple):
    """The reason why a record cannot be decoded."""

    side: str
    reason: str


Rejected: TypeAlias = Mapping[int, Fault]
"""The undecodable records of a batch, by row."""


def check_decoding(schema: spark.StructType, decoding: Decoding) -> None:
    """Check the schemas on the driver, and log those that are decoded slowly.

    Raises: ConfigurationError: a schema has types that JSON cannot be decoded to.
    """
    for side, chosen in decoding.sides:
        if chosen.format is Format.JSON and side in schema.names:
            coerce_for(schema[side].dataType, f"{side}.schema")
        if chosen.format is Format.AVRO and side in schema.names:
            from aiokwire.spark.decode.from_avro import log_if_slow

            log_if_slow(chosen, f"{side}.schema")


class Decoder:
    """Decodes batches of one schema."""

    def __init__(self, decoding: Decoding, schema: pa.Schema, spark_schema: spark.StructType) -> None:
        self._mode = decoding.mode
        self._bad_column = decoding.bad_record_column
        self._schema = schema
        self._sides = {
            side: _column_decoder(side, chosen, schema, spark_schema)
            for side, chosen in decoding.sides
            if side in schema.names and chosen.format is not Format.BINARY
        }

    def decode(self, columns: dict[str, Column], raw: pa.RecordBatch) -> tuple[pa.RecordBatch, Rejected]:
        """Return the batch with decoded columns, and the undecodable rows of `raw`.

        Raises: UndecodableRecord: with `mode=failfast`; the message names the record.
        """
        rejected: dict[int, Fault] = {}
        for side, decode in self._sides.items():
            columns[side], faults = decode(raw.column(side))
            rejected |= {row: Fault(side, reason) for row, reason in faults.items()}
        if rejected and self._mode is Mode.FAILFAST:
            row = min(rejected)
            raise UndecodableRecord(_message(raw, row, rejected[row]))
        if self._bad_column:
            columns[self._bad_column] = _bad_bytes(raw, rejected)
        batch = pa.RecordBatch.from_arrays(list(columns.values()), schema=self._schema)
        if rejected and self._mode is Mode.DROPMALFORMED:
            batch = batch.filter(pa.array([row not in rejected for row in range(batch.num_rows)], pa.bool_()))
        return batch, rejected


def _column_decoder(side: str, chosen: Side, schema: pa.Schema, spark_schema: spark.StructType) -> ColumnDecoder:
    if chosen.format is Format.STRING:
        return decode_strings
    if chosen.format is Format.JSON:
        from aiokwire.spark.decode.from_json import JsonDecoder

        return JsonDecoder(spark_schema[side].dataType, schema.field(side).type, side)
    from aiokwire.spark.decode.from_avro import AvroDecoder

    return AvroDecoder(chosen, schema.field(side).type, side)


def _bad_bytes(raw: pa.RecordBatch, rejected: Rejected) -> Column:
    if not rejected:
        return pa.nulls(raw.num_rows, pa.binary())
    found: list[bytes | None] = [None] * raw.num_rows
    for row, fault in rejected.items():
        found[row] = raw.column(fault.side)[row].as_py()
    return pa.array(found, pa.binary())


def _message(raw: pa.RecordBatch, row: int, fault: Fault) -> str:
    topic, partition, offset = (raw.column(name)[row].as_py() for name in ("topic", "partition", "offset"))
    return (
        f"{topic}[{partition}] at offset {offset}: cannot decode the {fault.side} "
        f"{raw.column(fault.side)[row].as_py()!r:.99} ({fault.reason:.200}); "
        "set mode=permissive to read null, and the bytes in columnNameOfCorruptRecord"
    )


def decode_strings(column: Column) -> tuple[Column, Faults]:
    """Decode UTF-8; return the reason for each row that is not UTF-8."""
    try:
        return column.cast(pa.string()), {}
    except pa.ArrowInvalid:
        pass
    found: list[str | None] = []
    faults: Faults = {}
    for row, value in enumerate(column.to_pylist()):
        try:
            found.append(None if value is None else value.decode())
        except UnicodeDecodeError as error:
            found.append(None)
            faults[row] = str(error)
    return pa.array(found, pa.string()), faults
