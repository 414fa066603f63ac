"""One transaction that several producers, in any processes, write to: who opens it also ends it.

    SharedTransactions.open() -> ticket -> Producer(joins=ticket) in each process -> .commit(ticket), .abort(ticket)

They share one producer id and epoch. A partition may have one writer only: its sequence numbers are counted by that
producer alone. The next `open` under the same transactional id fences all that came before, and ends what they left.
"""

from __future__ import annotations

import random
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
    """What a producer needs to write to a transaction that another one has opened; travels between processes."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    transaction_v2: bool
    """Whether the cluster runs transaction V2 (KIP-890)."""


class JoinedCoordinatorClient(TransactionCoordinatorClient):
    """The talk with the coordinator of a producer that joins: it neither begins nor ends anything."""

    def __init__(
        self,
        client: Client,
        config: ProducerConfig,
        identity: TransactionalIdentity,
        rng: random.Random,
        ticket: TransactionTicket,
    ) -> None:
        super().__init__(client, config, identity, rng)
        self._ticket = ticket

    async def obtain_identity(self, deadline: Deadline) -> None:
        """Take the ticket's identity; again where a sequence broke, so that the error of that is what counts."""
        self.transaction_v2 = self._ticket.transaction_v2
        self._identity.adopt(self._ticket.producer_id, self._ticket.producer_epoch)

    async def has_timed_out(self, deadline: Deadline) -> bool:
        """Not asked: whoever opened the transaction gets a new identity."""
        return False

    async def end_transaction(self, deadline: Deadline, *, commit: bool, transaction_v2: bool) -> None:
        """Nothing: all that was accepted is delivered, or given up; who opened the transaction ends it."""


class SharedTransactions:
    """Opens and ends the transactions of one transactional id, one after the other, on a started client."""

    def __init__(self, client: Client, config: ProducerConfig) -> None:
        """`config` has the transactional id."""
        self._client = client
        self._config = config
        self._identity = TransactionalIdentity(lambda partition: False)
        self._coordinator = TransactionCoordinatorClient(client, config, self._identity, client.rng)

    async def open(self) -> TransactionTicket:
        """Fence whoever had the transactional id before, abort what they left open, and get a new epoch.

        Raises: KafkaError: the coordinator refuses, or does not answer in time.
        """
        try:
            await self._coordinator.obtain_identity(self._deadline("getting a producer id"))
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
        """Commit, and a group's offsets with it, when every producer that joined has delivered all of its records.

        `wrote`: the partitions that they say they wrote to; nothing is committed when somebody wrote to another. After
        an error it may have taken place: the offsets say so, once the next `open` is done.

        Raises: FencedError: another `open` came since; KafkaError.
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
        """Abort, and fence producers that joined and still write; nothing where another `open` came since.

        By InitProducerId: after an abort by EndTxn the first protocol of transactions would take what comes late.

        Raises: KafkaError: the coordinator does not answer; it aborts by itself when the transaction's time is over.
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
        strangers = set() if found is None else found.difference(wrote)
        if strangers:
            raise TransactionFailed(
                f"{self._coordinator.who}: the commit failed: {', '.join(map(str, sorted(strangers)))} was written to, "
                "and no producer that is known says so: an attempt that was given up, or one that is still running"
            )

    def _adopt(self, ticket: TransactionTicket) -> None:
        self._identity.adopt(ticket.producer_id, ticket.producer_epoch)
        self._coordinator.transaction_v2 = ticket.transaction_v2

    def _deadline(self, what: str) -> Deadline:
        return Deadline(self._config.default_api_timeout, f"{self._coordinator.who}: {what}")

    def _explained(self, failed: CoordinatorRequestFailed) -> KafkaError:
        if failed.action is ErrorAction.FENCED:
            return failed.error
        return TransactionFailed(f"{self._coordinator.who}: the commit failed: {failed.error}")
