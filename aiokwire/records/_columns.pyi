from typing import TypedDict

from aiokwire.records._record import Record

BytesBuffers = tuple[ArrowBuffer | None, ArrowBuffer, ArrowBuffer, int]

class ArrowBuffer:
    """Owns the memory of one buffer; exports it read-only."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Spare:
    """Memory that Arrow has let go of, kept for the next columns: new pages cost as much as decoding into them.

    For who makes batch after batch and keeps none; three batches' worth of memory are kept at most.
    """

    def __init__(self) -> None: ...
    @property
    def size(self) -> int:
        """Bytes that lie ready."""

class ColumnBuffers(TypedDict):
    """Arrow's buffers by column; bytes columns are (validity or None, int32 offsets, data, null count)."""

    topics: tuple[str, ...]
    topic: ArrowBuffer
    partition: ArrowBuffer
    offset: ArrowBuffer
    timestamp: ArrowBuffer
    timestamp_type: ArrowBuffer
    key: BytesBuffers
    value: BytesBuffers
    header_offsets: ArrowBuffer
    header_count: int
    header_key: BytesBuffers
    header_value: BytesBuffers

class Columns:
    """Records as columns: filled by `RecordBatch.add_to`, then handed out once.

    What is not wanted costs next to nothing, and is null, or empty. With `spare` the memory comes from there, and goes
    back when Arrow has let go of it. With `microseconds` timestamps are such, and their types are 32 bits wide, as
    Spark has them.
    """

    def __init__(
        self,
        *,
        keys: bool = True,
        values: bool = True,
        headers: bool = True,
        microseconds: bool = False,
        spare: Spare | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def size(self) -> int:
        """The bytes of keys, values and headers."""
    @property
    def microseconds(self) -> bool:
        """Whether timestamps are in microseconds."""
    @property
    def out_of_range(self) -> tuple[int, int] | None:
        """The first row whose timestamp 64 bits of microseconds cannot hold, and that timestamp in milliseconds."""
    def add_records(self, records: list[Record]) -> None:
        """Add records; all of them, or none.

        Raises: InvalidArgument: for more than 2 GiB.
        """
    def buffers(self) -> ColumnBuffers:
        """The buffers. Nothing can be added afterwards."""
