import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Protocol, final

from aiokwire.errors import KafkaError
from aiokwire.protocol import Buffer
from aiokwire.types import Compression, RecordMetadata

OPEN: int
SEALED: int
IN_FLIGHT: int
DONE: int
SPLIT: int

@final
class Batch:
    """Records of one partition that travel together, and what became of them."""

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
        """Whether its records' fate is known."""

    @property
    def remaining(self) -> int:
        """How many of its records were not cancelled."""

    @property
    def place(self) -> str:
        """Its topic and partition, for messages; the topic alone while the partition is not known."""

    @property
    def magic(self) -> int:
        """The message format that it was built in."""

    def seal(self, compression: Compression, level: int | None, transactional: bool = False) -> Buffer:
        """Its final bytes, kept in `data`."""

    def complete(self, base_offset: int, append_time: int) -> None:
        """The broker has it. `append_time` is -1 unless the broker sets the timestamps."""

    def fail(self, error: Exception, record_errors: dict[int, KafkaError] | None = None) -> None:
        """Nobody will have it; `record_errors` name the culprits among its records."""

    def split_into(self, children: list[tuple[int, Batch]]) -> None:
        """Its records go on in `children`: (index of the first record, batch) in order."""

    def add_waiter(self, waiter: asyncio.Future[None]) -> None:
        """`waiter` is woken when this batch is done or split."""

    def discard_waiter(self, waiter: asyncio.Future[None]) -> None:
        """Forget a waiter that gave up."""

    def successors(self) -> list[Batch]:
        """The batches that its records went to; none unless it was split."""

    def mark_observed(self) -> None:
        """Somebody was told of its failure: it need not be logged."""

    def drop_bytes(self) -> object:
        """Let go of the bytes."""

@final
class Delivery:
    """What becomes of one record: await it for its `RecordMetadata`, or ask `done()`, `result()`, `exception()`."""

    @property
    def topic(self) -> str:
        """The record's topic."""

    @property
    def partition(self) -> int:
        """The record's partition; -1 while it is not known."""

    def done(self) -> bool:
        """Whether the record was acknowledged or given up."""

    def result(self) -> RecordMetadata:
        """The record's metadata.

        Raises: KafkaError: why it was given up. asyncio.InvalidStateError: it is not done yet.
        """

    def exception(self) -> KafkaError | None:
        """Why the record was given up, None when it was acknowledged.

        Raises: asyncio.InvalidStateError: it is not done yet.
        """

    def cancel(self) -> bool:
        """Take the record back, if it was not sent yet; returns whether it was taken back. All others keep their order.

        Then awaiting the delivery raises DeliveryFailed with the stage "cancelled". In a batch of more than 10,000
        records nothing is cancelled.
        """

    def __await__(self) -> Generator[Any, None, RecordMetadata]: ...

@final
class WaitingRecord(Coroutine[Any, Any, Delivery]):
    """What `submit` returns when there is no room: the record's place in the line. Awaiting it returns the delivery.

    The record keeps its place when nobody awaits it. A wait that is cancelled gives the place up.
    """

    record: tuple[Any, Any, Any, Any, Any, Any, int]
    need: int
    deadline: float
    number: int
    awaited: bool
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
        """Whether it was taken or refused."""

    def accept(self, delivery: Delivery) -> None:
        """There was room."""

    def refuse(self, error: BaseException) -> None:
        """It is not going to be taken."""

    def add_waiter(self, waiter: asyncio.Future[None]) -> None:
        """`waiter` is woken when the record has left the line."""

    def __await__(self) -> Generator[Any, Any, Delivery]: ...
    def send(self, value: Any) -> Any: ...
    def throw(self, kind: Any, value: Any = None, traceback: Any = None) -> Any: ...
    def close(self) -> None: ...

class Line(Protocol):
    """Where a record waits."""

    def on_awaited(self, waiting: WaitingRecord, /) -> None: ...
    def withdraw(self, waiting: WaitingRecord, /) -> None: ...

def outcomes(runs: list[tuple[Delivery, int]]) -> list[tuple[int, int, int, KafkaError | None]]:
    """What became of the runs of `append_many` whose batches are done: (partition, first offset, count, error) each."""

def pending_in(first: Delivery, count: int) -> Batch | None:
    """The first batch of a run of `append_many` that is not done; None when all are."""
