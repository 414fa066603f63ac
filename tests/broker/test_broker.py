"""The broker's lifecycle: start, close, restart, and errors at the start."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import socket
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from aiokwire.broker import Broker
from aiokwire.broker.log import MemoryStorage, Storage
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    BrokerClosed,
    BrokerError,
    ConfigurationError,
    ConnectionFailed,
    StorageError,
)
from aiokwire.protocol.messages import api_versions, fetch, init_producer_id, metadata
from tests.broker.raw import RawClient, batch, fetch_request, produce_one, produce_request, values_of


async def test_a_restarted_broker_has_its_topics_records_configs_and_ids(storage: Storage) -> None:
    async with Broker(storage=storage) as broker:
        await broker.create_topic("orders", 3, {"retention.ms": "1000000"})
        cluster_id = broker.cluster_id
        topic_id = broker.state.topics.require("orders").id
        client = await RawClient.connect(broker)
        await produce_one(client, "orders", batch([b"a", b"b"]), partition=2)
        await client.close()
    async with Broker(storage=storage) as broker:
        assert broker.cluster_id == cluster_id
        topic = broker.state.topics.require("orders")
        assert (topic.id, len(topic.partitions), topic.configs) == (topic_id, 3, {"retention.ms": "1000000"})
        client = await RawClient.connect(broker)
        response = await client.ask(fetch_request("orders", partition=2), 12)
        assert values_of(response.responses[0].partitions[0]) == [b"a", b"b"]
        await client.close()


async def test_a_deleted_topic_stays_deleted_and_can_be_recreated_empty(storage: Storage) -> None:
    async with Broker(storage=storage, topics={"t": 1}) as broker:
        client = await RawClient.connect(broker)
        await produce_one(client, "t", batch([b"a"]))
        await client.close()
        await broker.delete_topic("t")
    async with Broker(storage=storage) as broker:
        assert broker.state.topics.get("t") is None
        await broker.create_topic("t", 1)
        assert broker.state.topics.require("t").partitions[0].log.end_offset == 0


async def test_producer_ids_are_not_given_twice_across_restarts(storage: Storage) -> None:
    given: list[int] = []
    for _ in range(3):
        async with Broker(storage=storage) as broker:
            client = await RawClient.connect(broker)
            for _ in range(3):
                request = init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
                response = await client.ask(request, 4)
                assert (response.error_code, response.producer_epoch) == (0, 0)
                given.append(response.producer_id)
            await client.close()
    assert len(set(given)) == 9


async def test_start_and_close_may_run_in_different_tasks() -> None:
    broker = Broker()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(broker.start)
    client = await RawClient.connect(broker)
    assert (await client.ask(api_versions.ApiVersionsRequest(), 0)).error_code == 0
    await client.close()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(broker.close)
        tasks.start_soon(broker.close)
    with pytest.raises(BrokerClosed):
        broker.bootstrap_servers  # noqa: B018 - the property raises


async def test_closing_ends_a_long_poll_and_every_connection() -> None:
    async with Broker(topics={"t": 1}) as broker:
        client = await RawClient.connect(broker)
        client.send(fetch_request("t", max_wait_ms=600_000), 12)
        other = await RawClient.connect(broker)
        await other.ask(api_versions.ApiVersionsRequest(), 0)
    assert await client.closed_by_broker()
    assert await other.closed_by_broker()
    await client.close()
    await other.close()


@pytest.mark.parametrize("turns", range(6))
async def test_a_connection_during_close_is_closed(turns: int) -> None:
    """Whatever the loop has done for it by then; a socket that is left behind fails the test."""
    broker = Broker()
    await broker.start()
    host, port = broker.bootstrap_servers.split(":")
    with socket.socket() as client:
        client.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            client.connect((host, int(port)))
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        await broker.close()
        gc.collect()
        client.setblocking(True)
        client.settimeout(5)
        with contextlib.suppress(ConnectionError):  # refused, or reset
            assert client.recv(1) == b""


async def test_a_broker_is_started_once() -> None:
    async with Broker() as broker:
        with pytest.raises(BrokerClosed, match="before"):
            await broker.start()


def test_using_a_broker_that_was_not_started_raises() -> None:
    with pytest.raises(BrokerClosed, match="start it first"):
        Broker().port  # noqa: B018 - the property raises


async def test_a_cancelled_start_leaves_nothing_behind(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    with anyio.move_on_after(0) as scope:
        await broker.start()
    assert scope.cancelled_caught
    async with Broker(tmp_path) as second:
        assert second.port > 0


async def test_a_second_broker_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    async with Broker(tmp_path, topics={"t": 1}) as first:
        with pytest.raises(StorageError, match="in use by another broker"):
            await Broker(tmp_path).start()
        client = await RawClient.connect(first)
        assert (await produce_one(client, "t", batch([b"a"]))).error_code == 0
        await client.close()


async def test_a_taken_port_is_refused_and_the_directory_is_free_again(tmp_path: Path) -> None:
    async with Broker() as first:
        with pytest.raises(ConnectionFailed, match=f"cannot listen on 127.0.0.1:{first.port}.*in use") as caught:
            await Broker(tmp_path, listen=f"127.0.0.1:{first.port}").start()
        assert caught.value.stage == "listen"
    async with Broker(tmp_path):
        pass


@pytest.mark.parametrize("listen", ["127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "::1:9092", ""])
def test_an_invalid_address_is_refused_at_construction(listen: str) -> None:
    with pytest.raises(ConfigurationError, match="host:port"):
        Broker(listen=listen)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"log_segment_byte": 1}, "log.segment.bytes"),
        ({"log_segment_bytes": "many"}, "whole number"),
        ({"log_cleanup_policy": "forget"}, "one of compact, delete"),
        ({"num_partitions": 0}, "num_partitions"),
        ({"topics": {"a b": 1}}, "illegal"),
        ({"topics": {"t": 0}}, "at least 1"),
        ({"topics": {"__consumer_offsets": 1}}, "internal"),
        ({"data_dir": "x", "storage": MemoryStorage()}, "not both"),
        ({"auto_create_topics": 1}, "auto_create_topics"),
    ],
)
def test_a_wrong_option_is_refused_at_construction(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Broker(**options)  # type: ignore[arg-type]  # wrong on purpose


async def test_a_full_disk_refuses_records_and_takes_them_again_when_there_is_room() -> None:
    storage = MemoryStorage()
    async with Broker(storage=storage, topics={"t": 2}) as broker:
        client = await RawClient.connect(broker)
        await produce_one(client, "t", batch([b"before"]))
        storage.capacity = sum(len(file.data) for file in storage.files.values()) + 100
        refused = await produce_one(client, "t", batch([b"x" * 500]))
        assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert "No space left" in (refused.error_message or "")
        storage.capacity = None
        accepted = await produce_one(client, "t", batch([b"after"]))
        assert (accepted.error_code, accepted.base_offset) == (0, 1)
        response = await client.ask(fetch_request("t"), 12)
        assert values_of(response.responses[0].partitions[0]) == [b"before", b"after"]
        await client.close()


async def test_acknowledged_records_survive_a_killed_broker(tmp_path: Path) -> None:
    broker = Broker(tmp_path, topics={"t": 1})
    await broker.start()
    client = await RawClient.connect(broker)
    for number in range(5):
        await produce_one(client, "t", batch([b"%d" % number]))
    broker.state.logs.abandon()  # as a killed process leaves it: nothing flushed, no mark of a clean stop
    await client.close()
    await broker.close()
    async with Broker(tmp_path) as again:
        client = await RawClient.connect(again)
        response = await client.ask(fetch_request("t"), 12)
        assert values_of(response.responses[0].partitions[0]) == [b"0", b"1", b"2", b"3", b"4"]
        await client.close()


async def test_flush_messages_makes_each_response_wait_for_the_disk(tmp_path: Path) -> None:
    async with Broker(tmp_path, topics={"t": 1}, log_flush_interval_messages=1) as broker:
        client = await RawClient.connect(broker)
        log = broker.state.topics.require("t").partitions[0].log
        for number in range(3):
            assert (await produce_one(client, "t", batch([b"a"]))).base_offset == number
            assert log.recovery_point == number + 1
        await client.close()


async def test_a_wildcard_address_is_advertised_as_the_one_the_client_used() -> None:
    async with Broker(listen="0.0.0.0:0") as broker:
        assert broker.bootstrap_servers == f"127.0.0.1:{broker.port}"
        client = await RawClient.connect(broker)
        answer = await client.ask(metadata.MetadataRequest(topics=[]), 9)
        assert (answer.brokers[0].host, answer.brokers[0].port) == ("127.0.0.1", broker.port)
        await client.close()


async def test_an_advertised_address_replaces_the_listener_address() -> None:
    async with Broker(advertised="kafka.example:0", node_id=7) as broker:
        client = await RawClient.connect(broker)
        answer = await client.ask(metadata.MetadataRequest(topics=[]), 9)
        assert (answer.brokers[0].host, answer.brokers[0].port) == ("kafka.example", broker.port)
        assert (answer.brokers[0].node_id, answer.controller_id) == (7, 7)
        await client.close()


async def test_localhost_is_served_at_both_loopback_addresses() -> None:
    async with Broker(listen="localhost:0") as broker:
        assert broker.bootstrap_servers == f"localhost:{broker.port}"
        for address in ("127.0.0.1", "::1"):
            reader, writer = await asyncio.open_connection(address, broker.port)
            client = RawClient(reader, writer)
            assert (await client.ask(api_versions.ApiVersionsRequest(), 0)).error_code == 0
            await client.close()


async def test_localhost_is_refused_where_another_program_has_the_port_at_one_of_its_addresses() -> None:
    with socket.socket(socket.AF_INET6) as taken:
        taken.bind(("::1", 0))
        taken.listen()
        with pytest.raises(ConnectionFailed, match="choose another port"):
            await Broker(listen=f"localhost:{taken.getsockname()[1]}").start()


async def test_create_topic_checks_its_arguments(broker: Broker) -> None:
    with pytest.raises(ConfigurationError, match=r"did you mean 'retention\.ms'"):
        await broker.create_topic("new", 1, {"retention.m": "1"})
    with pytest.raises(ConfigurationError, match="at least 1"):
        await broker.create_topic("new", 0)
    with pytest.raises(BrokerError, match="already exists"):
        await broker.create_topic("t", 1)
    with pytest.raises(BrokerError, match="UNKNOWN_TOPIC"):
        await broker.delete_topic("unknown")


async def test_the_same_seed_gives_the_same_ids() -> None:
    seen = set()
    for _ in range(2):
        async with Broker(topics={"t": 1}, rng=random.Random(3)) as broker:
            seen.add((broker.cluster_id, broker.state.topics.require("t").id))
    assert len(seen) == 1


async def test_a_broker_responds_while_another_connection_waits_in_a_long_poll(broker: Broker) -> None:
    waiting, other = await RawClient.connect(broker), await RawClient.connect(broker)
    waiting.send(fetch_request("t", max_wait_ms=60_000), 12)
    await produce_one(other, "t", batch([b"a"]))
    response = await waiting.receive(fetch.FetchResponse, 12)
    assert values_of(response.responses[0].partitions[0]) == [b"a"]
    await waiting.close()
    await other.close()


async def test_a_directory_written_by_kafka_is_adopted(tmp_path: Path) -> None:
    async with Broker(tmp_path, topics={"t": 2}) as broker:
        topic_id = broker.state.topics.require("t").id
        client = await RawClient.connect(broker)
        await client.ask(produce_request("t", batch([b"a"]), partition=1), 9)
        sealed = batch([b"b"], producer_id=41, producer_epoch=0, base_sequence=0)
        await client.ask(produce_request("t", sealed, partition=0), 9)
        await client.close()
    (tmp_path / "aiokwire-topics.json").unlink()
    async with Broker(tmp_path) as broker:
        topic = broker.state.topics.require("t")
        assert (topic.id, len(topic.partitions), topic.partitions[1].log.end_offset) == (topic_id, 2, 1)
        assert await broker.state.producer_ids.allocate() == 42, "above the producers that the logs know"


async def test_the_error_names_a_corrupt_topic_file(tmp_path: Path) -> None:
    async with Broker(tmp_path):
        pass
    (tmp_path / "aiokwire-topics.json").write_text("{")
    with pytest.raises(StorageError, match=r"aiokwire-topics\.json"):
        await Broker(tmp_path).start()
