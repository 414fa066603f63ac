"""The state of one transactional id. Immutable: each step makes a new version, logged first."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from aiokwire.broker.transactions.states import AT_REST, PREPARED, TRANSITIONS, TransactionEvent, TransactionState
from aiokwire.machine import InvalidTransition
from aiokwire.types import TopicPartition

NO_ID = -1
NO_EPOCH = -1
LAST_EPOCH = 2**15 - 1  # only fences and markers carry it
EXHAUSTED_EPOCH = LAST_EPOCH - 1  # Java: isEpochExhausted; a producer gets a new id after it

EPOCH_BUMPS_SINCE = 2  # the transaction.version from which each end of a transaction raises the epoch (KIP-890)


class Identity(NamedTuple):
    """A producer's id and epoch."""

    producer_id: int
    epoch: int


@dataclasses.dataclass(frozen=True, slots=True)
class Transaction:
    """One transactional id: its producer, and its current or last transaction."""

    transactional_id: str
    producer_id: int
    epoch: int = NO_EPOCH
    # The epoch before the last raise, to recognize a retried request; not logged, as in Kafka.
    last_epoch: int = NO_EPOCH
    previous_producer_id: int = NO_ID  # before the epochs of that id were used up
    next_producer_id: int = NO_ID  # after the end of the current transaction
    timeout_ms: int = 0
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = -1  # wall clock
    updated_ms: int = -1  # wall clock
    client_version: int = 0  # the producer's transaction.version

    @property
    def at_rest(self) -> bool:
        return self.state in AT_REST

    @property
    def prepared(self) -> bool:
        return self.state in PREPARED

    @property
    def identity(self) -> Identity:
        return Identity(self.producer_id, self.epoch)

    @property
    def epochs_used_up(self) -> bool:
        return self.epoch >= EXHAUSTED_EPOCH

    def after(self, event: TransactionEvent, now_ms: int, **changes: Any) -> Transaction:
        """Return the next version, by the table.

        Raises: InvalidTransition: the table has no such row.
        """
        target = TRANSITIONS.get((self.state, event))
        if target is None:
            raise InvalidTransition(f"{self.transactional_id}: no transition from {self.state.name} by {event.name}")
        return dataclasses.replace(self, state=target, updated_ms=now_ms, **changes)
