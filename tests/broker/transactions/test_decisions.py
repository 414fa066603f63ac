"""The coordinator's decisions, without a log or a loop."""

from __future__ import annotations

import pytest

from aiokwire.broker.transactions import Identity, Transaction, TransactionState
from aiokwire.broker.transactions.decisions import (
    identity_after,
    plan_add,
    plan_complete,
    plan_end,
    plan_fence,
    plan_init,
    verify,
)
from aiokwire.broker.transactions.transaction import EXHAUSTED_EPOCH, LAST_EPOCH
from aiokwire.error_codes import ErrorCode
from aiokwire.types import TopicPartition

S = TransactionState
ID, EPOCH, FRESH = 7, 3, 99
ME = Identity(ID, EPOCH)
A, B = TopicPartition("a", 0), TopicPartition("b", 1)
ONLY_A, AB = frozenset({A}), frozenset({A, B})
FENCED, MAPPING = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING
BUSY, WRONG = ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE


def transaction(state: TransactionState = S.EMPTY, **changes: object) -> Transaction:
    partitions = frozenset({A}) if state in {S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT} else frozenset()
    values: dict[str, object] = {"producer_id": ID, "epoch": EPOCH, "state": state, "partitions": partitions}
    return Transaction("tx", **{**values, **changes})  # type: ignore[arg-type]  # checked by what the tests expect


def init(current: Transaction, expected: Identity | None = None) -> tuple[ErrorCode, Transaction | None]:
    return plan_init(current, timeout_ms=1000, expected=expected, fresh_id=lambda: FRESH, now_ms=50)


def end(
    current: Transaction | None, who: Identity = ME, *, commit: bool = True, version: int = 0
) -> tuple[ErrorCode, Transaction | None]:
    return plan_end(current, who, commit=commit, client_version=version, fresh_id=lambda: FRESH, now_ms=50)


# --- InitProducerId ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_init_raises_the_epoch_and_empties_the_transaction(state: TransactionState) -> None:
    code, after = init(transaction(state, started_ms=5))
    assert code is ErrorCode.NONE
    assert after is not None
    assert (after.state, after.identity, after.timeout_ms) == (S.EMPTY, Identity(ID, EPOCH + 1), 1000)
    assert (after.started_ms, after.updated_ms) == (-1, 50)


def test_the_first_epoch_of_a_new_transactional_id_is_0() -> None:
    code, after = init(Transaction("tx", ID))
    assert code is ErrorCode.NONE
    assert after is not None
    assert after.identity == Identity(ID, 0)


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_init_waits_for_a_transaction_that_is_being_ended(state: TransactionState) -> None:
    assert init(transaction(state)) == (BUSY, None)


def test_init_aborts_an_ongoing_transaction_and_lets_the_producer_ask_again() -> None:
    code, after = init(transaction(S.ONGOING))
    assert code is BUSY
    assert after is not None
    assert (after.state, after.epoch, after.partitions) == (S.PREPARE_ABORT, EPOCH + 1, ONLY_A)


def test_a_producer_that_names_its_id_gets_the_next_epoch_and_the_same_one_at_a_retry() -> None:
    _, after = init(transaction(), ME)
    assert after is not None
    assert after.epoch == EPOCH + 1
    code, again = init(after, ME)
    assert code is ErrorCode.NONE
    assert again is not None
    assert again.identity == after.identity


def test_an_init_without_an_id_in_between_fences_the_repeated_one() -> None:
    _, after = init(transaction())
    assert after is not None
    assert init(after, ME) == (FENCED, None)


@pytest.mark.parametrize("who", [Identity(ID, EPOCH - 1), Identity(ID, EPOCH + 1), Identity(ID + 1, EPOCH)])
@pytest.mark.parametrize("state", [S.EMPTY, S.ONGOING, S.COMPLETE_ABORT])
def test_a_replaced_producer_is_fenced_and_changes_nothing(state: TransactionState, who: Identity) -> None:
    assert init(transaction(state), who) == (FENCED, None)


def test_a_producer_that_inits_in_its_own_transaction_gets_the_next_epoch() -> None:
    for version in (0, 2):
        code, fenced = init(transaction(S.ONGOING, client_version=version), ME)
        assert code is BUSY
        assert fenced is not None
        code, after = init(plan_complete(fenced, 51), ME)
        assert code is ErrorCode.NONE
        assert after is not None
        assert after.identity == Identity(ID, EPOCH + 1)


def test_a_producer_id_whose_epochs_are_used_up_is_replaced() -> None:
    code, after = init(transaction(epoch=EXHAUSTED_EPOCH), Identity(ID, EXHAUSTED_EPOCH))
    assert code is ErrorCode.NONE
    assert after is not None
    assert (after.identity, after.previous_producer_id) == (Identity(FRESH, 0), ID)
    code, again = init(after, Identity(ID, EXHAUSTED_EPOCH))
    assert code is ErrorCode.NONE
    assert again is not None
    assert again.identity == after.identity


def test_a_fence_at_the_last_epoch_does_not_run_over() -> None:
    fenced = plan_fence(transaction(S.ONGOING, epoch=EXHAUSTED_EPOCH, client_version=2), 50)
    assert fenced.epoch == LAST_EPOCH
    _, after = init(plan_complete(fenced, 51))
    assert after is not None
    assert after.identity == Identity(FRESH, 0)


# --- adding and verifying ---------------------------------------------------------------------------------------------


def add(current: Transaction | None, who: Identity = ME) -> tuple[ErrorCode, Transaction | None]:
    return plan_add(current, who, {A, B}, client_version=2, now_ms=50)


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_the_first_partitions_begin_a_transaction(state: TransactionState) -> None:
    code, after = add(transaction(state, started_ms=9))
    assert code is ErrorCode.NONE
    assert after is not None
    assert (after.state, after.partitions, after.started_ms) == (S.ONGOING, AB, 50)


def test_more_partitions_join_and_known_ones_change_nothing() -> None:
    _, after = add(transaction(S.ONGOING, started_ms=9))
    assert after is not None
    assert (after.partitions, after.started_ms) == (AB, 9)
    assert add(after) == (ErrorCode.NONE, None)


FAULTS = [
    (None, ME, MAPPING),
    (transaction(S.ONGOING), Identity(ID + 1, EPOCH), MAPPING),
    (transaction(S.ONGOING), Identity(ID, EPOCH - 1), FENCED),
    (transaction(S.ONGOING), Identity(ID, EPOCH + 1), FENCED),
    (transaction(S.PREPARE_COMMIT), ME, BUSY),
    (transaction(S.PREPARE_ABORT), ME, BUSY),
]


@pytest.mark.parametrize(("current", "who", "code"), FAULTS)
def test_the_error_code_names_why_a_producer_may_not_write(
    current: Transaction | None, who: Identity, code: ErrorCode
) -> None:
    assert add(current, who) == (code, None)
    assert verify(current, who, A) is code


def test_a_partition_is_verified_only_in_an_ongoing_transaction_that_it_joined() -> None:
    assert verify(transaction(S.ONGOING), ME, A) is ErrorCode.NONE
    assert verify(transaction(S.ONGOING), ME, B) is ErrorCode.TRANSACTION_ABORTABLE
    assert verify(transaction(S.COMPLETE_COMMIT), ME, A) is ErrorCode.TRANSACTION_ABORTABLE
    assert verify(transaction(S.EMPTY), ME, A) is ErrorCode.TRANSACTION_ABORTABLE


# --- EndTxn -----------------------------------------------------------------------------------------------------------

COMMITTED, ABORTED = S.COMPLETE_COMMIT, S.COMPLETE_ABORT


@pytest.mark.parametrize(
    ("state", "commit", "code"),
    [
        (S.EMPTY, True, WRONG),
        (S.EMPTY, False, WRONG),
        (COMMITTED, True, ErrorCode.NONE),
        (COMMITTED, False, WRONG),
        (ABORTED, False, ErrorCode.NONE),
        (ABORTED, True, WRONG),
        (S.PREPARE_COMMIT, True, BUSY),
        (S.PREPARE_COMMIT, False, WRONG),
        (S.PREPARE_ABORT, False, BUSY),
        (S.PREPARE_ABORT, True, WRONG),
    ],
)
def test_an_older_clients_end_outside_of_a_transaction(state: TransactionState, commit: bool, code: ErrorCode) -> None:
    assert end(transaction(state), commit=commit) == (code, None)


@pytest.mark.parametrize(("current", "who", "code"), FAULTS[:4])
@pytest.mark.parametrize("version", [0, 2])
def test_the_error_code_names_why_a_producer_may_not_end(
    current: Transaction | None, who: Identity, code: ErrorCode, version: int
) -> None:
    assert end(current, who, version=version) == (code, None)


@pytest.mark.parametrize(("commit", "state"), [(True, S.PREPARE_COMMIT), (False, S.PREPARE_ABORT)])
def test_an_older_clients_end_keeps_the_epoch_and_a_newer_ones_raises_it(commit: bool, state: TransactionState) -> None:
    for version, epoch in ((0, EPOCH), (2, EPOCH + 1)):
        code, after = end(transaction(S.ONGOING), commit=commit, version=version)
        assert code is ErrorCode.NONE
        assert after is not None
        assert (after.state, after.epoch, after.partitions) == (state, epoch, ONLY_A)
        assert identity_after(after) == Identity(ID, epoch)


@pytest.mark.parametrize(
    ("state", "commit", "code"),
    [
        (COMMITTED, True, ErrorCode.NONE),
        (COMMITTED, False, WRONG),
        (ABORTED, False, ErrorCode.NONE),
        (ABORTED, True, WRONG),
        (S.PREPARE_COMMIT, True, BUSY),
        (S.PREPARE_ABORT, True, WRONG),
        (S.EMPTY, True, FENCED),
        (S.ONGOING, True, FENCED),
    ],
)
def test_a_newer_client_that_missed_the_response_uses_the_previous_epoch(
    state: TransactionState, commit: bool, code: ErrorCode
) -> None:
    assert end(transaction(state), Identity(ID, EPOCH - 1), commit=commit, version=2) == (code, None)


@pytest.mark.parametrize("state", [S.EMPTY, COMMITTED, ABORTED])
def test_a_newer_client_may_abort_what_it_did_not_begin_but_not_commit_it(state: TransactionState) -> None:
    code, after = end(transaction(state), commit=False, version=2)
    assert code is ErrorCode.NONE
    assert after is not None
    assert (after.state, after.epoch, after.partitions, after.started_ms) == (
        S.PREPARE_ABORT,
        EPOCH + 1,
        frozenset[TopicPartition](),
        50,
    )
    assert end(transaction(state), commit=True, version=2) == (WRONG, None)


def test_the_end_at_the_last_epoch_gives_a_new_id_and_may_be_repeated() -> None:
    last = Identity(ID, EXHAUSTED_EPOCH)
    code, prepared = end(transaction(S.ONGOING, epoch=EXHAUSTED_EPOCH), last, version=2)
    assert code is ErrorCode.NONE
    assert prepared is not None
    assert (prepared.identity, identity_after(prepared)) == (Identity(ID, LAST_EPOCH), Identity(FRESH, 0))
    complete = plan_complete(prepared, 51)
    assert (complete.identity, complete.previous_producer_id) == (Identity(FRESH, 0), ID)
    assert end(complete, last, version=2) == (ErrorCode.NONE, None)
    assert end(complete, last, commit=False, version=2) == (WRONG, None)


# As Kafka 4.3.1 responds to the producer whose transaction the coordinator aborted: the epoch is raised by one.


@pytest.mark.parametrize("version", [0, 2])
def test_a_transaction_that_timed_out_raises_the_epoch_by_one_for_both_versions(version: int) -> None:
    timed_out = plan_complete(plan_fence(transaction(S.ONGOING, client_version=version), 50), 51)
    assert (timed_out.state, timed_out.identity) == (ABORTED, Identity(ID, EPOCH + 1))


def test_an_older_client_whose_transaction_timed_out_is_fenced_when_it_ends_it() -> None:
    timed_out = plan_complete(plan_fence(transaction(S.ONGOING), 50), 51)
    for commit in (True, False):
        assert end(timed_out, commit=commit, version=0) == (FENCED, None)


def test_a_newer_client_may_abort_a_transaction_that_timed_out_but_not_commit_it() -> None:
    timed_out = plan_complete(plan_fence(transaction(S.ONGOING, client_version=2), 50), 51)
    assert end(timed_out, commit=False, version=2) == (ErrorCode.NONE, None)
    assert end(timed_out, commit=True, version=2) == (WRONG, None)


@pytest.mark.parametrize("version", [0, 2])
def test_a_client_that_names_itself_after_a_timeout_receives_the_raised_epoch(version: int) -> None:
    timed_out = plan_complete(plan_fence(transaction(S.ONGOING, client_version=version), 50), 51)
    code, after = init(timed_out, ME)
    assert code is ErrorCode.NONE
    assert after is not None
    assert (after.state, after.identity) == (S.EMPTY, Identity(ID, EPOCH + 1))
