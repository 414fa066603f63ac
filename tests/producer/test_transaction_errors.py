"""The meaning of each error code for a transaction, by API."""

from __future__ import annotations

import pytest

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import DeliveryFailed, KafkaError, RequestTimedOut, error_for
from aiokwire.producer.transactions.errors import BY_API, ErrorAction, action_for, action_for_error, most_severe
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
    ("code", "action"),
    [
        (ErrorCode.NONE, ErrorAction.DONE),
        (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorAction.RETRY),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorAction.RETRY),
        (ErrorCode.NOT_COORDINATOR, ErrorAction.COORDINATOR),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorAction.COORDINATOR),
        (ErrorCode.PRODUCER_FENCED, ErrorAction.FENCED),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorAction.FENCED),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorAction.FATAL),
    ],
)
def test_some_codes_mean_the_same_from_every_coordinator(api: ApiKey, code: ErrorCode, action: ErrorAction) -> None:
    assert action_for(api, code) is action


@pytest.mark.parametrize(
    ("api", "code", "action"),
    [
        (ApiKey.END_TXN, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorAction.FATAL),
        (ApiKey.END_TXN, ErrorCode.INVALID_TXN_STATE, ErrorAction.ABORTABLE),
        (ApiKey.END_TXN, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorAction.NEW_EPOCH),
        (ApiKey.END_TXN, ErrorCode.TRANSACTION_ABORTABLE, ErrorAction.ABORTABLE),
        (ApiKey.INIT_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorAction.FATAL),
        (ApiKey.INIT_PRODUCER_ID, ErrorCode.INVALID_TRANSACTION_TIMEOUT, ErrorAction.FATAL),
        (ApiKey.ADD_PARTITIONS_TO_TXN, ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorAction.ABORTABLE),
        (ApiKey.ADD_PARTITIONS_TO_TXN, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorAction.RETRY),
        (ApiKey.ADD_PARTITIONS_TO_TXN, ErrorCode.INVALID_TXN_STATE, ErrorAction.FATAL),
        (ApiKey.TXN_OFFSET_COMMIT, ErrorCode.ILLEGAL_GENERATION, ErrorAction.ABORTABLE),
        (ApiKey.TXN_OFFSET_COMMIT, ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorAction.ABORTABLE),
        (ApiKey.PRODUCE, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorAction.ABORTABLE),
        (ApiKey.PRODUCE, ErrorCode.PRODUCER_FENCED, ErrorAction.FENCED),
        (ApiKey.PRODUCE, ErrorCode.MESSAGE_TOO_LARGE, ErrorAction.ABORTABLE),
        (
            ApiKey.PRODUCE,
            ErrorCode.NOT_ENOUGH_REPLICAS,
            ErrorAction.ABORTABLE,
        ),  # a batch that failed is not retried
        (ApiKey.PRODUCE, 9999, ErrorAction.ABORTABLE),
        (ApiKey.END_TXN, 9999, ErrorAction.FATAL),
    ],
)
def test_other_codes_depend_on_the_api(api: ApiKey, code: int, action: ErrorAction) -> None:
    assert action_for(api, code) is action


def test_every_api_and_code_has_an_action_and_only_none_is_done() -> None:
    for api in BY_API:
        for code in ErrorCode:
            assert (action_for(api, code) is ErrorAction.DONE) == (code is ErrorCode.NONE)


def test_the_most_severe_code_of_a_response_counts_and_is_named() -> None:
    codes = [
        (ErrorCode.OPERATION_NOT_ATTEMPTED, "t[0]"),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "u[1]"),
        (ErrorCode.NONE, "t[1]"),
    ]
    assert most_severe(ApiKey.ADD_PARTITIONS_TO_TXN, codes) == (
        ErrorAction.ABORTABLE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "u[1]",
    )
    assert most_severe(ApiKey.ADD_PARTITIONS_TO_TXN, [])[0] is ErrorAction.DONE


@pytest.mark.parametrize(
    ("api", "error", "action"),
    [
        (ApiKey.END_TXN, RequestTimedOut("late"), ErrorAction.FATAL),
        (ApiKey.ADD_PARTITIONS_TO_TXN, RequestTimedOut("late"), ErrorAction.ABORTABLE),
        (ApiKey.TXN_OFFSET_COMMIT, error_for(ErrorCode.NOT_COORDINATOR, "late"), ErrorAction.ABORTABLE),
        (ApiKey.TXN_OFFSET_COMMIT, error_for(ErrorCode.GROUP_AUTHORIZATION_FAILED, "found"), ErrorAction.ABORTABLE),
        (ApiKey.END_TXN, error_for(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "found"), ErrorAction.FATAL),
        (ApiKey.PRODUCE, DeliveryFailed("late"), ErrorAction.ABORTABLE),
        (ApiKey.PRODUCE, error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "p"), ErrorAction.ABORTABLE),
        (ApiKey.PRODUCE, error_for(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "p"), ErrorAction.FATAL),
        (ApiKey.PRODUCE, error_for(ErrorCode.PRODUCER_FENCED, "p"), ErrorAction.FENCED),
    ],
)
def test_without_a_response_an_open_transaction_can_be_aborted_but_the_result_of_its_end_is_unknown(
    api: ApiKey, error: KafkaError, action: ErrorAction
) -> None:
    assert action_for_error(api, error) is action
