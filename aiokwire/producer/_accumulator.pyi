import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol, final

from aiokwire.errors import BufferFullError
from aiokwire.producer._delivery import Batch, Delivery, WaitingRecord
from aiokwire.producer._partition import Partition, Topic
from aiokwire.records import ArrowRows
from aiokwire.types import Headers

NOWAIT: int
SUBMIT: int
SEND: int

class Events(Protocol):
    """Receives the accumulator's events, chooses partitions, and queues records that wait for room.

    `choose_partition` is called for a custom partitioner, `enter_line` for a record of `submit`
    without room, `full` for the error of `submit_nowait`.
    """

    def on_open(self, partition: Partition, /) -> None: ...
    def on_sealed(self, partition: Partition, /) -> None: ...
    def on_urgent(self, partition: Partition, /) -> None: ...
    def on_unknown(self, topic: Topic, /) -> None: ...
    def on_refused(self, batch: Batch, /) -> None: ...
    def on_cancel(self, batch: Batch, index: int, /) -> bool: ...
    def choose_sticky(self, topic: Topic, /) -> int: ...
    def choose_partition(self, topic: Topic, key: bytes | None, value: bytes | None, /) -> int: ...
    def enter_line(self, record: tuple[Any, Any, Any, Any, Any, Any, int], /) -> WaitingRecord: ...
    def full(self, record: tuple[Any, Any, Any, Any, Any, Any, int], /) -> BufferFullError: ...

@final
class Accumulator:
    """All open batches, and the count of bytes that the producer holds.

    `events` receives `on_open`, `on_sealed` and `on_urgent` of a partition, `on_unknown(topic)` and
    `on_refused(batch)`; it chooses partitions with `choose_sticky(topic)` or, for a custom
    partitioner, `choose_partition(topic, key, value)`, and queues records without room:
    `enter_line(record)`.
    """

    topics: dict[str, Topic]
    live: dict[Batch, None]
    used: int
    limit: int
    max_record: int
    now: float
    blocked: bool
    turn_due: bool
    def __init__(
        self,
        events: Events,
        *,
        limit: int,
        batch_size: int,
        max_record: int,
        delivery_timeout: float,
        partitioning: int = 0,
    ) -> None: ...
    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Accept records, on this loop only."""

    def close(self, reason: str | Exception) -> None:
        """Refuse records until `open`; `reason`: text of their ClosedError, or an error to copy."""

    def append(
        self,
        topic: str,
        value: object,
        key: object,
        partition: int | None,
        timestamp: int | None,
        headers: Headers | None,
        mode: int,
        granted: bool = False,
    ) -> Delivery | None:
        """Accept a record; return its `Delivery`, None if it must wait: room, others, the loop.

        Raises: InvalidArgument, RecordRejected: the record was refused. ClosedError.
        """

    def submit(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers | None = None,
    ) -> Coroutine[Any, Any, Delivery]:
        """`Producer.submit` without serializers."""

    def submit_nowait(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers | None = None,
    ) -> Delivery:
        """`Producer.submit_nowait` without serializers."""

    def append_many(self, topic: str, records: Sequence[Any], start: int, runs: list[tuple[Delivery, int]]) -> int:
        """Accept `records[start:]`; return the index of the first that waits, or `len(records)`.

        A record is a value or (value, key, partition, timestamp, headers). Consecutive records of a
        batch are added to `runs` as (delivery of the first, count). The topic must be known.
        """

    def append_rows(self, topic: str, rows: ArrowRows, start: int, runs: list[tuple[Delivery, int]]) -> int:
        """Accept rows from `start` on; return the index of the first that waits, or `len(rows)`.

        Each batch with rows of this call is added to `runs` as (delivery of its first row, count);
        `rows`, which the caller has checked, note the run of each row. A topic that is not known
        accepts no rows: append a record first.

        Raises: InvalidArgument: names the row; those before it were accepted. ClosedError.
        """

    def frozen(
        self, record: tuple[Any, Any, Any, Any, Any, Any, int]
    ) -> tuple[str, bytes | None, bytes | None, int | None, int | None, Headers | None, int]:
        """Copy a record that has to wait, so that its caller may change the arguments meanwhile."""

    def deliver_by(self, delivery: Delivery, deadline: float) -> None:
        """Shorten the deadline of a record that has waited for room: its wait counts."""

    def need(self, value: bytes | None, key: bytes | None, headers: Headers | None) -> int:
        """The room that a record needs: an upper bound of its bytes."""

    def seal(self, target: Partition) -> None:
        """Close the open batch of a partition to further records, and queue it for its broker."""

    def release(self, batch: Batch) -> None:
        """Free the room of a batch that no socket writes; reuse its memory unless a view holds it.

        New memory for every batch would cost an eighth of the CPU time: the system clears pages.
        The memory kept stays within the producer's limit, also when many small batches have it.
        """

    def release_plain(self, batch: Batch) -> None:
        """Free what a compressed batch was made of: it then holds its compressed bytes only."""

    def finish(self, batch: Batch) -> None:
        """Remove a batch that is done or split: no flush waits for it."""

    def add_topic(self, name: str) -> Topic:
        """Add a topic without requesting its metadata."""

    def set_partitions(self, state: Topic, leaders: list[int], magics: list[int]) -> None:
        """Apply a topic's metadata: leaders (-1: none), message formats; place parked records."""

    def forget_topic(self, state: Topic) -> Batch | None:
        """Drop a topic without metadata and return its parked batch, for the caller to fail."""

    def split(self, batch: Batch, target: Partition, records: Sequence[Any]) -> list[Batch]:
        """Divide a batch's decoded records into two batches, for the caller to queue (KIP-126)."""

    def cancel(
        self, batch: Batch, target: Partition, records: Sequence[Any], index: int, error: Exception
    ) -> list[Batch]:
        """Remove one decoded record; return the batches of those before and after it, in order."""

    def cancel_parked(self, batch: Batch, index: int, error: Exception) -> bool:
        """Remove a record of a topic that is not known yet; return whether it was there."""

    def rebuild(self, batch: Batch, records: Sequence[Any], magic: int) -> None:
        """Encode a batch's decoded records again, in another message format."""
