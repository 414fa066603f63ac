"""Quotas at a broker: the requests that alter them, throttle times, muted connections."""

from __future__ import annotations

from typing import Any

import pytest

from aiokwire.broker import Broker
from aiokwire.broker.dispatch import Call
from aiokwire.broker.security import Usage, entity_of
from aiokwire.broker.throttling import count_request
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import ApiKey, encode_request
from aiokwire.protocol.messages import (
    alter_client_quotas,
    api_versions,
    create_partitions,
    create_topics,
    delete_topics,
    describe_client_quotas,
)
from aiokwire.protocol.messages.fetch import FetchResponse
from aiokwire.protocol.messages.produce import ProduceResponse
from tests.broker.raw import RawClient, batch, fetch_request, produce_request

ANYONE: dict[str, str | None] = {"client-id": None}
SIZE_OF_BATCH = 1000


async def alter(
    client: RawClient, entity: dict[str, str | None], *, version: int = 1, validate_only: bool = False, **quotas: Any
) -> alter_client_quotas.AlterClientQuotasResponseEntryData:
    """Set quotas of one entity; None removes one."""
    entry = alter_client_quotas.AlterClientQuotasRequestEntryData(
        entity=[alter_client_quotas.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[
            alter_client_quotas.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in quotas.items()
        ],
    )
    request = alter_client_quotas.AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
    return (await client.ask(request, version)).entries[0]


async def described(client: RawClient, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
    request = describe_client_quotas.DescribeClientQuotasRequest(
        components=[
            describe_client_quotas.ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in components
        ],
        strict=strict,
    )
    return await client.ask(request, 1)


def produced(partition: int = 0, size: int = SIZE_OF_BATCH) -> Any:
    return produce_request("t", batch([b"x" * size]), partition=partition)


def limit_for(request: Any, version: int, throttle: float) -> int:
    """The bytes per second by which one such request is throttled for about `throttle` seconds."""
    frame = sum(map(len, encode_request(request, version, 1, "raw"))) - 4
    return int(frame / (10 + throttle))


@pytest.mark.parametrize("version", range(2))
async def test_quotas_are_set_described_and_removed(client: RawClient, version: int) -> None:
    entity: dict[str, str | None] = {"user": "alice", "client-id": None}
    done = await alter(client, entity, version=version, producer_byte_rate=1024.0, request_percentage=12.5)
    assert (done.error_code, done.error_message) == (0, None)
    (entry,) = (await described(client, ("user", 0, "alice"))).entries
    assert {part.entity_type: part.entity_name for part in entry.entity} == entity
    assert {one.key: one.value for one in entry.values} == {"producer_byte_rate": 1024.0, "request_percentage": 12.5}
    await alter(client, entity, version=version, producer_byte_rate=None, request_percentage=None)
    assert (await described(client)).entries == []


async def test_each_entity_fails_alone(client: RawClient) -> None:
    refused = await alter(client, {"user": "alice"}, producer_byte_rate=-1.0)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert "greater than 0" in (refused.error_message or "")
    assert (await alter(client, {"planet": "mars"}, producer_byte_rate=1.0)).error_code == ErrorCode.INVALID_REQUEST
    assert (await described(client)).entries == []


async def test_validation_alone_changes_nothing(client: RawClient) -> None:
    assert (await alter(client, {"user": "a"}, validate_only=True, producer_byte_rate=5.0)).error_code == 0
    assert (await described(client)).entries == []


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("planet", 0, "mars")], ErrorCode.UNSUPPORTED_VERSION),
        ([("", 0, "mars")], ErrorCode.INVALID_REQUEST),
        ([("user", 0, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 1, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 2, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 7, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 2, None), ("user", 1, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 2, None), ("ip", 2, None)], ErrorCode.INVALID_REQUEST),
    ],
)
async def test_a_nonsensical_filter_is_refused(
    client: RawClient, components: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    answer = await described(client, *components)
    assert (answer.error_code, answer.entries) == (code, None)


async def test_a_producer_above_its_quota_is_throttled_and_muted(broker: Broker, client: RawClient) -> None:
    await alter(client, ANYONE, producer_byte_rate=float(limit_for(produced(), 9, 60.0)))
    throttled = await client.ask(produced(), 9)
    assert 55_000 < throttled.throttle_time_ms < 70_000
    assert throttled.responses[0].partition_responses[0].error_code == 0
    client.send(api_versions.ApiVersionsRequest(), 0)
    other = await RawClient.connect(broker)
    for _ in range(5):  # other connections are served in the meantime
        assert (await other.ask(api_versions.ApiVersionsRequest(), 0)).error_code == 0
    assert not client.reader._buffer  # type: ignore[attr-defined]
    await other.close()


async def test_a_muted_connection_continues_after_its_throttle(client: RawClient) -> None:
    await alter(client, ANYONE, producer_byte_rate=float(limit_for(produced(), 9, 0.02)))
    client.send(produced(), 9)
    client.send(api_versions.ApiVersionsRequest(), 0)
    throttled = await client.receive(ProduceResponse, 9, 2)
    assert throttled.throttle_time_ms > 0
    assert (await client.receive(api_versions.ApiVersionsResponse, 0)).error_code == 0


async def test_a_producer_without_acknowledgements_is_muted_too(broker: Broker, client: RawClient) -> None:
    request = produced()
    request.acks = 0
    await alter(client, ANYONE, producer_byte_rate=float(limit_for(request, 9, 0.05)))
    before = broker.state.partition("t", 0).log.end_offset
    client.send(request, 9)
    assert (await client.ask(api_versions.ApiVersionsRequest(), 0)).error_code == 0
    assert broker.state.partition("t", 0).log.end_offset == before + 1


async def test_a_version_without_a_throttle_time_is_muted_without_one(client: RawClient) -> None:
    request = produce_request("t", batch([b"x" * SIZE_OF_BATCH], magic=1))
    await alter(client, ANYONE, producer_byte_rate=float(limit_for(request, 0, 0.02)))
    assert (await client.ask(request, 0)).responses[0].partition_responses[0].error_code == 0
    assert (await client.ask(api_versions.ApiVersionsRequest(), 0)).error_code == 0


async def test_a_consumer_above_its_quota_is_throttled_after_its_records(client: RawClient) -> None:
    await client.ask(produced(), 9)
    await alter(client, ANYONE, consumer_byte_rate=100.0)
    answer = await client.ask(fetch_request("t"), 12)
    assert answer.responses[0].partitions[0].records
    assert answer.throttle_time_ms > 0


async def test_a_fetch_that_waited_is_throttled_too(broker: Broker, client: RawClient) -> None:
    await alter(client, ANYONE, consumer_byte_rate=100.0)
    client.send(fetch_request("t", max_wait_ms=10_000), 12)
    other = await RawClient.connect(broker)
    await other.ask(produced(), 9)
    assert (await client.receive(FetchResponse, 12)).throttle_time_ms > 0
    client.send(api_versions.ApiVersionsRequest(), 0)
    await other.ask(api_versions.ApiVersionsRequest(), 0)
    assert not client.reader._buffer  # type: ignore[attr-defined]
    await other.close()


async def test_a_fetch_takes_no_more_than_its_quota_allows_at_once(client: RawClient) -> None:
    for _ in range(5):
        await client.ask(produced(), 9)
    await alter(client, ANYONE, consumer_byte_rate=200.0)
    answer = await client.ask(fetch_request("t"), 12)
    assert len(answer.responses[0].partitions[0].records or b"") <= 2000


async def test_request_time_is_throttled_for_one_window_at_most(client: RawClient) -> None:
    await alter(client, ANYONE, request_percentage=1e-9)
    assert (await client.ask(produced(), 9)).throttle_time_ms == 1000


async def test_clients_without_a_quota_are_not_throttled(client: RawClient) -> None:
    await alter(client, {"user": "alice"}, producer_byte_rate=1.0, request_percentage=1e-9)
    assert (await client.ask(produced(), 9)).throttle_time_ms == 0


async def test_a_login_is_not_throttled_and_what_follows_is(broker: Broker) -> None:
    entity = entity_of([("client-id", None)])
    await broker.state.quotas.alter([(entity, {"request_percentage": 1e-9})])
    for api, throttle in ((ApiKey.SASL_HANDSHAKE, 0), (ApiKey.SASL_AUTHENTICATE, 0), (ApiKey.METADATA, 1000)):
        call = Call(broker.state, api=api, version=1)
        assert count_request(call, Usage(100), None, 0) == throttle


# --- mutations of topics ----------------------------------------------------------------------------------------------


def creation(name: str, partitions: int) -> Any:
    topic = create_topics.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return create_topics.CreateTopicsRequest(topics=[topic])


async def test_topics_beyond_the_quota_of_mutations_are_refused(broker: Broker, client: RawClient) -> None:
    await alter(client, ANYONE, controller_mutation_rate=0.1)  # a burst of 1.1
    first = await client.ask(creation("a", 100), 7)
    assert (first.topics[0].error_code, first.throttle_time_ms) == (0, 0)
    second = await client.ask(creation("b", 1), 7)
    assert second.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert second.throttle_time_ms > 900_000
    assert broker.state.topics.get("b") is None
    other = await RawClient.connect(broker)
    more = create_partitions.CreatePartitionsTopic(name="t", count=3, assignments=None)
    grown = await other.ask(create_partitions.CreatePartitionsRequest(topics=[more]), 3)
    assert grown.results[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    await other.close()
    other = await RawClient.connect(broker)
    deleted = await other.ask(delete_topics.DeleteTopicsRequest(topics=[delete_topics.DeleteTopicState(name="t")]), 6)
    assert deleted.responses[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert broker.state.topics.get("t") is not None
    await other.close()


async def test_clients_of_older_versions_are_throttled_instead(broker: Broker, client: RawClient) -> None:
    await alter(client, ANYONE, controller_mutation_rate=0.1)
    answer = await client.ask(creation("a", 100), 5)
    assert answer.topics[0].error_code == 0
    assert answer.throttle_time_ms > 900_000


async def test_the_oldest_versions_are_refused_since_they_have_no_throttle_time(client: RawClient) -> None:
    await alter(client, ANYONE, controller_mutation_rate=0.1)
    assert (await client.ask(creation("a", 100), 0)).topics[0].error_code == 0
    assert (await client.ask(creation("b", 1), 0)).topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


# --- connections ------------------------------------------------------------------------------------------------------


async def test_an_address_that_connects_too_often_is_refused(broker: Broker, client: RawClient) -> None:
    await alter(client, {"ip": "127.0.0.1"}, connection_creation_rate=1.0)
    accepted = []
    for _ in range(10):
        accepted.append(await RawClient.connect(broker))
        assert (await accepted[-1].ask(api_versions.ApiVersionsRequest(), 0)).error_code == 0
    refused = await RawClient.connect(broker)
    refused.send(api_versions.ApiVersionsRequest(), 0)
    assert await refused.closed_by_broker()
    for one in (*accepted, refused):
        await one.close()
