"""Transactions of the embedded broker (KIP-98), both versions of the protocol (KIP-890).

    coordinator.run(id, action, refused)   around a request's action, for the handlers
    init_producer, add_partitions, admit, prepare_end, finish     what requests do
    abort_timed_out, finish_prepared, expire                       chores

`states` has the table, `transaction` the data, `decisions` what is decided, as plain functions;
`records` is the format in `__transaction_state`, `markers` what is written into the partitions.
"""

from aiokwire.broker.transactions.coordinator import STATE_TOPIC, Answered, TransactionCoordinator
from aiokwire.broker.transactions.markers import Markers
from aiokwire.broker.transactions.states import TransactionEvent, TransactionState
from aiokwire.broker.transactions.transaction import Identity, Transaction

__all__ = [
    "STATE_TOPIC",
    "Answered",
    "Identity",
    "Markers",
    "Transaction",
    "TransactionCoordinator",
    "TransactionEvent",
    "TransactionState",
]
