"""What exists of a transaction while it is open, and how it ends; and ends that nobody's cancellation breaks off."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable

import anyio

from aiokwire.backoff import Deadline
from aiokwire.cluster import Client
from aiokwire.errors import ClosedError, KafkaError
from aiokwire.types import TopicPartition


class TransactionOutcome(enum.Enum):
    """What became of a transaction."""

    OPEN = enum.auto()  # it will surely not be committed by this producer, unless it asks for that yet
    COMMITTED = enum.auto()
    ABORTED = enum.auto()
    UNKNOWN = enum.auto()  # the coordinator was asked to commit, and what it did is not known


class OpenTransaction:
    """What exists only while a transaction is open."""

    def __init__(self, deadline: Deadline, *, transaction_v2: bool) -> None:
        self.deadline = deadline
        self.transaction_v2 = transaction_v2  # the protocol (KIP-890) in which it also ends
        self.partitions: set[TopicPartition] = set()  # part of it
        self.wanted: set[TopicPartition] = set()  # to be made part of it before their batches leave
        self.asked: set[TopicPartition] = set()
        self.groups: set[str] = set()
        self.error: KafkaError | None = None  # why it can only be aborted
        self.unknown_id = False  # the coordinator does not know our producer id any more
        self.timed_out = False  # the coordinator aborted it, and the producer has the identity after that
        self.outcome = TransactionOutcome.OPEN

    @property
    def touched(self) -> bool:
        """Whether the coordinator may know of it, so that it must be asked to end it."""
        return bool(self.partitions or self.asked or self.groups)


async def run_to_the_end(client: Client, work: Callable[[], Awaitable[None]], name: str) -> None:
    """Run `work`, which has a deadline of its own, to its end, whoever is cancelled meanwhile; then a cancellation
    goes on.

    A scope's shield holds back anyio's cancellations only, not those of `asyncio.timeout` or a task's own `cancel()`:
    so it runs in the client's tasks.
    """
    done = anyio.Event()

    async def run() -> None:
        try:
            await work()
        finally:
            done.set()

    cancelled: BaseException | None = None
    with anyio.CancelScope(shield=True):
        try:
            client.spawn(run, name=name)
        except ClosedError:
            await work()  # fails at once, and says so in its own way
            return
        while not done.is_set():
            try:
                await done.wait()
            except anyio.get_cancelled_exc_class() as error:
                cancelled = error
    if cancelled is not None:
        raise cancelled
