"""States, events and transitions of a transactional producer; `Transactions` fires the events."""

from __future__ import annotations

import enum


class TransactionState(enum.Enum):
    """The states of a transactional producer, with Kafka's names."""

    UNINITIALIZED = enum.auto()
    INITIALIZING = enum.auto()  # requesting producer id and epoch
    READY = enum.auto()
    IN_TRANSACTION = enum.auto()
    COMMITTING_TRANSACTION = enum.auto()  # delivering the accepted records, then EndTxn
    ABORTING_TRANSACTION = enum.auto()
    ABORTABLE_ERROR = enum.auto()  # the open transaction can only be aborted
    FATAL_ERROR = enum.auto()  # final


class TransactionEvent(enum.Enum):
    """The events of a transactional producer."""

    INITIALIZE = enum.auto()
    BEGIN = enum.auto()
    COMMIT = enum.auto()
    ABORT = enum.auto()
    DONE = enum.auto()  # the coordinator has responded
    ERROR = enum.auto()  # a part of the transaction is lost
    FAIL = enum.auto()  # fenced, not allowed, or the outcome is unknown


_S = TransactionState
_E = TransactionEvent

TRANSITIONS: dict[tuple[TransactionState, TransactionEvent], TransactionState] = {
    (_S.UNINITIALIZED, _E.INITIALIZE): _S.INITIALIZING,
    (_S.INITIALIZING, _E.DONE): _S.READY,
    (_S.READY, _E.BEGIN): _S.IN_TRANSACTION,
    (_S.IN_TRANSACTION, _E.COMMIT): _S.COMMITTING_TRANSACTION,
    (_S.IN_TRANSACTION, _E.ABORT): _S.ABORTING_TRANSACTION,
    (_S.IN_TRANSACTION, _E.ERROR): _S.ABORTABLE_ERROR,
    (_S.COMMITTING_TRANSACTION, _E.DONE): _S.READY,
    (_S.COMMITTING_TRANSACTION, _E.ERROR): _S.ABORTABLE_ERROR,
    (_S.ABORTABLE_ERROR, _E.ABORT): _S.ABORTING_TRANSACTION,
    (_S.ABORTING_TRANSACTION, _E.DONE): _S.READY,
    (_S.ABORTING_TRANSACTION, _E.INITIALIZE): _S.INITIALIZING,  # another epoch is needed first (KIP-360)
    **{(state, _E.FAIL): _S.FATAL_ERROR for state in _S if state is not _S.FATAL_ERROR},
}

# The states in which batches of the open transaction may be sent.
WRITING = frozenset({_S.IN_TRANSACTION, _S.COMMITTING_TRANSACTION})
