"""The committed offsets of a group, on the embedded broker, in every version and under faults."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aiokwire.broker import Broker
from aiokwire.cluster import Client, ClientConfig
from aiokwire.errors import AuthorizationError, BrokerError, InvalidRequestError, RetriableError
from aiokwire.group import GroupOffsets
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import api_versions, offset_commit, offset_fetch
from aiokwire.testing import ErrorCode
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition

ONE, TWO, OTHER = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
GROUP = GroupMetadata("g")


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"nodes": 3, "topics": {"t": 2, "u": 1}, "auto_create_topics": False}


@asynccontextmanager
async def offsets_of(broker: Broker, group: str = "g", *, topics: bool = True) -> AsyncIterator[GroupOffsets]:
    config = ClientConfig(
        bootstrap_servers=broker.bootstrap_servers,
        retry_backoff_ms=2,
        retry_backoff_max_ms=10,
        metadata_min_interval_ms=1,
        reconnect_backoff_ms=2,
    )
    async with Client(config) as client:
        if topics:
            await client.metadata.wait_for_topics(["t", "u"], 5)
        yield GroupOffsets(client, group)


def offer(broker: Broker, fetch: int, commit: int) -> None:
    """Limit the versions of the two APIs that the broker offers."""
    newest = {ApiKey.OFFSET_FETCH: fetch, ApiKey.OFFSET_COMMIT: commit, ApiKey.FIND_COORDINATOR: 2, ApiKey.METADATA: 13}
    answer = api_versions.ApiVersionsResponse(
        api_keys=[
            api_versions.ApiVersion(api_key=int(key), min_version=0, max_version=version)
            for key, version in newest.items()
        ]
    )
    broker.faults.on(ApiKey.API_VERSIONS, times=None).respond(answer)


@pytest.mark.parametrize("version", range(11))
async def test_every_version_returns_the_committed_offsets(kafka_broker: Broker, version: int) -> None:
    offer(kafka_broker, version, version)
    async with offsets_of(kafka_broker) as offsets:
        given = {ONE: OffsetAndMetadata(5, "note", 0), OTHER: OffsetAndMetadata(7)}
        await offsets.commit(given, GROUP, timeout=5)
        found = await offsets.fetch([ONE, TWO, OTHER], stable=True, timeout=5)
    asked = [(entry.api, entry.version) for entry in kafka_broker.journal if entry.api in (8, 9)]
    assert asked == [(8, version), (9, version)]
    epoch = 0 if version >= 6 else -1
    assert found == {ONE: OffsetAndMetadata(5, "note", epoch), TWO: None, OTHER: OffsetAndMetadata(7)}


async def test_a_topic_without_a_known_id_is_requested_by_name(kafka_broker: Broker) -> None:
    async with offsets_of(kafka_broker, topics=False) as offsets:
        await offsets.commit({ONE: OffsetAndMetadata(5)}, GROUP, timeout=5)
        assert await offsets.fetch([ONE], stable=True, timeout=5) == {ONE: OffsetAndMetadata(5)}
    assert {entry.version for entry in kafka_broker.journal if entry.api in (8, 9)} == {9}


async def test_a_coordinator_that_moves_is_followed(kafka_broker: Broker) -> None:
    async with offsets_of(kafka_broker) as offsets:
        for node in (2, 3, 1):
            kafka_broker.faults.move_coordinator("g", node)
            await offsets.commit({ONE: OffsetAndMetadata(node)}, GROUP, timeout=5)
            kafka_broker.faults.move_coordinator("g", 1 + node % 3)
            assert await offsets.fetch([ONE], stable=True, timeout=5) == {ONE: OffsetAndMetadata(node)}


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ],
)
async def test_retriable_errors_are_retried(kafka_broker: Broker, code: ErrorCode) -> None:
    for api in (ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH):
        kafka_broker.faults.on(api, times=2).error(code)
    async with offsets_of(kafka_broker) as offsets:
        await offsets.commit({ONE: OffsetAndMetadata(5)}, GROUP, timeout=5)
        assert await offsets.fetch([ONE], stable=True, timeout=5) == {ONE: OffsetAndMetadata(5)}
    assert len(kafka_broker.journal.requests(offset_commit.OffsetCommitRequest)) == 3
    assert len(kafka_broker.journal.requests(offset_fetch.OffsetFetchRequest)) == 3


async def test_a_lost_response_is_retried(kafka_broker: Broker) -> None:
    kafka_broker.faults.on(ApiKey.OFFSET_COMMIT).close_after()
    kafka_broker.faults.on(ApiKey.OFFSET_FETCH).close()
    async with offsets_of(kafka_broker) as offsets:
        await offsets.commit({ONE: OffsetAndMetadata(5)}, GROUP, timeout=5)
        assert await offsets.fetch([ONE], stable=True, timeout=5) == {ONE: OffsetAndMetadata(5)}


async def test_after_the_timeout_the_last_error_of_the_coordinator_is_raised(kafka_broker: Broker) -> None:
    kafka_broker.faults.on(ApiKey.OFFSET_FETCH, times=None).error(ErrorCode.UNSTABLE_OFFSET_COMMIT)
    async with offsets_of(kafka_broker) as offsets:
        with pytest.raises(RetriableError, match=r"reading the offsets of group 'g'.*UNSTABLE_OFFSET_COMMIT"):
            await offsets.fetch([ONE], stable=True, timeout=0.05)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, AuthorizationError),
        (ErrorCode.ILLEGAL_GENERATION, InvalidRequestError),
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, InvalidRequestError),
    ],
)
async def test_a_refusal_is_raised_at_once(kafka_broker: Broker, code: ErrorCode, kind: type[BrokerError]) -> None:
    kafka_broker.faults.on(ApiKey.OFFSET_COMMIT).error(code)
    async with offsets_of(kafka_broker) as offsets:
        with pytest.raises(kind, match=r"committing offsets of group 'g', t\[0\]") as refused:
            await offsets.commit({ONE: OffsetAndMetadata(5)}, GROUP, timeout=5)
        assert (refused.value.topic, refused.value.partition) == ("t", 0)


async def test_a_partition_missing_in_a_response_is_requested_again(kafka_broker: Broker) -> None:
    kafka_broker.faults.on(ApiKey.OFFSET_COMMIT).respond(offset_commit.OffsetCommitResponse())
    nothing = offset_fetch.OffsetFetchResponse(groups=[offset_fetch.OffsetFetchResponseGroup(group_id="g")])
    kafka_broker.faults.on(ApiKey.OFFSET_FETCH).respond(nothing)
    async with offsets_of(kafka_broker) as offsets:
        await offsets.commit({ONE: OffsetAndMetadata(5)}, GROUP, timeout=5)
        assert await offsets.fetch([ONE], stable=True, timeout=5) == {ONE: OffsetAndMetadata(5)}


async def test_only_the_remaining_partitions_are_retried(kafka_broker: Broker) -> None:
    async with offsets_of(kafka_broker) as offsets:
        unknown = TopicPartition("t", 7)
        with pytest.raises(BrokerError, match=r"t\[7\]"):
            await offsets.commit({ONE: OffsetAndMetadata(5), unknown: OffsetAndMetadata(6)}, GROUP, timeout=1)
        requests = kafka_broker.journal.requests(offset_commit.OffsetCommitRequest)
        assert [len(request.topics[0].partitions) for request in requests[:2]] == [2, 1]
        assert await offsets.fetch([ONE], stable=True, timeout=5) == {ONE: OffsetAndMetadata(5)}
