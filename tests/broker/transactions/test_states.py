"""The table of a transaction's states, by itself."""

from __future__ import annotations

import pytest

from aiokwire.broker.transactions.states import AT_REST, PREPARED, TRANSITIONS, TransactionEvent, TransactionState
from aiokwire.broker.transactions.transaction import Transaction
from aiokwire.machine import InvalidTransition

# Kafka holds it in memory only, between a decision and its log entry: that takes no time here.
NEVER_ENTERED = {TransactionState.PREPARE_EPOCH_FENCE}


def test_states_have_the_numbers_and_names_of_kafka() -> None:
    assert [(state.value, state.title) for state in TransactionState] == [
        (0, "Empty"),
        (1, "Ongoing"),
        (2, "PrepareCommit"),
        (3, "PrepareAbort"),
        (4, "CompleteCommit"),
        (5, "CompleteAbort"),
        (6, "Dead"),
        (7, "PrepareEpochFence"),
    ]


def test_every_state_is_reached_from_empty() -> None:
    reached = {TransactionState.EMPTY}
    while more := {target for (source, _), target in TRANSITIONS.items() if source in reached} - reached:
        reached |= more
    assert reached == set(TransactionState) - NEVER_ENTERED


def test_every_event_moves_something() -> None:
    assert {event for _, event in TRANSITIONS} == set(TransactionEvent)


def test_a_prepared_transaction_can_only_be_completed_the_way_it_was_decided() -> None:
    for state in PREPARED:
        assert [event for source, event in TRANSITIONS if source is state] == [TransactionEvent.MARKED]
    assert TRANSITIONS[TransactionState.PREPARE_COMMIT, TransactionEvent.MARKED] is TransactionState.COMPLETE_COMMIT
    assert TRANSITIONS[TransactionState.PREPARE_ABORT, TransactionEvent.MARKED] is TransactionState.COMPLETE_ABORT


def test_only_an_ongoing_transaction_is_committed_or_fenced() -> None:
    for event in (TransactionEvent.COMMIT, TransactionEvent.FENCE):
        assert [source for source, one in TRANSITIONS if one is event] == [TransactionState.ONGOING]


def test_nothing_leads_out_of_dead() -> None:
    assert not [row for row in TRANSITIONS if row[0] is TransactionState.DEAD]
    assert {source for source, event in TRANSITIONS if event is TransactionEvent.EXPIRE} == set(AT_REST)


def test_a_transition_missing_from_the_table_raises() -> None:
    with pytest.raises(InvalidTransition, match="tx: no transition from EMPTY by COMMIT"):
        Transaction("tx", 1).after(TransactionEvent.COMMIT, 5)
