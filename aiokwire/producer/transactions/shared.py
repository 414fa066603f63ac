"""One transaction of several producers, in any processes; `SharedTransactions` opens and ends it.

    shared.open() -> ticket -> Producer(joins=ticket) in each process -> commit or abort(ticket)

The producers share producer id and epoch. A partition may have one writer only: it counts the
sequence. The next `open` with the same id fences earlier producers and aborts what they left open.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from aiokwire.backoff import Deadline
from aiokwire.cluster import Client
from aiokwire.errors import KafkaError, TransactionFailed
from aiokwire.producer.config import ProducerConfig
from aiokwire.producer.idempotence import TransactionalIdentity
from aiokwire.producer.transactions.coordinator import CoordinatorRequestFailed, TransactionCoordinatorClient
from aiokwire.producer.transactions.errors import ErrorAction
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition


class TransactionTicket(NamedTuple):
    """A producer's identity to join a shared transaction; it can be sent to other processes."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    transaction_v2: bool
    """Whether the cluster runs transaction V2 (KIP-890)."""


class JoinedCoordinatorClient(TransactionCoordinatorClient):
    """The coordinator client of a producer that joins: it neither begins nor ends a transaction."""

    def __init__(
        self, client: Client, config: ProducerConfig, identity: TransactionalIdentity, ticket: TransactionTicket
    ) -> None:
        super().__init__(client, config, identity)
        self._ticket = ticket

    async def obtain_identity(self, deadline: Deadline) -> None:
        """Adopt the ticket's identity, also if a sequence broke: its error ends the transaction."""
        ticket = self._ticket
        self.adopt(ticket.producer_id, ticket.producer_epoch, transaction_v2=ticket.transaction_v2)

    async def has_timed_out(self, deadline: Deadline) -> bool:
        """Return False: `SharedTransactions` obtains the next identity."""
        return False

    async def end_transaction(self, deadline: Deadline, *, commit: bool, transaction_v2: bool) -> None:
        """Do nothing: `SharedTransactions` ends the transaction."""


class SharedTransactions:
    """Opens and ends the transactions of one transactional id, in turn, on a started client."""

    def __init__(self, client: Client, config: ProducerConfig) -> None:
        """`config` has the transactional id."""
        self._client = client
        self._config = config
        self._identity = TransactionalIdentity(lambda partition: False)
        self._coordinator = TransactionCoordinatorClient(client, config, self._identity)

    async def open(self) -> TransactionTicket:
        """Fence earlier producers of the transactional id, abort its transaction, get a new epoch.

        Raises: KafkaError: the coordinator refuses, or does not respond in time.
        """
        try:
            await self._coordinator.obtain_identity(self._deadline("requesting a producer id"))
        except CoordinatorRequestFailed as failed:
            raise failed.error from None
        me = self._identity
        return TransactionTicket(
            self._coordinator.transactional_id, me.producer_id, me.producer_epoch, self._coordinator.transaction_v2
        )

    async def commit(
        self,
        ticket: TransactionTicket,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: GroupMetadata,
        wrote: Collection[TopicPartition] | None = None,
    ) -> None:
        """Commit with a group's offsets, after all joined producers have delivered their records.

        `wrote`: the partitions that the producers report; the commit fails if another was written
        to. After an error it may be committed: the group's offsets show it after the next `open`.

        Raises: FencedError: another `open` has followed; KafkaError.
        """
        deadline = self._deadline("committing")
        self._adopt(ticket)
        try:
            if wrote is not None:
                await self._check_writers(wrote, deadline)
            if not ticket.transaction_v2:
                await self._coordinator.add_offsets(group.group_id, deadline)
            await self._coordinator.commit_offsets(offsets, group, deadline, transaction_v2=ticket.transaction_v2)
            await self._coordinator.end_transaction(deadline, commit=True, transaction_v2=ticket.transaction_v2)
        except CoordinatorRequestFailed as failed:
            raise self._explained(failed) from failed.error

    async def abort(self, ticket: TransactionTicket) -> None:
        """Abort, and fence producers that joined and still write; do nothing after another `open`.

        InitProducerId does it: after EndTxn the first transaction protocol accepts late batches.

        Raises: KafkaError: no response; the coordinator aborts after the transaction timeout.
        """
        self._adopt(ticket)
        try:
            await self._coordinator.obtain_identity(self._deadline("aborting"))
        except CoordinatorRequestFailed as failed:
            if failed.action is not ErrorAction.FENCED:
                raise failed.error from None

    async def _check_writers(self, wrote: Collection[TopicPartition], deadline: Deadline) -> None:
        """Raises: TransactionFailed, CoordinatorRequestFailed."""
        found = await self._coordinator.partitions(deadline)
        unexpected = set() if found is None else found.difference(wrote)
        if unexpected:
            raise TransactionFailed(
                f"{self._coordinator.who}: commit refused: {', '.join(map(str, sorted(unexpected)))} was written by a "
                "producer that did not report to this transaction (an abandoned or still running attempt)"
            )

    def _adopt(self, ticket: TransactionTicket) -> None:
        self._coordinator.adopt(ticket.producer_id, ticket.producer_epoch, transaction_v2=ticket.transaction_v2)

    def _deadline(self, what: str) -> Deadline:
        return Deadline(self._config.default_api_timeout, f"{self._coordinator.who}: {what}")

    def _explained(self, failed: CoordinatorRequestFailed) -> KafkaError:
        if failed.action is ErrorAction.FENCED:
            return failed.error
        return TransactionFailed(f"{self._coordinator.who}: the commit failed: {failed.error}")
