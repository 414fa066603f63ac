"""One connection: requests in order, one at a time; limits; and when the broker closes it."""

from __future__ import annotations

import asyncio
import gc
import logging
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import cast

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.broker.log import MemoryStorage
from aiokwire.protocol import encode_request
from aiokwire.protocol.messages import api_versions, fetch, list_offsets, metadata, produce, unregister_broker
from tests.broker.raw import PATIENCE, RawClient, batch, fetch_request, produce_one, produce_request, values_of


async def test_responses_leave_in_the_order_of_the_requests(broker: Broker, client: RawClient) -> None:
    client.send(fetch_request("t", max_wait_ms=200), 12)
    client.send(metadata.MetadataRequest(topics=[]), 9)
    client.send(api_versions.ApiVersionsRequest(), 0)
    started = anyio.current_time()
    await client.receive(fetch.FetchResponse, 12, 1)
    waited = anyio.current_time() - started
    await client.receive(metadata.MetadataResponse, 9, 2)
    await client.receive(api_versions.ApiVersionsResponse, 0, 3)
    assert waited >= 0.15, "the long poll was not cut short by what came behind it"


async def test_many_small_requests_in_one_segment_all_get_responses(client: RawClient) -> None:
    request = list_offsets.ListOffsetsRequest(
        replica_id=-1,
        topics=[
            list_offsets.ListOffsetsTopic(
                name="t", partitions=[list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)]
            )
        ],
    )
    frames = [b"".join(encode_request(request, 5, number, None)) for number in range(1, 301)]
    client.writer.write(b"".join(frames))
    for number in range(1, 301):
        answer = await client.receive(list_offsets.ListOffsetsResponse, 5, number)
        assert answer.topics[0].partitions[0].offset == 0


async def test_a_request_that_arrives_byte_by_byte_gets_a_response(client: RawClient) -> None:
    frame = b"".join(encode_request(api_versions.ApiVersionsRequest(), 0, 1, "slow"))
    for at in range(len(frame)):
        client.writer.write(frame[at : at + 1])
        await client.writer.drain()
    assert (await client.receive(api_versions.ApiVersionsResponse, 0, 1)).error_code == 0


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
        (struct.pack(">i", -1), "shorter than any message"),
        (struct.pack(">i", 2**31 - 1) + bytes(8), "exceeds the limit"),
        (struct.pack(">ihhi", 8, 999, 0, 1), "unknown API 999"),
        (struct.pack(">ihhih", 10, 3, 99, 1, -1), "METADATA version 99"),
        (struct.pack(">ihhih", 10, 3, -1, 1, -1), "METADATA version -1"),
        (struct.pack(">ihhihi", 14, 3, 1, 1, -1, 2**31 - 1), "MetadataRequest version 1"),
    ],
)
async def test_an_invalid_request_closes_the_connection_and_logs_the_cause(
    client: RawClient, caplog: pytest.LogCaptureFixture, sent: bytes, message: str
) -> None:
    with caplog.at_level(logging.WARNING, "aiokwire.broker"):
        client.writer.write(sent)
        assert await client.closed_by_broker()
    assert len(caplog.records) == 1
    assert message in caplog.text


async def test_an_api_that_is_not_advertised_closes_the_connection(
    client: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    client.send(unregister_broker.UnregisterBrokerRequest(broker_id=1), 0)
    assert await client.closed_by_broker()
    assert "UNREGISTER_BROKER version 0: this broker has no such API" in caplog.text


async def test_a_connection_that_fails_leaves_the_others_alone(broker: Broker, client: RawClient) -> None:
    other = await RawClient.connect(broker)
    other.writer.write(b"nonsense" * 10)
    assert await other.closed_by_broker()
    assert (await produce_one(client, "t", batch([b"a"]))).error_code == 0
    await other.close()


async def test_requests_above_the_limit_are_refused_before_they_are_read() -> None:
    async with Broker(topics={"t": 1}, socket_request_max_bytes=10_000) as broker:
        client = await RawClient.connect(broker)
        client.send(produce_request("t", batch([b"x" * 20_000])), 9)
        assert await client.closed_by_broker()
        await client.close()


async def test_a_disconnect_ends_a_long_poll(broker: Broker) -> None:
    client = await RawClient.connect(broker)
    client.send(fetch_request("t", max_wait_ms=600_000), 12)
    await client.writer.drain()
    partition = broker.state.topics.require("t").partitions[0]
    with anyio.fail_after(PATIENCE):
        while not partition.waited_for:
            await anyio.lowlevel.checkpoint()
    await client.close()
    with anyio.fail_after(PATIENCE):
        while partition.waited_for:
            await anyio.lowlevel.checkpoint()


async def test_a_client_that_does_not_read_delays_its_own_requests_only(broker: Broker) -> None:
    client = await RawClient.connect(broker)
    await produce_one(client, "t", batch([b"x" * 900_000]))
    for _ in range(40):
        client.send(fetch_request("t"), 12)
    other = await RawClient.connect(broker)
    assert (await other.ask(api_versions.ApiVersionsRequest(), 0)).error_code == 0
    for number in range(2, 42):
        answer = await client.receive(fetch.FetchResponse, 12, number)
        assert len(values_of(answer.responses[0].partitions[0])[0] or b"") == 900_000
    await client.close()
    await other.close()


async def test_half_a_frame_is_freed_when_its_connection_closes(broker: Broker) -> None:
    size = 30 << 20
    gc.disable()  # else a collection hides what a cycle keeps
    tracemalloc.start()
    try:
        client = await RawClient.connect(broker)
        client.writer.write(struct.pack(">i", size) + bytes(1 << 16))
        await _until(lambda: tracemalloc.get_traced_memory()[0] > size)
        await client.close()
        await _until(lambda: tracemalloc.get_traced_memory()[0] < size // 2)
    finally:
        tracemalloc.stop()
        gc.enable()


async def _until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        while not condition():
            await anyio.lowlevel.checkpoint()


async def test_an_idle_connection_is_closed() -> None:
    async with Broker(connections_max_idle_ms=1) as broker:
        client = await RawClient.connect(broker)
        await client.ask(api_versions.ApiVersionsRequest(), 0)
        assert await client.closed_by_broker()
        await client.close()


async def test_connections_above_the_limit_are_refused() -> None:
    async with Broker(max_connections=1) as broker:
        first = await RawClient.connect(broker)
        await first.ask(api_versions.ApiVersionsRequest(), 0)
        second = await RawClient.connect(broker)
        assert await second.closed_by_broker()
        assert (await first.ask(api_versions.ApiVersionsRequest(), 0)).error_code == 0
        await first.close()
        await second.close()


async def test_a_fault_in_the_broker_closes_one_connection_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(MemoryStorage):
        """Raises an error that no storage should raise."""

        failing = False

        def room(self, more: int) -> int:
            if self.failing:
                raise RuntimeError("a bug")
            return super().room(more)

    storage = Broken()
    async with Broker(storage=storage, topics={"t": 1}) as broker:
        client, other = await RawClient.connect(broker), await RawClient.connect(broker)
        await produce_one(client, "t", batch([b"a"]))
        storage.failing = True
        client.send(produce_request("t", batch([b"a"])), 9)
        assert await client.closed_by_broker()
        storage.failing = False
        assert "a request failed in the broker" in caplog.text
        assert (await produce_one(other, "t", batch([b"b"]))).error_code == 0
        await client.close()
        await other.close()


async def test_acks_zero_gets_no_response_and_its_error_closes_the_connection(
    client: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    client.send(produce_request("t", batch([b"a"]), acks=0), 9)
    client.send(produce_request("t", batch([b"b"])), 9)
    answer = await client.receive(produce.ProduceResponse, 9, 2)
    assert answer.responses[0].partition_responses[0].base_offset == 1
    client.send(produce_request("t", batch([b"a"]), acks=0, partition=9), 9)
    assert await client.closed_by_broker()
    assert "records for t[9] with acks=0 were rejected: UNKNOWN_TOPIC_OR_PARTITION" in caplog.text


async def test_requests_without_a_response_are_handled_after_the_client_disconnects(tmp_path: Path) -> None:
    async with Broker(tmp_path, topics={"t": 1}) as broker:
        client, reader = await RawClient.connect(broker), await RawClient.connect(broker)
        for value in (b"a", b"b", b"c"):
            client.send(produce_request("t", batch([value]), acks=0), 9)  # the first one waits for the disk
        await client.writer.drain()
        await client.close()
        found: list[bytes | None] = []
        while len(found) < 3:
            answer = await reader.ask(fetch_request("t", len(found), max_wait_ms=5000), 12)
            found += values_of(answer.responses[0].partitions[0])
        assert found == [b"a", b"b", b"c"]
        await reader.close()


async def test_a_client_that_reads_nothing_is_not_read_from_until_it_reads() -> None:
    """Without back-pressure the broker would hold all responses (gh-127655 on asyncio's loop)."""
    async with Broker(topics={"large": 1, "after": 1}) as broker:
        client = await RawClient.connect(broker)
        for _ in range(4):
            await produce_one(client, "large", batch([b"x" * 900_000]))
        transport = cast("asyncio.ReadTransport", client.writer.transport)
        transport.pause_reading()
        fetches = range(20)
        for _ in fetches:
            client.send(fetch_request("large", max_wait_ms=0), 12)
        client.send(produce_request("after", batch([b"a"])), 9)
        other = await RawClient.connect(broker)
        for _ in range(50):
            await other.ask(metadata.MetadataRequest(topics=[]), 9)
        assert not broker.records("after"), "the request behind unread answers waits"
        transport.resume_reading()
        for number in fetches:
            await client.receive(fetch.FetchResponse, 12, 5 + number)
        await client.receive(produce.ProduceResponse, 9)
        assert [record.value for record in broker.records("after")] == [b"a"]
        await other.close()
        await client.close()
