"""A Fetch request for tools with their own offsets; the error of a partition without a leader."""

from __future__ import annotations

import pytest

from aiokwire.cluster import Cluster, new_fetch_request
from aiokwire.errors import StaleMetadataError
from aiokwire.net import ApiVersions
from aiokwire.net.handshake import Offered
from aiokwire.protocol import ZERO_UUID, ApiKey
from aiokwire.protocol.messages import fetch
from aiokwire.types import IsolationLevel, TopicPartition

TP = TopicPartition("t", 1)


def request_for(highest: int, topic_id: bytes) -> tuple[fetch.FetchRequest, int]:
    versions = ApiVersions({ApiKey.FETCH: Offered(0, highest)}, who="a broker")
    isolation = IsolationLevel.READ_COMMITTED
    return new_fetch_request(
        versions, {TP: 7}, {TP: 100}, {"t": topic_id}, max_wait=0.5, max_bytes=100, isolation=isolation
    )


def test_a_topic_without_an_id_is_requested_by_name_though_the_broker_knows_ids() -> None:
    assert request_for(17, ZERO_UUID)[1] == 12
    assert request_for(17, b"i" * 16)[1] >= 13


def test_isolation_is_left_out_where_the_broker_does_not_know_it() -> None:
    assert [request_for(highest, ZERO_UUID)[0].isolation_level for highest in (3, 4)] == [0, 1]
    request, _ = request_for(12, ZERO_UUID)
    assert (request.session_epoch, request.max_wait_ms, request.topics[0].partitions[0].fetch_offset) == (-1, 500, 7)


def test_the_error_for_an_unknown_leader_is_stale_metadata_and_names_the_cause() -> None:
    with pytest.raises(StaleMetadataError, match=r"t\[1\]: no leader known \(the metadata does not have the topic\)"):
        Cluster().require_leader(TP)
