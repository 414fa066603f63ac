from collections.abc import Sequence
from typing import final

from aiokwire.producer._delivery import Batch

@final
class Partition:
    """The producer's side of one partition: its open batch, what waits, what is in flight."""

    topic: str
    index: int
    leader: int
    magic: int
    open: Batch | None
    queue: Sequence[Batch]
    in_flight: Sequence[Batch]
    retry_at: float
    producer_id: int
    producer_epoch: int
    next_sequence: int
    needs_epoch: bool
    def __init__(self, topic: str, index: int, leader: int, magic: int) -> None: ...
    def push(self, batch: Batch) -> None:
        """Queue a batch that was just sealed, behind all others."""

    def take_next(self) -> Batch:
        """Remove the first batch from the queue and return it: it is in flight from here on."""

    def put_back(self, batch: Batch) -> None:
        """Queue a batch before those that were accepted after it: a retry, or a part of a batch that was divided."""

    def discard(self, batch: Batch) -> None:
        """Remove a batch from the queue, if it is there."""

    def arrived(self, batch: Batch) -> bool:
        """Remove a batch from those in flight; returns whether it was one of them."""

    @property
    def backlog(self) -> int:
        """How many batches wait or are on their way, for the adaptive partitioner."""

@final
class Topic:
    """The producer's side of one topic; `count` is 0 until its metadata is there."""

    name: str
    partitions: list[Partition]
    count: int
    parked: Batch | None
    sticky: int
