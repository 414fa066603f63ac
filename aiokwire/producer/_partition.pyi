from collections.abc import Sequence
from typing import final

from aiokwire.producer._delivery import Batch

@final
class Partition:
    """The state of one partition: its open, queued and in-flight batches, and their sequence."""

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
    def move(self, leader: int, magic: int) -> None:
        """Set the node that leads it (-1: none) and its message format."""

    def hold(self, until: float) -> None:
        """Send none of its batches before this moment, on the loop's clock."""

    def push(self, batch: Batch) -> None:
        """Queue a batch that was just sealed, behind all others."""

    def take_next(self) -> Batch:
        """Remove the first batch from the queue and return it: from here on it is in flight."""

    def put_back(self, batch: Batch) -> None:
        """Queue a batch before those accepted after it: a retry, or a part of a divided batch."""

    def discard(self, batch: Batch) -> None:
        """Remove a batch from the queue, if it is there."""

    def arrived(self, batch: Batch) -> bool:
        """Remove a batch from those in flight; return whether it was one of them."""

    @property
    def backlog(self) -> int:
        """The number of its batches that are queued or in flight, for the adaptive partitioner."""

    def stamp(self, batch: Batch, producer_id: int, producer_epoch: int) -> None:
        """Number a batch before it is sent, unless it has a number of the current sequence."""

    @property
    def in_doubt(self) -> bool:
        """Whether its next batch was sent in this sequence, so the broker may have written it."""

    def break_sequence(self) -> None:
        """Require a new producer epoch before the next batch."""

    def skip(self, batch: Batch) -> None:
        """Require one if the broker would wait for the numbers of a batch not sent (again)."""

    def restart_sequence(self) -> None:
        """Start at sequence 0 under the producer id and epoch of the next batch."""

@final
class Topic:
    """The producer's state of one topic; `count` is 0 until its metadata is known."""

    name: str
    partitions: list[Partition]
    count: int
    parked: Batch | None
    sticky: int

    def next_in_turn(self) -> int:
        """The partition after the sticky one that has a leader, while no batch waits; else -1."""

def next_sequence(sequence: int, count: int) -> int:
    """The sequence after a batch: 2^31 - 1 is followed by 0."""
