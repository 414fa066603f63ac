"""KIP-714: what clients push to a broker that asks for their metrics."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest

import aiokwire
from aiokwire import otlp
from aiokwire.admin import ConfigResource, ResourceType
from aiokwire.broker import Broker
from aiokwire.broker.client_metrics import ClientInstance
from aiokwire.errors import ConfigurationError
from aiokwire.metrics import Sample
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages.push_telemetry import PushTelemetryRequest
from aiokwire.testing import ErrorCode
from tests.metric_values import value_of

pytest.importorskip("opentelemetry.proto")

PRODUCER = "org.apache.kafka.producer."
CONSUMER = "org.apache.kafka.consumer."
SENT = "aiokwire.messaging.client.sent.messages"
PATIENCE = 10.0


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"orders": 1}, journal=1000, client_metrics=True) as one:
        yield one


async def subscribe(broker: Broker, name: str = "all", **configs: Any) -> None:
    """Request metrics as an operator does; every 100 ms unless `configs` differ."""
    changes = {"interval.ms": 100, "metrics": "*", **{one.replace("_", "."): value for one, value in configs.items()}}
    async with aiokwire.Admin(broker.bootstrap_servers) as admin:
        (await admin.alter_configs({ConfigResource(ResourceType.CLIENT_METRICS, name): changes})).check()


async def until(is_true: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        while not is_true():  # noqa: ASYNC110 - what it waits for has no event
            await anyio.sleep(0.01)


async def pushed(broker: Broker, client_id: str, is_enough: Callable[[ClientInstance], bool]) -> ClientInstance:
    """Wait until a client has pushed what a test waits for."""

    def found() -> list[ClientInstance]:
        return [one for one in broker.client_metrics() if one.client.client_id == client_id and is_enough(one)]

    await until(lambda: bool(found()))
    return found()[0]


def names_of(instance: ClientInstance) -> set[str]:
    return {one.metric.name for one in instance.values.values()}


def total_of(instance: ClientInstance, name: str) -> float:
    found = [one for one in instance.values.values() if one.metric.name == name]
    return value_of(found, name) if found else -1.0


def pushes(broker: Broker) -> list[PushTelemetryRequest]:
    return broker.journal.requests(PushTelemetryRequest)


async def test_a_producer_pushes_the_standard_metrics_and_its_own(broker: Broker) -> None:
    await subscribe(broker)
    async with aiokwire.Producer(broker.bootstrap_servers, client_id="out", transactional_id="tx") as producer:
        async with producer.transaction():
            await producer.send("orders", b"paid")
        found = await pushed(broker, "out", lambda one: total_of(one, SENT) == 1)
        assert found.id_text == producer.client_instance_id
        assert (found.client.software_name, found.client.address) == ("aiokwire", "127.0.0.1")
    standard = {
        "connection.creation.rate",
        "connection.creation.total",
        "node.request.latency.avg",
        "node.request.latency.max",
        "produce.throttle.time.avg",
        "record.queue.time.avg",
        "record.queue.time.max",
    }
    assert {PRODUCER + name for name in standard} <= names_of(found)
    assert total_of(found, PRODUCER + "connection.creation.total") >= 1
    assert all(one.labels["transactional_id"] == "tx" for one in found.values.values())


async def test_a_consumer_pushes_the_standard_metrics_with_its_group(broker: Broker) -> None:
    await subscribe(broker, metrics="org.apache.kafka.")
    async with aiokwire.Producer(broker.bootstrap_servers, enable_metrics_push=False) as producer:
        await producer.send("orders", b"paid")
    reader = aiokwire.Consumer(
        "orders",
        bootstrap_servers=broker.bootstrap_servers,
        client_id="in",
        group_id="billing",
        client_rack="a",
        auto_offset_reset="earliest",
    )
    async with reader as consumer:
        await consumer.getone(timeout=PATIENCE)
        await consumer.commit()
        rebalances = CONSUMER + "coordinator.rebalance.latency.total"
        found = await pushed(broker, "in", lambda one: total_of(one, rebalances) > 0)
        member = consumer.health().group
        assert member is not None
    expected = {
        "connection.creation.total",
        "node.request.latency.avg",
        "coordinator.commit.latency.avg",
        "coordinator.commit.latency.max",
        "coordinator.assigned.partitions",
        "coordinator.rebalance.latency.avg",
        "coordinator.rebalance.latency.max",
        "fetch.manager.fetch.latency.avg",
        "fetch.manager.fetch.latency.max",
    }
    assert {CONSUMER + name for name in expected} <= names_of(found)
    assert all(name.startswith("org.apache.kafka.") for name in names_of(found)), "only what was requested"
    labels = next(iter(found.values.values())).labels
    assert (labels["group_id"], labels["client_rack"]) == ("billing", "a")
    assert labels["group_member_id"]


async def test_counters_are_sent_as_differences_and_added_up(broker: Broker) -> None:
    await subscribe(broker, metrics="aiokwire.messaging.")
    async with aiokwire.Producer(broker.bootstrap_servers, client_id="out") as producer:
        for count in range(1, 4):
            await producer.send("orders", b"paid")
            found = await pushed(broker, "out", lambda one, count=count: total_of(one, SENT) == count)  # type: ignore[misc]  # mypy cannot type a lambda's default
        assert total_of(found, "aiokwire.messaging.client.operation.duration") == 3, "a histogram"


async def test_the_last_values_are_pushed_when_a_client_is_closed(broker: Broker) -> None:
    await subscribe(broker, interval_ms=3_600_000)
    async with aiokwire.Producer(broker.bootstrap_servers, client_id="short") as producer:
        await until(lambda: producer.client_instance_id is not None)
        await producer.send("orders", b"paid")
    (last,) = pushes(broker)
    assert last.terminating
    found = await pushed(broker, "short", lambda one: one.is_terminated)
    assert total_of(found, SENT) == 1


async def test_closing_waits_one_second_at_most_for_a_broker_that_is_silent(broker: Broker) -> None:
    await subscribe(broker, interval_ms=3_600_000)
    admin = aiokwire.Admin(broker.bootstrap_servers, enable_metrics_push=True)
    await admin.start()
    await until(lambda: admin.client_instance_id is not None)
    broker.faults.on(ApiKey.PUSH_TELEMETRY, times=None).drop()
    with anyio.fail_after(3.0):
        await admin.close()


async def test_a_client_without_a_subscription_pushes_nothing_until_there_is_one(broker: Broker) -> None:
    async with aiokwire.Admin(broker.bootstrap_servers, client_id="idle", enable_metrics_push=True) as admin:
        await until(lambda: admin.client_instance_id is not None)
        await admin.list_topics()
    assert pushes(broker) == []


async def test_a_changed_subscription_takes_effect(broker: Broker) -> None:
    await subscribe(broker, metrics=CONSUMER)
    async with aiokwire.Admin(broker.bootstrap_servers, client_id="watcher", enable_metrics_push=True):
        await pushed(broker, "watcher", lambda one: not one.values)
        await subscribe(broker, metrics="org.apache.kafka.admin.")
        created = "org.apache.kafka.admin.client.connection.creation.total"
        await pushed(broker, "watcher", lambda one: names_of(one) >= {created})
        await subscribe(broker, "others", metrics="aiokwire.")
        await pushed(broker, "watcher", lambda one: names_of(one) >= {created, "aiokwire.kafka.connection.count"})


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.THROTTLING_QUOTA_EXCEEDED])
async def test_pushes_resume_after_a_refusal(broker: Broker, code: ErrorCode) -> None:
    await subscribe(broker)
    refusal = broker.faults.on(ApiKey.PUSH_TELEMETRY).error(code)
    async with aiokwire.Admin(broker.bootstrap_servers, client_id="stubborn", enable_metrics_push=True):
        await pushed(broker, "stubborn", lambda one: bool(one.values))
    assert refusal.hits == 1


async def test_a_permanent_refusal_ends_the_pushes_and_nothing_else(broker: Broker) -> None:
    await subscribe(broker)
    refusal = broker.faults.on(ApiKey.PUSH_TELEMETRY, times=None).error(ErrorCode.INVALID_REQUEST)
    async with aiokwire.Admin(broker.bootstrap_servers, enable_metrics_push=True) as admin:
        with anyio.fail_after(PATIENCE):
            await refusal.hit(1)
        await anyio.sleep(0.4)  # four intervals
        assert refusal.hits == 1
        await admin.list_topics()


async def test_too_many_metrics_are_reduced_to_the_standard_ones(broker: Broker) -> None:
    await subscribe(broker)
    async with Broker(client_metrics=True, telemetry_max_bytes=400) as small:
        await subscribe(small)
        async with aiokwire.Admin(small.bootstrap_servers, client_id="tight", enable_metrics_push=True):
            found = await pushed(small, "tight", lambda one: bool(one.values))
        assert all(name.startswith("org.apache.kafka.") for name in names_of(found))


async def test_a_broker_without_a_receiver_receives_no_request() -> None:
    async with Broker(topics={"orders": 1}, journal=1000) as plain:
        async with aiokwire.Producer(plain.bootstrap_servers) as producer:
            await producer.send("orders", b"paid")
            assert producer.client_instance_id is None
        assert not {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY} & {one.api for one in plain.journal}


async def test_the_option_switches_it_off(broker: Broker) -> None:
    await subscribe(broker)
    async with aiokwire.Producer.from_dict(
        {"bootstrap.servers": broker.bootstrap_servers, "enable.metrics.push": "false"}
    ) as producer:
        await producer.send("orders", b"paid")
    assert ApiKey.GET_TELEMETRY_SUBSCRIPTIONS not in {one.api for one in broker.journal}


async def test_without_the_package_one_line_names_what_to_install(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing() -> None:
        raise ConfigurationError("metrics need opentelemetry-proto: pip install 'aiokwire[telemetry]'")

    monkeypatch.setattr(otlp, "check_installed", missing)
    await subscribe(broker)
    with caplog.at_level(logging.INFO, "aiokwire.cluster"):
        async with aiokwire.Admin(broker.bootstrap_servers, enable_metrics_push=True):
            await until(lambda: any("enable_metrics_push=False" in one.getMessage() for one in caplog.records))
    assert len([one for one in caplog.records if "opentelemetry-proto" in one.getMessage()]) == 1
    assert pushes(broker) == []


async def test_metrics_of_single_partitions_are_not_pushed() -> None:
    async with Broker(topics={"wide": 500}, client_metrics=True) as broker:
        await subscribe(broker)
        async with aiokwire.Consumer("wide", bootstrap_servers=broker.bootstrap_servers, client_id="wide") as consumer:
            await consumer.assigned()
            found = await pushed(broker, "wide", lambda one: bool(one.values))
        assert len(found.values) < 100


async def test_the_metrics_of_the_broker_contain_those_of_its_clients(broker: Broker) -> None:
    await subscribe(broker)
    async with aiokwire.Admin(broker.bootstrap_servers, client_id='odd "name"\n', enable_metrics_push=True):
        await pushed(broker, 'odd "name"\n', lambda one: bool(one.values))
        found: list[Sample] = broker.metrics()
        name = "org.apache.kafka.admin.client.connection.creation.total"
        assert value_of(found, name, client_id='odd "name"\n') >= 1
