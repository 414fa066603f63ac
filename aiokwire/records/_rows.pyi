from typing import Any

from typing_extensions import Buffer

from aiokwire.types import Compression

BytesParts = tuple[Buffer | None, Buffer | None, int, Buffer | None, bool]
"""Validity, offsets, where the rows begin, data, whether offsets have 64 bits."""
ListParts = tuple[Buffer | None, Buffer, int, bool]
"""Validity, offsets, where the rows begin, whether offsets have 64 bits."""
NumberParts = tuple[Buffer | None, int, Buffer, bool]
"""Validity, where the rows begin, data, whether the numbers have 64 bits."""

class ArrowRows:
    """Records in Arrow's buffers; a column that is not there is null in every row."""

    def __init__(
        self,
        count: int,
        *,
        key: BytesParts | None = None,
        value: BytesParts | None = None,
        headers: tuple[ListParts, int, BytesParts, BytesParts] | None = None,
        timestamp: NumberParts | None = None,
        partition: NumberParts | None = None,
        per_ms: int = 1,
    ) -> None:
        """`headers`: the lists, how many entries they point to, their names and contents. `per_ms`: how many of the
        timestamp's units make a millisecond; below 0, how many milliseconds make a unit.

        Raises: InvalidArgument: a buffer is too short for the rows.
        """

    @property
    def count(self) -> int:
        """How many rows."""

    def __len__(self) -> int: ...
    def encode(
        self,
        partitions: int,
        now: int,
        *,
        first_partition: int = 0,
        batch_size: int = ...,
        compression: Compression = ...,
        level: int | None = None,
    ) -> dict[int, list[Buffer]]:
        """Sealed batches of format 2 by partition, in the order of the rows, none with more than one record above
        `batch_size`. A row goes to its partition if it names one, by murmur2 of its key if it has one, else to one
        partition after the other from `first_partition` on. A row without a timestamp gets `now`.

        Raises: InvalidArgument: naming the row.
        """

    def choose(self, partitions: int, first_partition: int = 0) -> bytearray:
        """The partitions that `encode` would choose, as int32 in the machine's order.

        Raises: InvalidArgument: naming the row.
        """

    def check(self, max_record: int, partitions: int) -> None:
        """Nothing when every row can become a record of at most `max_record` bytes.

        Raises: InvalidArgument, RecordRejected: naming the row.
        """

    def record(self, index: int) -> tuple[bytes | None, bytes | None, int | None, int | None, Any]:
        """A row as objects: value, key, partition, timestamp, headers.

        Raises: InvalidArgument: naming the row.
        """

    def mark_row(self, index: int, run: int) -> None:
        """A run of the producer took the row; runs are numbered from 0."""

    def release(self) -> None:
        """Let go of Arrow's memory: all rows have been read."""

    def places(self, rows: int, run: int, start: int, count: int) -> list[tuple[int, int]]:
        """Which of the first `rows` rows a run took as its number `start` and those after it, `count` in all: (first,
        last) each."""
