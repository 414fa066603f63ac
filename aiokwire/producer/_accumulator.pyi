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
    """What the accumulator reports to, and asks for partitions."""

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
    """All open batches, and the count of bytes that the producer holds."""

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
        """Accept nothing until `open`; `reason` is what callers are told: a text, or an error to be copied."""

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
        """Take one record: its `Delivery`, or None when it has to wait (room, its turn in the queue, the loop's turn).

        Raises: InvalidArgument, RecordRejected: for this record; nothing was accepted. ClosedError.
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
        """Take records from `start` on; says where it had to stop, which is their number when all were taken."""

    def append_rows(self, topic: str, rows: ArrowRows, start: int, runs: list[tuple[Delivery, int]]) -> int:
        """Take rows from `start` on; says where it had to stop, which is their number when all were taken.

        `runs` grows by (delivery of the first, count) per batch that took rows of this call; `rows`, which were checked
        before, note which took which. A topic that is not known yet takes none: its first record is one for `append`.

        Raises: InvalidArgument: naming the row; those before it were accepted. ClosedError.
        """

    def frozen(
        self, record: tuple[Any, Any, Any, Any, Any, Any, int]
    ) -> tuple[str, bytes | None, bytes | None, int | None, int | None, Headers | None, int]:
        """A record that has to wait: what its caller does with its arguments meanwhile does not change it."""

    def deliver_by(self, delivery: Delivery, deadline: float) -> None:
        """A record was accepted that has waited for room: its time counts from before that."""

    def need(self, value: bytes | None, key: bytes | None, headers: Headers | None) -> int:
        """The room that a record must find: an upper bound of its bytes."""

    def seal(self, target: Partition) -> None:
        """The open batch of a partition takes no more records and queues up for its broker."""

    def release(self, batch: Batch) -> None:
        """A batch's bytes are on no socket any more: their room is free."""

    def release_plain(self, batch: Batch) -> None:
        """A batch was compressed: what its bytes were made of is free, and it holds no more than them from now on."""

    def finish(self, batch: Batch) -> None:
        """A batch is done or split: it is no longer waited for by a flush."""

    def add_topic(self, name: str) -> Topic:
        """Begin a topic without asking for its metadata."""

    def set_partitions(self, state: Topic, leaders: list[int], magics: list[int]) -> None:
        """The topic's metadata: a leader's node id (-1: none) and message format per partition."""

    def forget_topic(self, state: Topic) -> Batch | None:
        """Its metadata could not be had: give back the parked batch, to be failed; the next record asks anew."""

    def split(self, batch: Batch, target: Partition, records: Sequence[Any]) -> list[Batch]:
        """Put a batch's decoded records into two smaller ones, to be queued in order (KIP-126)."""

    def cancel(
        self, batch: Batch, target: Partition, records: Sequence[Any], index: int, error: Exception
    ) -> list[Batch]:
        """Take one of a batch's decoded records out: the batches of those before and behind it, in order."""

    def cancel_parked(self, batch: Batch, index: int, error: Exception) -> bool:
        """The same where the topic is not known yet; whether it was there."""

    def rebuild(self, batch: Batch, records: Sequence[Any], magic: int) -> None:
        """Encode a batch's decoded records anew, in another message format."""
