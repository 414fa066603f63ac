from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from aiokwire.consumer import ConsumerRecord
from aiokwire.types import Order, TopicPartition
from aiokwire.worker.ordering import Gate
from aiokwire.worker.work_queue import AssignedPartition, HandlerLine

RawRecord = ConsumerRecord[bytes, bytes]

class Ordered:
    """A record in its chain. `chains` and `chain` are assigned by `Ordering`."""

    tp: TopicPartition
    key: bytes | None
    line: Line
    chain: bytes
    chains: dict[bytes, deque[Ordered] | None] | None
    def __init__(self, tp: TopicPartition, key: bytes | None, line: Line) -> None: ...
    def track(self) -> None:
        """Have the garbage collector track it from now on: what holds it may outlive the queue."""

class InFlightRecord(Ordered):
    """A record that was admitted; `attempt` counts the calls of its handler."""

    record: RawRecord
    partition: AssignedPartition
    line: HandlerLine
    size: int
    attempt: int
    def __init__(self, record: RawRecord, partition: AssignedPartition, size: int, attempt: int = 1) -> None: ...
    @property
    def count(self) -> int:
        """1."""
    @property
    def offsets(self) -> Sequence[int]:
        """The offset of its record."""
    @property
    def place(self) -> str:
        """Its place, for logs and errors."""

class Line:
    """The runnable records of one handler, and how many of them run."""

    limit: int | None
    gates: Sequence[Gate]
    ready: deque[Ordered]
    running: int
    def __init__(self, limit: int | None = None, gates: Sequence[Gate] = ()) -> None:
        """`limit`: the records that may run at a time; None: without a limit. `gates`: all of them
        must admit a record."""
    @property
    def can_run(self) -> bool:
        """Whether a record is runnable now."""
    def is_admitted(self) -> bool:
        """Whether every gate admits a record now."""

T = TypeVar("T", bound=Ordered)

class Ordering(Generic[T]):
    """Admits records in the order of their offsets; returns them when they may run."""

    def __init__(self, order: Order) -> None: ...
    def add(self, item: T) -> None: ...
    def add_records(
        self,
        records: Iterable[RawRecord],
        partition: AssignedPartition,
        attempts: Callable[[RawRecord], int] | None = None,
    ) -> int: ...
    def offer(self, item: T) -> None: ...
    def take(self) -> T | None: ...
    @property
    def can_take(self) -> bool: ...
    def release(self, item: T) -> None: ...
    def put_off(self, item: T) -> None: ...
    def put_back(self, item: T) -> None: ...
    def postpone(self, item: T) -> None: ...
    def drop(self, tp: TopicPartition) -> None: ...
