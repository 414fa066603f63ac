"""What each code means for a transaction, by the API that said it."""

from __future__ import annotations

import pytest

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import DeliveryFailed, KafkaError, RequestTimedOut, error_for
from aiokwire.producer.outcomes import BY_API, Outcome, gravest, outcome_of, outcome_of_error
from aiokwire.protocol import ApiKey

COORDINATORS = [
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.END_TXN,
]


@pytest.mark.parametrize("api", COORDINATORS)
@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (ErrorCode.NONE, Outcome.DONE),
        (ErrorCode.CONCURRENT_TRANSACTIONS, Outcome.RETRY),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, Outcome.RETRY),
        (ErrorCode.NOT_COORDINATOR, Outcome.COORDINATOR),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, Outcome.COORDINATOR),
        (ErrorCode.PRODUCER_FENCED, Outcome.FENCED),
        (ErrorCode.INVALID_PRODUCER_EPOCH, Outcome.FENCED),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, Outcome.FATAL),
    ],
)
def test_some_codes_mean_the_same_from_every_coordinator(api: ApiKey, code: ErrorCode, outcome: Outcome) -> None:
    assert outcome_of(api, code) is outcome


@pytest.mark.parametrize(
    ("api", "code", "outcome"),
    [
        (ApiKey.END_TXN, ErrorCode.UNKNOWN_SERVER_ERROR, Outcome.FATAL),
        (ApiKey.END_TXN, ErrorCode.INVALID_TXN_STATE, Outcome.ABORTABLE),
        (ApiKey.END_TXN, ErrorCode.INVALID_PRODUCER_ID_MAPPING, Outcome.NEW_EPOCH),
        (ApiKey.END_TXN, ErrorCode.TRANSACTION_ABORTABLE, Outcome.ABORTABLE),
        (ApiKey.INIT_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING, Outcome.FATAL),
        (ApiKey.INIT_PRODUCER_ID, ErrorCode.INVALID_TRANSACTION_TIMEOUT, Outcome.FATAL),
        (ApiKey.ADD_PARTITIONS_TO_TXN, ErrorCode.TOPIC_AUTHORIZATION_FAILED, Outcome.ABORTABLE),
        (ApiKey.ADD_PARTITIONS_TO_TXN, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, Outcome.RETRY),
        (ApiKey.ADD_PARTITIONS_TO_TXN, ErrorCode.INVALID_TXN_STATE, Outcome.FATAL),
        (ApiKey.TXN_OFFSET_COMMIT, ErrorCode.ILLEGAL_GENERATION, Outcome.ABORTABLE),
        (ApiKey.TXN_OFFSET_COMMIT, ErrorCode.GROUP_AUTHORIZATION_FAILED, Outcome.ABORTABLE),
        (ApiKey.PRODUCE, ErrorCode.INVALID_PRODUCER_EPOCH, Outcome.ABORTABLE),
        (ApiKey.PRODUCE, ErrorCode.PRODUCER_FENCED, Outcome.FENCED),
        (ApiKey.PRODUCE, ErrorCode.MESSAGE_TOO_LARGE, Outcome.ABORTABLE),
        (ApiKey.PRODUCE, ErrorCode.NOT_ENOUGH_REPLICAS, Outcome.ABORTABLE),  # a batch that failed is not tried again
        (ApiKey.PRODUCE, 9999, Outcome.ABORTABLE),
        (ApiKey.END_TXN, 9999, Outcome.FATAL),
    ],
)
def test_others_by_who_said_it(api: ApiKey, code: int, outcome: Outcome) -> None:
    assert outcome_of(api, code) is outcome


def test_every_api_and_code_has_an_outcome_and_only_none_is_done() -> None:
    for api in BY_API:
        for code in ErrorCode:
            assert (outcome_of(api, code) is Outcome.DONE) == (code is ErrorCode.NONE)


def test_the_gravest_code_of_an_answer_counts_and_is_named() -> None:
    codes = [
        (ErrorCode.OPERATION_NOT_ATTEMPTED, "t[0]"),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "u[1]"),
        (ErrorCode.NONE, "t[1]"),
    ]
    assert gravest(ApiKey.ADD_PARTITIONS_TO_TXN, codes) == (
        Outcome.ABORTABLE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "u[1]",
    )
    assert gravest(ApiKey.ADD_PARTITIONS_TO_TXN, [])[0] is Outcome.DONE


@pytest.mark.parametrize(
    ("api", "error", "outcome"),
    [
        (ApiKey.END_TXN, RequestTimedOut("late"), Outcome.FATAL),
        (ApiKey.ADD_PARTITIONS_TO_TXN, RequestTimedOut("late"), Outcome.ABORTABLE),
        (ApiKey.TXN_OFFSET_COMMIT, error_for(ErrorCode.NOT_COORDINATOR, "late"), Outcome.ABORTABLE),
        (ApiKey.TXN_OFFSET_COMMIT, error_for(ErrorCode.GROUP_AUTHORIZATION_FAILED, "found"), Outcome.ABORTABLE),
        (ApiKey.END_TXN, error_for(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "found"), Outcome.FATAL),
        (ApiKey.PRODUCE, DeliveryFailed("late"), Outcome.ABORTABLE),
        (ApiKey.PRODUCE, error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "p"), Outcome.ABORTABLE),
        (ApiKey.PRODUCE, error_for(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "p"), Outcome.FATAL),
        (ApiKey.PRODUCE, error_for(ErrorCode.PRODUCER_FENCED, "p"), Outcome.FENCED),
    ],
)
def test_without_an_answer_an_open_transaction_can_be_aborted_but_the_end_of_one_is_not_known(
    api: ApiKey, error: KafkaError, outcome: Outcome
) -> None:
    assert outcome_of_error(api, error) is outcome
