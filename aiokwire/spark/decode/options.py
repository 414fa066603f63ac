"""What becomes of keys and values: the options that say it, as the tasks get them. Parsed by `options`."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping


class Format(enum.Enum):
    """What a key or a value is decoded to."""

    BINARY = "binary"
    STRING = "string"
    JSON = "json"
    AVRO = "avro"


class Mode(enum.Enum):
    """What becomes of a record that cannot be decoded; Spark's own names."""

    PERMISSIVE = "permissive"  # null, and the bytes in the column for such records when there is one
    DROPMALFORMED = "dropmalformed"
    FAILFAST = "failfast"


@dataclasses.dataclass(frozen=True)
class Side:
    """What keys, or values, are."""

    format: Format = Format.BINARY
    schema: str = ""
    """What the columns are made by."""
    writer_schema: str = ""
    """Avro: what the records were written by, where that is another one."""
    registry: str = ""
    """Avro: where the schemas are whose ids the records begin with."""
    schemas: Mapping[int, str] | None = None
    """Those of a registry that is a directory, by id: the tasks do not have it."""


@dataclasses.dataclass(frozen=True)
class Decoding:
    """What becomes of keys and values."""

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
