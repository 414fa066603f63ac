from typing import final

from typing_extensions import Buffer

from aiokwire.records._columns import Columns
from aiokwire.records._record import Record
from aiokwire.types import Compression, TimestampType

@final
class RecordBatch:
    """One batch, undecoded, as a view of the buffer it was read from (which it keeps alive).

    A run of plain messages, or one compressed message, of formats 0 and 1 counts as a batch; of a compressed one the
    base offset and the count are only known after decompression, which happens when they are asked for.
    Not safe for use by two threads at once, except `decompress`.
    """

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def position(self) -> int:
        """Where in the buffer the batch starts."""

    @property
    def size(self) -> int: ...
    @property
    def magic(self) -> int: ...
    @property
    def attributes(self) -> int: ...
    @property
    def compression(self) -> Compression: ...
    @property
    def base_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def next_offset(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def timestamp_type(self) -> TimestampType: ...
    @property
    def base_timestamp(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def base_sequence(self) -> int: ...
    @property
    def last_sequence(self) -> int: ...
    @property
    def is_transactional(self) -> bool: ...
    @property
    def is_control(self) -> bool: ...
    @property
    def control_type(self) -> int | None:
        """0 for an abort marker, 1 for a commit marker, None for a batch of data."""

    @property
    def delete_horizon(self) -> int | None: ...
    @property
    def data(self) -> memoryview:
        """The batch's bytes, not copied."""

    def verify(self) -> bool:
        """Check the checksum (of every message in formats 0 and 1); True when it fits.

        Raises: CorruptRecord: when it does not.
        """

    @property
    def needs_decompression(self) -> bool: ...
    def decompress(self) -> None:
        """Decompress now, perhaps in a thread; everything that needs it does so by itself.

        Raises: CorruptRecord: for corrupt bytes or more than the limit.
        """

    def decompress_within(self, limit: int) -> bool:
        """Decompress now if that yields at most `limit` bytes; False if it yields more, or the bytes are corrupt."""

    @property
    def decompressed_size(self) -> int:
        """The bytes that decompression has allocated; 0 before it, and for a batch that is not compressed."""

    def is_longer_than(self, records: int, size: int) -> bool:
        """Whether `split` with the same arguments would return more than one part. Call it after decompression."""

    def split(self, records: int, size: int) -> list[RecordBatch]:
        """The batch as consecutive parts of at most `records` records; a part takes no more records once it has `size`
        bytes. Parts share the (decompressed) memory, have no checksum and no sequence number, and are not split again.

        Walks all records without the GIL: call it in a thread for a large batch.

        Raises: CorruptRecord: naming topic, partition and offset.
        """

    def records(self, from_offset: int = ...) -> list[Record]:
        """The records at `from_offset` and behind it.

        Raises: CorruptRecord: naming topic, partition and offset.
        """

    def values(self, from_offset: int = ...) -> list[bytes | None]:
        """Their values only."""

    def columns(self, from_offset: int = ...) -> Columns:
        """The records as Arrow's buffers."""

    def add_to(self, columns: Columns, from_offset: int = ..., to_offset: int = ...) -> None:
        """Add the records at `from_offset` and behind it, before `to_offset`, to `columns`: all, or none when one is
        corrupt."""

    def inspect(self, earliest: int = ...) -> tuple[int, bool, int, int, list[int], list[int]]:
        """Walk the records: see `checks.RecordCheck` for the fields."""

    def find_timestamp(self, timestamp: int) -> tuple[int, int] | None:
        """Offset and timestamp of the first record at or after `timestamp`."""

def read_batches(
    data: Buffer | None, topic: str, partition: int, *, check_crcs: bool = True, max_decompressed: int = ...
) -> list[RecordBatch]:
    """The whole batches in a fetch response's records; a truncated one at the end is left out.

    Sound batches before a corrupt one are returned; reading again from the corrupt one's offset raises.

    Raises: CorruptRecord: when the first batch is corrupt.
    """

def fill_columns(
    columns: Columns,
    batches: list[RecordBatch],
    start: int = 0,
    from_offset: int = ...,
    to_offset: int = ...,
    rows: int = ...,
    size: int = ...,
) -> int:
    """Add the records of batches from place `start` on, until the columns have `rows` rows or `size` bytes.

    Returns the index of the batch to continue with. A batch is never split.

    Raises: CorruptRecord: naming topic, partition and offset; what the batches before it had is in the columns.
    """

def scan_batches(
    data: Buffer | None,
    *,
    check_crcs: bool = False,
    stop_at_fault: bool = False,
    max_decompressed: int = ...,
    topic: str = "",
    partition: int = -1,
) -> list[RecordBatch]:
    """The same for the broker; with `stop_at_fault` a corrupt batch ends the list instead of raising.

    The last batch's `position + size` is where the sound bytes end.
    """

def take_sound(
    data: Buffer,
    max_size: int,
    max_records: int,
    earliest: int,
    latest: int,
    *,
    needs_keys: bool = False,
    has_own_time: bool = False,
) -> RecordBatch | None:
    """Return the batch if `data` is exactly one valid batch that can be stored unchanged, else None.

    Checks its header, its checksum and all records. None does not name the fault: the caller has to check further.

    Only a batch of format 2 that is not compressed is taken, with timestamps (milliseconds) from `earliest` to `latest`
    or none. `needs_keys` refuses records without a key; with `has_own_time` the broker gives the timestamps.
    """
