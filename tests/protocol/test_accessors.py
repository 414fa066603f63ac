"""The accessors of the generated messages agree with their fields, for every API and version."""

from __future__ import annotations

import random
from typing import Any

import pytest

from aiokwire.protocol import Request, Response
from aiokwire.protocol.messages import (
    add_partitions_to_txn,
    consumer_group_heartbeat,
    describe_groups,
    fetch,
    heartbeat,
    init_producer_id,
    leave_group,
    metadata,
    offset_commit,
    offset_fetch,
    produce,
)

from .samples import all_types, sample, versions_of

REQUESTS = [kind for kind in all_types() if issubclass(kind, Request)]
RESPONSES = [kind for kind in all_types() if issubclass(kind, Response)]


def found_codes(response: Response) -> list[int]:
    """Return the error codes of a response and of its lists, found by field name."""
    codes: list[int] = []
    names: tuple[str, ...] = response.__slots__
    for name in names:
        value: Any = getattr(response, name)
        if name == "error_code":
            codes.append(value)
        elif isinstance(value, list):
            codes += [entry.error_code for entry in value if hasattr(entry, "error_code")]
    return codes


@pytest.mark.parametrize("kind", RESPONSES, ids=lambda kind: kind.__name__)
def test_a_response_yields_every_error_code_of_itself_and_its_lists(kind: type[Response]) -> None:
    rng = random.Random(kind.__name__)
    for version in versions_of(kind):
        response = sample(kind, rng, kind.VERSIONS, version)
        assert isinstance(response, Response)
        assert sorted(response.error_codes()) == sorted(found_codes(response))


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
def test_the_broker_may_wait_as_long_as_the_longest_wait_of_a_request(kind: type[Request[Any]]) -> None:
    request = kind()
    names = [name for name in ("max_wait_ms", "timeout_ms", "rebalance_timeout_ms") if hasattr(request, name)]
    for number, name in enumerate(names):
        setattr(request, name, 1000 + number)
    assert request.broker_wait_ms() == (999 + len(names) if names else 0)
    for name in names:
        setattr(request, name, -1)
    assert request.broker_wait_ms() == 0


@pytest.mark.parametrize(
    ("request_", "key"),
    [
        (heartbeat.HeartbeatRequest(group_id="g"), "g"),
        (consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(group_id="g"), "g"),
        (offset_fetch.OffsetFetchRequest(group_id="g"), "g"),
        (offset_fetch.OffsetFetchRequest(groups=[offset_fetch.OffsetFetchRequestGroup(group_id="g")]), "g"),
        (init_producer_id.InitProducerIdRequest(transactional_id="t"), "t"),
        (init_producer_id.InitProducerIdRequest(transactional_id=None), ""),
        (add_partitions_to_txn.AddPartitionsToTxnRequest(v3_and_below_transactional_id="t"), "t"),
        (
            add_partitions_to_txn.AddPartitionsToTxnRequest(
                transactions=[add_partitions_to_txn.AddPartitionsToTxnTransaction(transactional_id="t")]
            ),
            "t",
        ),
        (produce.ProduceRequest(transactional_id="t"), ""),
        (describe_groups.DescribeGroupsRequest(groups=["g"]), ""),
        (metadata.MetadataRequest(), ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Request) else str(value),
)
def test_a_request_names_the_group_or_transaction_whose_coordinator_it_is_for(request_: Request[Any], key: str) -> None:
    assert request_.coordinator_key() == key


def test_the_first_version_with_a_field_is_known_for_fields_that_came_later() -> None:
    assert produce.ProduceRequest.FIRST_VERSION_WITH["topic_id"] == 13
    assert fetch.FetchRequest.FIRST_VERSION_WITH["topic_id"] == 13
    assert fetch.FetchRequest.FIRST_VERSION_WITH["session_id"] == 7
    assert offset_commit.OffsetCommitRequest.FIRST_VERSION_WITH["topic_id"] == 10
    assert offset_commit.OffsetCommitRequest.FIRST_VERSION_WITH["group_instance_id"] == 7
    later = offset_fetch.OffsetFetchRequest.FIRST_VERSION_WITH
    assert (later["require_stable"], later["groups"], later["topic_id"]) == (7, 8, 10)
    assert leave_group.LeaveGroupRequest.FIRST_VERSION_WITH["members"] == 3
    assert leave_group.LeaveGroupRequest.FIRST_VERSION_WITH["reason"] == 5
    assert "group_id" not in offset_fetch.OffsetFetchRequest.FIRST_VERSION_WITH, "its first version has it"
