"""A broker's outage is logged once per client, however many tasks and attempts meet it."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokwire.broker import Broker
from aiokwire.cluster import Client, ClientConfig, failure_level
from aiokwire.consumer import Consumer
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ConnectionFailed, KafkaError, RequestTimedOut
from aiokwire.producer import Producer
from aiokwire.protocol import ApiKey
from tests.simulation.test_scenarios import World, simulate
from tests.simulation.world import TOPIC, until

QUICK: dict[str, Any] = {
    "retry_backoff_ms": 2,
    "retry_backoff_max_ms": 10,
    "reconnect_backoff_ms": 2,
    "reconnect_backoff_max_ms": 10,
    "metadata_min_interval_ms": 1,
}

Logged = Callable[..., list[str]]
Clusters = Callable[..., AbstractAsyncContextManager[Any]]


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Logged:
    """The messages of a level that contain a text."""
    caplog.set_level(logging.DEBUG, "aiokwire")
    caplog.set_level(logging.DEBUG, "aiokwire.cluster.nodes")  # a command that ran in this process may have set it

    def messages(level: int, text: str = "") -> list[str]:
        found = (record for record in caplog.records if record.levelno == level and record.name.startswith("aiokwire"))
        return [message for record in found if text in (message := record.getMessage())]

    return messages


@asynccontextmanager
async def running(data_dir: Path, port: int = 0) -> AsyncIterator[Broker]:
    async with Broker(listen=f"127.0.0.1:{port}", data_dir=data_dir) as broker:
        if not port:
            await broker.create_topic("t", partitions=3)
        yield broker


@asynccontextmanager
async def clients(broker: Broker, **options: Any) -> AsyncIterator[tuple[Producer[Any, Any], Consumer[Any, Any]]]:
    """A producer and a member of a group."""
    common = {"bootstrap_servers": broker.bootstrap_servers, **QUICK}
    reading: dict[str, Any] = {
        "client_id": "reading",
        "group_id": "g",
        "auto_offset_reset": "earliest",
        "fetch_max_wait_ms": 50,
    }
    async with (
        Producer(**common, client_id="writing", linger_ms=0) as producer,
        Consumer("t", **common, **reading, heartbeat_interval_ms=10, auto_commit_interval_ms=10, **options) as consumer,
    ):
        yield producer, consumer


async def read_one(consumer: Consumer[Any, Any]) -> None:
    with anyio.fail_after(20):
        await consumer.getone()


async def failed_attempts(logged: Logged, count: int) -> None:
    """Wait until each client has failed to connect `count` times since its warning."""
    with anyio.fail_after(20):
        while len(logged(logging.DEBUG, "still no connection to node 1")) < count:
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_each_client_logs_one_warning_per_outage(tmp_path: Path, logged: Logged, protocol: str) -> None:
    async with AsyncExitStack() as stack:
        async with running(tmp_path) as broker:
            port = broker.port
            producer, consumer = await stack.enter_async_context(clients(broker, group_protocol=protocol))
            await producer.send("t", b"before")
            await read_one(consumer)
        for outage in (1, 2):
            delivery = await producer.submit("t", b"during")
            await failed_attempts(logged, 20 * outage)
            async with running(tmp_path, port):
                await delivery
                await read_one(consumer)
                for client in ("writing", "reading"):
                    assert len(logged(logging.WARNING, f"client {client!r}: no connection to node 1 at")) == outage
                    assert len(logged(logging.INFO, f"client {client!r}: reconnected to node 1 at")) == outage
                assert len([each for each in logged(logging.WARNING) if "event loop" not in each]) == 2 * outage
                if outage == 2:
                    await stack.aclose()


def test_an_outage_is_not_logged_as_stalls_of_its_partitions(logged: Logged) -> None:
    async def main(world: World) -> None:
        reading: dict[str, Any] = {"group_id": "g", "stalled_after_ms": 800}
        async with world.producer() as producer, world.consumer(**reading) as one, world.consumer(**reading) as other:
            await until(lambda: one.assignment and other.assignment, within=20, what="both have partitions")
            await world.host.stop()
            delivery = await producer.submit(TOPIC, b"a:0:")
            await until(lambda: one.health().stalled and other.health().stalled, within=20, what="both stall")
            await world.host.revive()
            await delivery
            await until(lambda: not (one.health().stalled or other.health().stalled), within=20, what="both resume")
            lines = logged(logging.WARNING)
            assert lines
            assert all("no connection to node 1" in line for line in lines)
            assert not logged(logging.INFO, "resumed")
            assert not logged(logging.INFO, "attempt 1 failed")

    simulate(main)


async def test_one_refusal_by_a_former_leader_is_logged_at_debug(logged: Logged) -> None:
    async with Broker(topics={"t": 1}) as broker, clients(broker) as (producer, consumer):
        await producer.send("t", b"before")
        await read_one(consumer)
        broker.faults.on(ApiKey.FETCH, times=1).error(ErrorCode.FENCED_LEADER_EPOCH)
        await producer.send("t", b"after")
        await read_one(consumer)
        assert not logged(logging.INFO, "FENCED_LEADER_EPOCH")


async def test_a_full_disk_is_logged_once_per_partition_until_a_record_is_stored(logged: Logged) -> None:
    async with Broker(topics={"t": 1}) as broker, clients(broker) as (producer, _):
        for outage in (1, 2):
            broker.faults.on(ApiKey.PRODUCE, times=5).error(ErrorCode.KAFKA_STORAGE_ERROR)
            await producer.send("t", b"a")
            assert len(logged(logging.WARNING, "KAFKA_STORAGE_ERROR")) == outage


@pytest.mark.parametrize("code", [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
async def test_a_join_that_is_refused_for_long_is_logged_as_one_warning(logged: Logged, code: ErrorCode) -> None:
    async with Broker(topics={"t": 1}) as broker:
        broker.faults.on(ApiKey.JOIN_GROUP, times=15).error(code)
        async with clients(broker) as (producer, consumer):
            await producer.send("t", b"a")
            await read_one(consumer)
            [warned] = logged(logging.WARNING)
            assert code.name in warned


async def test_the_lines_of_an_outage_name_client_address_cause_and_duration(tmp_path: Path, logged: Logged) -> None:
    async with AsyncExitStack() as stack:
        async with running(tmp_path) as broker:
            port = broker.port
            producer, _ = await stack.enter_async_context(clients(broker))
            await producer.send("t", b"before")
        delivery = await producer.submit("t", b"during")
        await failed_attempts(logged, 5)
        async with running(tmp_path, port):
            await delivery
            await stack.aclose()
    node = f"node 1 at 127.0.0.1:{port}"
    [lost] = logged(logging.WARNING, "client 'writing'")
    assert lost.startswith(f"client 'writing': no connection to {node}, reconnecting with backoff: ")
    assert lost.endswith("Connection refused")
    [found] = logged(logging.INFO, "client 'writing': reconnected")
    assert re.fullmatch(rf"client 'writing': reconnected to {node} after \d+\.\d s", found)


async def test_a_broker_that_closes_each_connection_without_a_response_is_logged_once(
    clusters: Clusters, logged: Logged
) -> None:
    async with clusters() as cluster:
        options = {"client_id": "c", "metadata_recovery_strategy": "none", **QUICK}
        config = ClientConfig(**{"bootstrap_servers": cluster.bootstrap, **options})
        async with Client(config) as client:
            cluster.nodes[0].handlers[ApiKey.METADATA] = lambda header, request: None
            cluster.nodes[0].drop()
            before = cluster.count(ApiKey.METADATA)
            client.metadata.request_update("test")
            with anyio.fail_after(20):
                while cluster.count(ApiKey.METADATA) < before + 10:
                    client.metadata.request_update("test")
                    await anyio.lowlevel.checkpoint()
    [line] = logged(logging.WARNING)
    assert line.startswith("client 'c': node 1 at 127.0.0.1:")
    assert "closed 3 connections in a row without a response, reconnecting with backoff: " in line


REFUSED = ConnectionFailed("refused", address="b:9092", stage="connect")


def caused_by(cause: KafkaError | None) -> RequestTimedOut:
    error = RequestTimedOut("no success in time")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (REFUSED, logging.DEBUG),
        (ConnectionFailed("closed by the broker", address="b:9092", stage="ready"), logging.DEBUG),
        (ConnectionFailed("cannot resolve 'b'", address="b:9092", stage="resolve"), logging.DEBUG),
        (caused_by(REFUSED), logging.DEBUG),
        (ConnectionFailed("node 3 is not in the metadata", stage="resolve"), logging.WARNING),
        (caused_by(None), logging.WARNING),
        (KafkaError("refused for another reason"), logging.WARNING),
    ],
)
def test_only_connection_failures_are_logged_at_debug(error: KafkaError, level: int) -> None:
    assert failure_level(error, logging.WARNING) == level
