from collections.abc import Iterable, Sequence
from typing import NamedTuple

from typing_extensions import Buffer

from aiokwire.records._columns import ArrowBuffer

class AvroField(NamedTuple):
    """How one field is encoded, and what becomes of it."""

    kind: str
    """`boolean`, `int`, `long`, `float`, `double`, `string`, `bytes`, `fixed`, `enum`; `millis`: a long that becomes
    microseconds; `decimal` and `fixed-decimal`: bytes that become 128 bits."""
    branches: int = 0
    """How many types its union has: one type and null, in either order; 0 where it is not a union."""
    null_branch: int = -1
    """Which of them is null; -1 where none is."""
    size: int = 0
    """Bytes of a fixed."""
    limit: int = 0
    """A decimal's unscaled value is below it, and above its negative."""
    symbols: tuple[str, ...] = ()

AvroColumn = tuple[ArrowBuffer | None, ArrowBuffer | None, ArrowBuffer, int]
"""Validity (None: no nulls), int32 offsets (of columns of bytes), data, null count."""

class AvroRows(NamedTuple):
    """Decoded rows, as Arrow's buffers."""

    validity: ArrowBuffer | None
    """Of the rows themselves: null where the value was, where the datum is null, and where it is refused."""
    nulls: int
    columns: list[AvroColumn]
    refused: list[int]
    """Rows that the plan does not read."""

class AvroPlan:
    """Decodes data of one flat schema: a record's fields in order, or one field for a datum that is not a record.

    `branches` and `null_branch` describe a union around the record, as in `AvroField`.
    """

    def __init__(self, fields: Iterable[AvroField], *, branches: int = 0, null_branch: int = -1) -> None: ...
    def decode(
        self,
        offsets: Buffer,
        data: Buffer | None,
        validity: Buffer | None,
        start: int,
        rows: int,
        ids: Sequence[int] | None = None,
    ) -> AvroRows:
        """Decode the rows from `start` on of an Arrow column of bytes, given by its buffers.

        With `ids` each value begins with a zero byte and a schema's id; rows with another id are refused.

        Raises: ValueError: the buffers are too short for the rows.
        """

def framed_ids(offsets: Buffer, data: Buffer | None, validity: Buffer | None, start: int, rows: int) -> list[int]:
    """The different schema ids that values begin with, in the order in which they first occur."""
