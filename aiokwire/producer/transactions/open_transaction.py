"""The state of an open transaction, and the steps that end it in spite of a cancellation."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable

import anyio

from aiokwire.backoff import Deadline
from aiokwire.cluster import Client
from aiokwire.errors import ClosedError, KafkaError
from aiokwire.types import TopicPartition


class TransactionOutcome(enum.Enum):
    """The outcome of a transaction."""

    OPEN = enum.auto()  # not committed, unless this producer still requests it
    COMMITTED = enum.auto()
    ABORTED = enum.auto()
    UNKNOWN = enum.auto()  # the commit was requested, and its result is not known


class OpenTransaction:
    """The state of one transaction; the driver changes it."""

    def __init__(self, deadline: Deadline, *, transaction_v2: bool) -> None:
        self.deadline = deadline
        self.transaction_v2 = transaction_v2  # its protocol (KIP-890), until its end
        self.partitions: set[TopicPartition] = set()  # part of it
        self.wanted: set[TopicPartition] = set()  # to be added before their batches are sent
        self.asked: set[TopicPartition] = set()  # AddPartitionsToTxn was sent for them
        self.groups: set[str] = set()
        self.error: KafkaError | None = None  # why it can only be aborted
        self.unknown_id = False  # the coordinator no longer knows the producer id
        self.timed_out = False  # the coordinator aborted it, and the producer has the next identity
        self.outcome = TransactionOutcome.OPEN

    @property
    def touched(self) -> bool:
        """Whether a request may have reached the coordinator, which then has to end it."""
        return bool(self.partitions or self.asked or self.groups)


async def run_to_the_end(client: Client, work: Callable[[], Awaitable[None]], name: str) -> None:
    """Run `work`, which has a deadline, to its end; deliver the caller's cancellation afterwards.

    A shielded scope holds back anyio's cancellations only, not those of `asyncio.timeout` or
    `Task.cancel()`: so the work runs in a task of the client.
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
            await work()  # fails at once, with its own error
            return
        while not done.is_set():
            try:
                await done.wait()
            except anyio.get_cancelled_exc_class() as error:
                cancelled = error
    if cancelled is not None:
        raise cancelled
