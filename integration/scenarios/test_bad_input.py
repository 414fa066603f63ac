"""Mistakes of programs: each is a clear typed error, and no accepted record is lost."""

from __future__ import annotations

import os
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream
from anyio.to_thread import run_sync

from aiokwire import (
    Admin,
    BrokerError,
    ConfigurationError,
    ConnectionFailed,
    Consumer,
    DeliveryFailed,
    ErrorCode,
    InvalidArgument,
    KafkaError,
    Producer,
    RecordRejected,
    StorageError,
    TopicPartition,
)
from aiokwire.broker import Broker
from integration.conftest import BrokerUnderTest
from integration.embedded import EmbeddedProcess
from integration.kafka.metadata import create_by_asking
from integration.kafka.server import ServerFailed, free_port
from integration.scenarios.common import PATIENCE, consumer, take

SHORT: dict[str, Any] = {
    "bootstrap_timeout_ms": 1500,
    "default_api_timeout_ms": 1500,
    "socket_connection_setup_timeout_ms": 500,
    "socket_connection_setup_timeout_max_ms": 500,
}
CLIENTS = [
    pytest.param(lambda address: Producer(address, **SHORT), id="producer"),
    pytest.param(lambda address: Consumer("topic", bootstrap_servers=address, **SHORT), id="consumer"),
    pytest.param(lambda address: Admin(address, **SHORT), id="admin"),
]


# --- addresses -----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def stranger(answer: bytes | None) -> AsyncIterator[str]:
    """Run a server of another protocol, which responds with `answer` or not at all."""

    async def serve(link: SocketStream) -> None:
        async with link:
            await link.receive()
            if answer is None:
                await anyio.sleep_forever()
            else:
                await link.send(answer)

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        yield f"127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
        group.cancel_scope.cancel()


@pytest.mark.parametrize("make", CLIENTS)
async def test_an_address_without_a_listener_is_an_error(make: Any) -> None:
    address = f"127.0.0.1:{free_port()}"
    with anyio.fail_after(PATIENCE), pytest.raises(ConnectionFailed, match=address):
        await make(address).start()


@pytest.mark.parametrize("make", CLIENTS)
async def test_an_unknown_host_is_an_error(make: Any) -> None:
    with anyio.fail_after(PATIENCE), pytest.raises(ConnectionFailed, match=r"no-such-host\.invalid:9092"):
        await make("no-such-host.invalid:9092").start()


@pytest.mark.parametrize("make", CLIENTS)
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", id="HTTP"),
        pytest.param(b"\x15\x03\x03\x00\x02\x02\x46", id="TLS"),
        pytest.param(b"", id="closes"),
        pytest.param(None, id="silent"),
    ],
)
async def test_a_port_of_another_protocol_is_an_error(make: Any, answer: bytes | None) -> None:
    async with stranger(answer) as address:
        with anyio.fail_after(PATIENCE), pytest.raises(ConnectionFailed, match=address):
            await make(address).start()


@pytest.mark.parametrize("address", ["", "host:port", "host:99999", ":9092", 9092, []])
async def test_an_invalid_address_is_refused(address: Any) -> None:
    for make in (Producer, Admin, lambda given: Consumer("topic", bootstrap_servers=given)):
        with pytest.raises(ConfigurationError, match="bootstrap_servers"):
            make(address)


# --- options and arguments -----------------------------------------------------------------------------------------


def test_an_unknown_option_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(ConfigurationError, match="linger_ms"):
        Producer("localhost:9092", lingerms=5)  # type: ignore[call-arg]  # on purpose
    with pytest.raises(ConfigurationError, match="auto_offset_reset"):
        Consumer("topic", bootstrap_servers="localhost:9092", auto_ofset_reset="earliest")  # type: ignore[call-arg]  # on purpose
    with pytest.raises(ConfigurationError, match=r"log.segment.bytes"):
        Broker(log_segment_byte=1)  # type: ignore[call-arg]  # on purpose


def test_options_of_a_wrong_type_or_value_are_refused() -> None:
    for options in ({"linger_ms": "5 s"}, {"acks": 2}, {"compression_type": "lzma"}, {"batch_size": -1}):
        with pytest.raises(ConfigurationError):
            Producer("localhost:9092", **options)


async def test_arguments_of_wrong_types_are_refused_and_no_accepted_record_is_lost(broker: BrokerUnderTest) -> None:
    topic = broker.create()
    wrong: list[dict[str, Any]] = [
        {"value": "text"},
        {"value": 5},
        {"value": b"", "key": "text"},
        {"value": b"", "partition": "1"},
        {"value": b"", "partition": -1},
        {"value": b"", "partition": 77},
        {"value": b"", "timestamp": "now"},
        {"value": b"", "headers": [("name", "text")]},
        {"value": b"", "headers": [(b"name", b"value")]},
        {"value": b"", "headers": 5},
        {"value": b"", "topic": 5},
    ]
    async with Producer(broker.bootstrap_servers, linger_ms=200) as producer:
        await producer.send(topic, b"first", partition=0)
        deliveries = []
        for number, arguments in enumerate(wrong):
            deliveries.append(await producer.submit(topic, b"%d" % number, partition=0))
            with pytest.raises(InvalidArgument):
                await producer.send(**{"topic": topic, **arguments})
        assert [(await delivery).offset for delivery in deliveries] == list(range(1, len(wrong) + 1))


# --- topics and records --------------------------------------------------------------------------------------------


async def test_an_unknown_topic_is_an_error(modern_broker: BrokerUnderTest) -> None:
    options: dict[str, Any] = {"bootstrap_servers": modern_broker.bootstrap_servers}
    async with Producer(**options, allow_auto_create_topics=False, unknown_topic_timeout_ms=500) as producer:
        with anyio.fail_after(PATIENCE), pytest.raises(KafkaError, match="nowhere") as caught:
            await producer.send("nowhere", b"value")
        assert isinstance(caught.value, DeliveryFailed | BrokerError)
    async with Consumer("nowhere", **options, **SHORT) as consumer:
        with anyio.fail_after(PATIENCE), pytest.raises(BrokerError, match="nowhere") as absent:
            await consumer.partitions_for_topic("nowhere", timeout=0.5)
        assert absent.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_an_invalid_topic_name_is_an_error(broker: BrokerUnderTest) -> None:
    async with Producer(broker.bootstrap_servers, delivery_timeout_ms=1500) as producer:
        with anyio.fail_after(PATIENCE), pytest.raises((BrokerError, InvalidArgument), match="not a topic!"):
            await producer.send("not a topic!", b"value")


async def test_a_record_over_the_clients_limit_is_refused_before_it_is_accepted(broker: BrokerUnderTest) -> None:
    topic = broker.create()
    async with Producer(broker.bootstrap_servers, linger_ms=200) as producer:
        first = await producer.submit(topic, b"first", partition=0)
        with pytest.raises(RecordRejected, match="max_request_size"):
            await producer.submit(topic, b"x" * 1_100_000, partition=0)
        assert ((await first).offset, (await producer.send(topic, b"second", partition=0)).offset) == (0, 1)


async def test_a_record_over_the_brokers_limit_is_refused_alone(broker: BrokerUnderTest) -> None:
    place = TopicPartition(broker.create(), 0)
    async with Producer(broker.bootstrap_servers, max_request_size=8_000_000, linger_ms=50) as producer:
        small = [await producer.submit(place.topic, b"%d" % number, partition=0) for number in range(100)]
        large = await producer.submit(place.topic, os.urandom(3_000_000), partition=0)
        after = await producer.submit(place.topic, b"after", partition=0)
        with anyio.fail_after(PATIENCE):
            with pytest.raises(RecordRejected) as caught:
                await large
            assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
            assert [(await delivery).offset for delivery in [*small, after]] == list(range(101))
    async with consumer(broker, [place]) as reader:
        assert [record.value for record in await take(reader, 101)] == [*(b"%d" % n for n in range(100)), b"after"]


# --- the embedded broker's disk ------------------------------------------------------------------------------------


async def until_refused(producer: Producer[Any, Any], value: bytes) -> tuple[int, KafkaError]:
    """Send records until one fails; return the number of acknowledged records, and the error."""
    acknowledged = 0
    while True:
        try:
            await producer.send("full", value, partition=0)
        except KafkaError as error:
            return acknowledged, error
        acknowledged += 1


async def test_a_full_disk_is_an_error_and_acknowledged_records_stay(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with closing(EmbeddedProcess(data)) as server:
        await run_sync(server.start)
        await run_sync(create_by_asking, server.bootstrap_servers, "full", 4)
        value = os.urandom(50_000)
        kept = 0
        async with Producer(server.bootstrap_servers, delivery_timeout_ms=2000) as producer:
            for _ in range(20):
                await producer.send("full", value, partition=0)
                kept += 1
            # no file of that process may grow beyond this limit: writes fail as on a full disk
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1_200_000, resource.RLIM_INFINITY))
            with anyio.fail_after(PATIENCE):
                more, error = await until_refused(producer, value)
            kept += more
            cause = error.last_error if isinstance(error, DeliveryFailed) else error
            assert isinstance(cause, BrokerError)
            assert cause.code is ErrorCode.KAFKA_STORAGE_ERROR
            assert 20 <= kept < 30
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            assert (await producer.send("full", b"room again", partition=0)).offset == kept
        await run_sync(server.kill)
        await run_sync(server.restart)
        place = TopicPartition("full", 0)
        async with Consumer(
            partitions=[place], bootstrap_servers=server.bootstrap_servers, auto_offset_reset="earliest"
        ) as reader:
            assert [record.value for record in await take(reader, kept + 1)] == [value] * kept + [b"room again"]


async def test_a_second_broker_on_the_same_data_directory_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with Broker(data, topics={"mine": 1}) as first:
        with pytest.raises(StorageError, match=data.name):
            await Broker(data).start()
        with pytest.raises(ServerFailed, match=data.name) as caught:
            await run_sync(EmbeddedProcess(data).start)
        assert "Traceback" not in str(caught.value)
        async with Producer(first.bootstrap_servers) as producer:
            assert (await producer.send("mine", b"still served")).offset == 0
