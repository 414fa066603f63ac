import collections
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
    queue: collections.deque[Batch]
    in_flight: list[Batch]
    retry_at: float
    producer_id: int
    producer_epoch: int
    next_sequence: int
    needs_epoch: bool
    def __init__(self, topic: str, index: int, leader: int, magic: int) -> None: ...
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
