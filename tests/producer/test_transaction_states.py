"""The transitions of a transaction: every state is reachable, and a failure ends every state."""

from __future__ import annotations

import pytest

from aiokwire.machine import InvalidTransition, Machine
from aiokwire.producer.transactions.states import TRANSITIONS, TransactionEvent, TransactionState

FINAL = TransactionState.FATAL_ERROR


def test_every_state_can_be_reached() -> None:
    reached = {TransactionState.UNINITIALIZED}
    while True:
        following = {target for (source, _), target in TRANSITIONS.items() if source in reached}
        if following <= reached:
            break
        reached |= following
    assert reached == set(TransactionState)


@pytest.mark.parametrize("state", [state for state in TransactionState if state is not FINAL])
def test_a_failure_ends_every_state(state: TransactionState) -> None:
    assert TRANSITIONS[state, TransactionEvent.FAIL] is FINAL


def test_nothing_leaves_the_last_state() -> None:
    assert not [source for source, _ in TRANSITIONS if source is FINAL]


def test_a_transaction_with_a_loss_can_only_be_aborted() -> None:
    machine = Machine("t", TRANSITIONS, TransactionState.ABORTABLE_ERROR)
    assert not machine.can(TransactionEvent.COMMIT)
    assert not machine.can(TransactionEvent.BEGIN)
    with pytest.raises(InvalidTransition):
        machine.fire(TransactionEvent.DONE)
    assert machine.fire(TransactionEvent.ABORT) is TransactionState.ABORTING_TRANSACTION
