"""`Broker.metrics()`: requests, errors, connections, logs and groups."""

from __future__ import annotations

import pytest

from aiokwire.broker import Broker, metrics
from aiokwire.cluster import Client
from aiokwire.consumer import Consumer
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import RecordRejected
from aiokwire.producer import Producer
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages.metadata import MetadataRequest
from aiokwire.threads import run_in_thread
from tests.consumer.groups import QUICK
from tests.metric_values import value_of


async def test_requests_and_their_bytes_are_counted_by_api() -> None:
    async with Broker() as broker, Client(broker.bootstrap_servers) as client:
        before = value_of(broker.metrics(), metrics.REQUESTS, request="Metadata")
        for _ in range(3):
            await client.request(MetadataRequest(topics=[]))
        found = broker.metrics()
        assert value_of(found, metrics.REQUESTS, request="Metadata") == before + 3
        assert value_of(found, metrics.REQUESTS, request="ApiVersions") == 1
        assert value_of(found, metrics.BYTES_IN, request="Metadata") > 0
        assert value_of(found, metrics.BYTES_OUT, request="Metadata") > 0


async def test_error_codes_of_responses_are_counted() -> None:
    async with Broker(topics={"t": 1}) as broker, Producer(broker.bootstrap_servers) as producer:
        broker.faults.on(ApiKey.PRODUCE, times=1).error(ErrorCode.INVALID_TIMESTAMP)
        with pytest.raises(RecordRejected):
            await producer.send("t", b"x")
        found = broker.metrics()
        assert value_of(found, metrics.ERRORS, request="Produce", type="INVALID_TIMESTAMP") == 1


async def test_connections_are_counted_while_they_are_open() -> None:
    async with Broker() as broker:
        async with Client(broker.bootstrap_servers):
            assert value_of(broker.metrics(), metrics.CONNECTIONS) == 1
        async with Client(broker.bootstrap_servers) as client:
            await client.request(MetadataRequest(topics=[]))
            assert value_of(broker.metrics(), metrics.CREATION) == 2
            assert value_of(broker.metrics(), metrics.CONNECTIONS) == 1


async def test_logs_and_groups_are_measured() -> None:
    async with Broker(topics={"t": 2}) as broker:
        async with Producer(broker.bootstrap_servers) as producer:
            for _ in range(5):
                await producer.send("t", b"x", partition=1)
        found = broker.metrics()
        assert value_of(found, metrics.LOG_END, name="t", id="1") == 5
        assert value_of(found, metrics.LOG_START, name="t", id="1") == 0
        assert value_of(found, metrics.LOG_SIZE, name="t", id="1") > value_of(found, metrics.LOG_SIZE, name="t", id="0")
        async with Consumer("t", bootstrap_servers=broker.bootstrap_servers, group_id="g", **QUICK) as consumer:
            await consumer.getmany(timeout=5)
            found = await run_in_thread(broker.metrics)
            assert value_of(found, metrics.GROUPS, state="Stable") == 1


async def test_a_broker_that_does_not_serve_has_no_metrics() -> None:
    broker = Broker()
    assert broker.metrics() == []
    async with broker:
        assert broker.metrics()
    assert broker.metrics() == []
