"""The options for keys and values, as the tasks receive them. Parsed by `spark.options`."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping


class Format(enum.Enum):
    """The format that keys or values are decoded from."""

    BINARY = "binary"
    STRING = "string"
    JSON = "json"
    AVRO = "avro"


class Mode(enum.Enum):
    """The reaction to a record that cannot be decoded; Spark's own names."""

    PERMISSIVE = "permissive"  # null, and the bytes in columnNameOfCorruptRecord if it is set
    DROPMALFORMED = "dropmalformed"
    FAILFAST = "failfast"


@dataclasses.dataclass(frozen=True)
class Side:
    """The format and schemas of keys, or of values."""

    format: Format = Format.BINARY
    schema: str = ""
    """Defines the columns."""
    writer_schema: str = ""
    """Avro: the writer's schema, if it differs."""
    registry: str = ""
    """Avro: the registry of the schemas whose ids begin the records."""
    schemas: Mapping[int, str] | None = None
    """The schemas by id if the registry is a directory, which the tasks may not have."""


@dataclasses.dataclass(frozen=True)
class Decoding:
    """The options of the decoder."""

    key: Side = Side()
    value: Side = Side()
    mode: Mode = Mode.PERMISSIVE
    bad_record_column: str = ""
    dead_letter_topic: str = ""

    @property
    def sides(self) -> tuple[tuple[str, Side], ...]:
        return ("key", self.key), ("value", self.value)

    @property
    def is_plain(self) -> bool:
        return self.key.format is Format.BINARY and self.value.format is Format.BINARY
