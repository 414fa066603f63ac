"""KIP-714 in the broker: subscriptions as configs, and the pushes that it accepts."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import aiokwire
from aiokwire import otlp
from aiokwire.admin import ConfigResource, ConfigSource, ResourceType
from aiokwire.broker import Broker
from aiokwire.broker.client_metrics import MAX_CLIENTS, ClientMetrics, PushingClient, is_matched, subscription_of
from aiokwire.broker.configs import BrokerConfigs
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, InvalidArgument
from aiokwire.metrics import Metric, Sample
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import api_versions, get_telemetry_subscriptions, list_config_resources, push_telemetry
from aiokwire.records import compress
from aiokwire.types import Compression
from tests.broker.raw import RawClient

pytest.importorskip("opentelemetry.proto")

RESOURCE = ConfigResource(ResourceType.CLIENT_METRICS, "all")
COUNTER = Metric("org.apache.kafka.raw.total", "counter", "1", "")
GAUGE = Metric("org.apache.kafka.raw.now", "gauge", "1", "")
PERIOD = otlp.Period(1, 2)
CLIENT = PushingClient("billing-1", "apache-kafka-java", "4.3.1", "10.0.0.7", "4711")


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 1}, client_metrics=True) as one:
        yield one


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[RawClient]:
    one = await RawClient.connect(broker)
    yield one
    await one.close()


async def alter(broker: Broker, configs: Mapping[str, str | int | None], resource: ConfigResource = RESOURCE) -> None:
    async with aiokwire.Admin(broker.bootstrap_servers) as admin:
        (await admin.alter_configs({resource: configs})).check()


async def described(broker: Broker) -> dict[str, tuple[str | None, ConfigSource]]:
    async with aiokwire.Admin(broker.bootstrap_servers) as admin:
        found = (await admin.describe_configs([RESOURCE])).check()
    return {name: (entry.value, entry.source) for name, entry in found[RESOURCE].items()}


async def asked(
    client: RawClient, instance: bytes = bytes(16)
) -> get_telemetry_subscriptions.GetTelemetrySubscriptionsResponse:
    request = get_telemetry_subscriptions.GetTelemetrySubscriptionsRequest(client_instance_id=instance)
    return await client.ask(request, 0)


async def push(
    client: RawClient,
    subscription: get_telemetry_subscriptions.GetTelemetrySubscriptionsResponse,
    metrics: bytes = b"",
    **fields: Any,
) -> int:
    given = {
        "client_instance_id": subscription.client_instance_id,
        "subscription_id": subscription.subscription_id,
        "metrics": metrics,
        **fields,
    }
    return (await client.ask(push_telemetry.PushTelemetryRequest(**given), 0)).error_code


def payload(*samples: Sample, is_delta: bool = True) -> bytes:
    return otlp.encode(samples, {}, PERIOD, is_delta=is_delta)


def values(broker: Broker) -> dict[str, object]:
    return {one.metric.name: one.value for instance in broker.client_metrics() for one in instance.values.values()}


# --- subscriptions ----------------------------------------------------------------------------------------------------


async def test_a_subscription_is_described_with_its_defaults_and_listed(broker: Broker, client: RawClient) -> None:
    await alter(broker, {"metrics": "org.apache.kafka.producer."})
    assert await described(broker) == {
        "metrics": ("org.apache.kafka.producer.", ConfigSource.CLIENT_METRICS),
        "interval.ms": ("300000", ConfigSource.DEFAULT),
        "match": ("", ConfigSource.DEFAULT),
    }
    for version in (0, 1):
        listed = await client.ask(list_config_resources.ListConfigResourcesRequest(), version)
        assert "all" in [one.resource_name for one in listed.config_resources]
    await alter(broker, {"metrics": None})
    listed = await client.ask(list_config_resources.ListConfigResourcesRequest(), 0)
    assert listed.config_resources == [], "without configs it is gone"


async def test_a_subscription_survives_a_restart(tmp_path: Path) -> None:
    async with Broker(tmp_path / "data", client_metrics=True) as broker:
        await alter(broker, {"metrics": "*", "match": "client_id=billing.*"})
    async with Broker(tmp_path / "data", client_metrics=True) as broker:
        assert (await described(broker))["match"] == ("client_id=billing.*", ConfigSource.CLIENT_METRICS)


@pytest.mark.parametrize(
    ("configs", "code"),
    [
        ({"interval.ms": 99}, ErrorCode.INVALID_REQUEST),
        ({"interval.ms": 3_600_001}, ErrorCode.INVALID_REQUEST),
        ({"interval.ms": "often"}, ErrorCode.INVALID_REQUEST),
        ({"colour": "red"}, ErrorCode.INVALID_REQUEST),
        ({"match": "client_id"}, ErrorCode.INVALID_CONFIG),
        ({"match": "colour=red"}, ErrorCode.INVALID_CONFIG),
        ({"match": "client_id=("}, ErrorCode.INVALID_CONFIG),
    ],
)
async def test_a_wrong_subscription_is_refused(
    broker: Broker, configs: dict[str, str | int | None], code: ErrorCode
) -> None:
    with pytest.raises(BrokerError) as caught:
        await alter(broker, configs)
    assert caught.value.code is code
    with pytest.raises(BrokerError):
        await alter(broker, {"metrics": "*"}, ConfigResource(ResourceType.CLIENT_METRICS, ""))
    assert not broker.state.configs.client_metrics


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ("", True),
        ("client_id=billing.*", True),
        ("client_id=billing", False),
        ("client_software_name=apache-kafka-java,client_software_version=4\\..*", True),
        ("client_software_name=apache-kafka-java,client_source_port=1", False),
        ("client_source_address=10\\.0\\.0\\.7", True),
        ("client_instance_id=AAAAAAAAAAAAAAAAAAAAAQ", True),
        ("client_id=" + "(a*)*b" * 50, False),
    ],
)
def test_clients_are_selected_by_all_patterns(match: str, expected: bool) -> None:
    assert is_matched({"match": match}, CLIENT, "AAAAAAAAAAAAAAAAAAAAAQ") is expected


def test_subscriptions_of_a_client_are_united_with_the_shortest_interval() -> None:
    first = {"metrics": "a,b", "interval.ms": "5000"}
    second = {"metrics": "b,c", "interval.ms": "9000"}
    others = {"metrics": "z", "interval.ms": "100", "match": "client_id=none"}
    found = subscription_of([first, second, others], CLIENT, bytes(16))
    assert (found.requested, found.interval_ms) == (("a", "b", "c"), 5000)
    assert subscription_of([first, {"metrics": "*"}], CLIENT, bytes(16)).requested == ("*",)
    assert subscription_of([], CLIENT, bytes(16))[1:] == ((), 300_000)
    assert subscription_of([first], CLIENT, bytes(16)).number != found.number


# --- requests ---------------------------------------------------------------------------------------------------------


async def test_the_apis_are_advertised_only_by_a_broker_that_receives(client: RawClient) -> None:
    request = api_versions.ApiVersionsRequest(client_software_name="raw", client_software_version="1")
    both = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    assert both <= {one.api_key for one in (await client.ask(request, 3)).api_keys}
    async with Broker() as plain:
        other = await RawClient.connect(plain)
        assert not both & {one.api_key for one in (await other.ask(request, 3)).api_keys}
        assert (await asked(other)).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert await push(other, await asked(other)) == ErrorCode.UNSUPPORTED_VERSION
        with pytest.raises(InvalidArgument):
            plain.client_metrics()
        await other.close()


async def test_a_client_gets_an_id_and_keeps_it(broker: Broker, client: RawClient) -> None:
    await alter(broker, {"metrics": "*", "interval.ms": 60_000})
    first = await asked(client)
    assert first.client_instance_id != bytes(16)
    assert (first.requested_metrics, first.push_interval_ms, first.delta_temporality) == (["*"], 60_000, True)
    assert first.accepted_compression_types == [Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY]
    assert first.telemetry_max_bytes == 1_048_576
    again = await asked(client, first.client_instance_id)
    assert again.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    await alter(broker, {"metrics": "org."})
    changed = await asked(client, first.client_instance_id)
    assert (changed.error_code, changed.client_instance_id) == (0, first.client_instance_id)
    assert changed.subscription_id != first.subscription_id
    assert await push(client, first) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert (await asked(client, first.client_instance_id)).error_code == 0, "it may ask at once"


@pytest.mark.parametrize("codec", list(Compression))
async def test_a_push_is_read_with_every_codec(broker: Broker, client: RawClient, codec: Compression) -> None:
    await alter(broker, {"metrics": "*"})
    data = payload(Sample(COUNTER, {"topic": "t"}, 3))
    metrics = compress(codec, data) if codec else data
    assert await push(client, await asked(client), metrics, compression_type=codec) == 0
    assert values(broker) == {COUNTER.name: 3.0}


async def test_early_oversized_and_malformed_pushes_are_rejected(broker: Broker, client: RawClient) -> None:
    await alter(broker, {"metrics": "*", "interval.ms": 100})
    first = await asked(client)
    assert await push(client, first, b"\xff\xff") == ErrorCode.INVALID_RECORD
    assert await push(client, first) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert await push(client, await asked(client), client_instance_id=bytes(16)) == ErrorCode.INVALID_REQUEST
    assert await push(client, await asked(client), compression_type=9) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert await push(client, await asked(client), bytes(1_048_577)) == ErrorCode.TELEMETRY_TOO_LARGE
    bomb = compress(Compression.ZSTD, bytes(100_000_000))
    assert len(bomb) < 20_000
    assert await push(client, await asked(client), bomb, compression_type=Compression.ZSTD) == ErrorCode.INVALID_RECORD
    last = await asked(client)
    assert await push(client, last, terminating=True) == 0
    assert await push(client, last, terminating=True) == ErrorCode.INVALID_REQUEST, "it has ended"
    assert values(broker) == {}


# --- values -----------------------------------------------------------------------------------------------------------


def receiver(**subscriptions: Mapping[str, str]) -> ClientMetrics:
    configs = BrokerConfigs({}, node_id=1)
    configs.client_metrics.update({name: dict(one) for name, one in subscriptions.items()})
    return ClientMetrics(configs, random.Random(1))


def test_differences_are_added_up_and_gauges_replaced() -> None:
    metrics = receiver(all={"metrics": "*"})
    one = metrics.instance(bytes(16), CLIENT)
    for number in (1, 2, 3):
        data = payload(Sample(COUNTER, {"topic": "t"}, number), Sample(GAUGE, {}, number))
        metrics.store(one, metrics.decode(data, 0), number)
    assert {sample.metric.name: sample.value for sample in metrics.samples()} == {COUNTER.name: 6.0, GAUGE.name: 3.0}
    metrics.store(one, metrics.decode(payload(Sample(COUNTER, {"topic": "t"}, 4), is_delta=False), 0), 4)
    assert metrics.samples()[0].value == 4.0


def test_odd_names_are_left_out_and_a_metric_has_one_kind() -> None:
    metrics = receiver(all={"metrics": "*"})
    odd = [
        Metric(name, "gauge", "1", "") for name in ('a"b', "a b", "a_b", "kafka.network.request", "messaging.x", "é")
    ]
    labels = {'evil"': "x", "le": "1", "client_id": "forged", "ok.name": 'a"\n' + "x" * 1000}
    first, second = (metrics.instance(bytes([number]) * 16, CLIENT) for number in (1, 2))
    metrics.store(first, metrics.decode(payload(*(Sample(one, {}, 1) for one in odd), Sample(GAUGE, labels, 1)), 0), 1)
    metrics.store(second, metrics.decode(payload(Sample(GAUGE._replace(kind="counter"), {}, 1)), 0), 1)
    (sample,) = metrics.samples()
    assert sample.metric.name == GAUGE.name
    assert sample.metric.kind == "gauge"
    assert sample.labels.keys() == {"ok_name", "client_id", "client_instance_id"}
    assert sample.labels["client_id"] == "billing-1"
    assert len(sample.labels["ok_name"]) == otlp.MAX_TEXT


def test_the_kept_metrics_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = receiver(all={"metrics": "*"})
    one = metrics.instance(bytes(16), CLIENT)
    for number in range(30):
        many = [Sample(GAUGE, {"topic": f"{number}-{index}"}, 1) for index in range(150)]
        metrics.store(one, metrics.decode(payload(*many), 0), 1)
    assert len(one.values) <= otlp.MAX_POINTS
    everything = payload(*(Sample(GAUGE, {"topic": str(index)}, 1) for index in range(10_000)))
    assert len(metrics.decode(everything, 0)) == otlp.MAX_POINTS
    for number in range(MAX_CLIENTS + 10):
        metrics.instance(number.to_bytes(16, "big"), CLIENT)
        metrics.note_software(number, "raw", "1")
    assert len(metrics.instances()) == MAX_CLIENTS
    assert metrics.software_of(0) == ("", "")


def test_idle_clients_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000_000]
    monkeypatch.setattr("aiokwire.broker.client_metrics.wall_ms", lambda: now[0])
    metrics = receiver(all={"metrics": "*", "interval.ms": "1000"})
    one = metrics.instance(bytes(16), CLIENT)
    metrics.store(one, metrics.decode(payload(Sample(GAUGE, {}, 1)), 0), now[0])
    now[0] += 60_000
    assert metrics.samples()
    now[0] += 1
    assert metrics.samples() == []
    metrics.instance(b"2" * 16, CLIENT)
    assert [each.id for each in metrics.instances()] == [b"2" * 16]
