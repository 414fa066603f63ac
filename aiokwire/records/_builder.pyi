from typing_extensions import Buffer

from aiokwire.types import Compression, Headers

def estimate_size(key: Buffer | None, value: Buffer | None, headers: Headers | None = (), magic: int = 2) -> int:
    """An upper bound for the bytes of a batch that holds just this record.

    Raises: InvalidArgument: for a key, value or header that is not bytes-like.
    """

class BatchBuilder:
    """Collects records and seals them into one batch (magic 2) or message set (magic 0 and 1).

    The buffer grows as records come, up to `size_limit` bytes; a single record may be larger. Compiled code calls
    `append_c` without the cost of a Python call.
    """

    def __init__(self, magic: int = 2, size_limit: int = 16384, initial: int = 0) -> None: ...
    @property
    def count(self) -> int: ...
    @property
    def magic(self) -> int: ...
    @property
    def sealed(self) -> bool: ...
    @property
    def size(self) -> int:
        """The bytes of the batch so far, uncompressed, its header included."""

    @property
    def size_limit(self) -> int: ...
    @property
    def allocated(self) -> int: ...
    @property
    def base_timestamp(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...
    def append(self, timestamp: int, key: Buffer | None, value: Buffer | None, headers: Headers | None = ()) -> int:
        """The record's offset in the batch, or -1 when it does not fit (an empty builder takes any).

        Raises: InvalidArgument: for a wrong type, a record above 2 GiB, or a sealed builder.
        """

    def append_at(
        self, delta: int, timestamp: int, key: Buffer | None, value: Buffer | None, headers: Headers | None = ()
    ) -> int:
        """The same at a given relative offset, for batches with gaps.

        Raises: InvalidArgument: also when `delta` does not rise.
        """

    def seal(
        self,
        *,
        compression: Compression = ...,
        level: int | None = None,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
        control: bool = False,
        base_offset: int = 0,
        leader_epoch: int = -1,
        log_append_time: int | None = None,
    ) -> memoryview | bytes:
        """The encoded batch; uncompressed it is a view of this builder's own buffer.

        May run in a thread (compression releases the interpreter) while no record is appended.

        Raises: InvalidArgument: when empty or sealed already, or for a wrong compression level.
        """

    def reset(self) -> None:
        """Make the builder empty again, keeping its buffer.

        Raises: BufferError: while a view of the sealed batch is alive.
        """

    def __buffer__(self, flags: int, /) -> memoryview: ...
