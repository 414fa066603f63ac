import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Protocol, TypeVar, final

from aiokwire.errors import KafkaError
from aiokwire.protocol import Buffer
from aiokwire.types import Compression, RecordMetadata

A = TypeVar("A")

IN_FLIGHT: int
DONE: int
SPLIT: int

@final
class Batch:
    """Records of one partition that are sent together, and their result."""

    topic: str
    partition: int
    first_key: bytes | None
    error: Exception | None
    last_error: Exception | None
    data: Buffer | None
    parked: list[tuple[Delivery, int, tuple[Any, ...]] | None] | None
    created: float
    deadline: float
    order: float
    size: int
    base_offset: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int
    cancelled: int
    attempts: int
    state: int
    urgent: bool
    @property
    def done(self) -> bool:
        """Whether its records are acknowledged or failed."""

    @property
    def remaining(self) -> int:
        """The number of its records that were not cancelled."""

    @property
    def place(self) -> str:
        """Its topic and partition for messages; only the topic while the partition is not known."""

    @property
    def magic(self) -> int:
        """Its message format."""

    def seal(self, compression: Compression, level: int | None, transactional: bool = False) -> Buffer:
        """Encode its final bytes; `data` keeps them for retries."""

    def number(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """Assign producer id, epoch and base sequence; patch them into sealed bytes."""

    def clear_sequence(self) -> None:
        """Allow it another sequence: the broker did not write it, and refuses it under this one."""

    def set_last_error(self, error: Exception) -> None:
        """Remember the error of its last attempt."""

    def complete(self, base_offset: int, append_time: int) -> None:
        """Acknowledge it. `append_time` is -1 unless the broker sets the timestamps."""

    def fail(self, error: Exception, record_errors: dict[int, KafkaError] | None = None) -> None:
        """Give it up; `record_errors` has the errors of single records."""

    def split_into(self, children: list[tuple[int, Batch]]) -> None:
        """Replace it by `children`: (index of the first record, batch) in order."""

    def add_waiter(self, waiter: asyncio.Future[None]) -> None:
        """Wake `waiter`, a future, when this batch is done or split."""

    def discard_waiter(self, waiter: asyncio.Future[None]) -> None:
        """Remove a waiter that was cancelled."""

    def successors(self) -> list[Batch]:
        """The batches that replaced it; none unless it was split."""

    def mark_observed(self) -> None:
        """Keep its failure out of the log: it is reported in another way."""

    def drop_bytes(self) -> object:
        """Drop the bytes and return the builder, for reuse as soon as no view of them is left."""

@final
class Delivery:
    """A record's result: await its `RecordMetadata`, call `done()`, `result()`, `exception()`."""

    @property
    def topic(self) -> str:
        """The record's topic."""

    @property
    def partition(self) -> int:
        """The record's partition; -1 while it is not known."""

    @property
    def timestamp_type(self) -> int:
        """1 if the broker set the timestamp (log-append time), else 0."""

    def done(self) -> bool:
        """Whether the record was acknowledged or failed."""

    def result(self) -> RecordMetadata:
        """The record's metadata.

        Raises: KafkaError: why the record failed. asyncio.InvalidStateError: it is not done yet.
        """

    def exception(self) -> KafkaError | None:
        """Why the record failed, None when it was acknowledged.

        Raises: asyncio.InvalidStateError: it is not done yet.
        """

    @property
    def error(self) -> Exception | None:
        """Why the record failed; None if it did not, or is not done. A failure is still logged."""

    def add_done_callback(self, callback: Callable[[Delivery], object]) -> None:
        """Call `callback(delivery)` on the event loop soon after the record was acknowledged or
        failed. Its exceptions go to the loop's exception handler, as those of a future's callback.
        """

    def call_when_done(self, function: Callable[[Delivery, A], object], argument: A) -> None:
        """Call `function(delivery, argument)` in the turn of the loop that acknowledges or fails the
        record, at once if it is done. Cheaper than `add_done_callback`, for libraries: it must be
        short, and must not raise.
        """

    def cancel(self) -> bool:
        """Withdraw the record if it was not sent yet; return whether it was withdrawn.

        Awaiting the delivery then raises DeliveryFailed with the stage "cancelled". A record in a
        batch of more than 10,000 cannot be cancelled. All others keep their order.
        """

    def __await__(self) -> Generator[Any, None, RecordMetadata]: ...

@final
class WaitingRecord(Coroutine[Any, Any, Delivery]):
    """The result of `submit` without room: a place in line; awaiting it returns the delivery.

    The record keeps its place also when it is not awaited. A cancelled wait gives the place up.
    """

    record: tuple[Any, Any, Any, Any, Any, Any, int]
    need: int
    deadline: float
    number: int
    awaited: bool
    delivery: Delivery | None
    error: BaseException | None
    def __init__(
        self,
        line: Line,
        loop: asyncio.AbstractEventLoop,
        record: tuple[Any, Any, Any, Any, Any, Any, int],
        need: int,
        deadline: float,
        number: int,
        awaited: bool,
    ) -> None: ...
    @property
    def done(self) -> bool:
        """Whether it was accepted or refused."""

    def accept(self, delivery: Delivery) -> None:
        """Finish with the delivery of the record."""

    def refuse(self, error: BaseException) -> None:
        """Finish with the error of the record."""

    def add_waiter(self, waiter: asyncio.Future[None]) -> None:
        """Wake `waiter`, a future, when the record has left the line."""

    def __await__(self) -> Generator[Any, Any, Delivery]: ...
    def send(self, value: Any) -> Any: ...
    def throw(self, kind: Any, value: Any = None, traceback: Any = None) -> Any: ...
    def close(self) -> None: ...

class Line(Protocol):
    """Where a record waits."""

    def on_awaited(self, waiting: WaitingRecord, /) -> None: ...
    def withdraw(self, waiting: WaitingRecord, /) -> None: ...

def delivery_of(submitted: Coroutine[Any, Any, Delivery]) -> Delivery | None:
    """The delivery of what `submit` returned; None while the record waits for room."""

def outcomes(runs: list[tuple[Delivery, int]]) -> list[tuple[int, int, int, KafkaError | None]]:
    """Results of runs whose batches are done, in order: (partition, first offset, count, error).

    Each record of a batch in which the broker rejected single records has a row of its own.
    """

def pending_in(first: Delivery, count: int) -> Batch | None:
    """The first batch of a run that is not done; None when all are."""
