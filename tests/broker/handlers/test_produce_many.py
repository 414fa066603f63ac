"""One Produce request for thousands of partitions: the loop stays responsive, each has a result."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Self

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import ApiKey, encode_request
from aiokwire.protocol.messages import api_versions, delete_topics, produce
from tests.broker.raw import RawClient, batch, fetch_request, produce_request, values_of

COUNT = 3000
MOST_CPU = 0.05  # seconds in one turn
pytestmark = pytest.mark.timeout(60)


class _Turns:
    """The longest CPU time of one turn of the loop, in seconds; the garbage collector is off."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.count = 0
        self._before = 0.0
        self._handle: asyncio.Handle | None = None

    def _turn(self) -> None:
        now = time.thread_time()
        self.longest = max(self.longest, now - self._before)
        self.count += 1
        self._before = now
        self._handle = asyncio.get_running_loop().call_soon(self._turn)

    def __enter__(self) -> Self:
        gc.disable()
        self._before = time.thread_time()
        self._turn()
        return self

    def __exit__(self, *_: object) -> None:
        gc.enable()
        if self._handle is not None:
            self._handle.cancel()


def _request(*topics: str, count: int = COUNT, acks: int = -1) -> produce.ProduceRequest:
    records = batch([b"v"])
    return produce.ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[
            produce.TopicProduceData(
                name=topic,
                partition_data=[produce.PartitionProduceData(index=index, records=records) for index in range(count)],
            )
            for topic in topics
        ],
    )


async def test_a_request_for_3000_partitions_leaves_the_loop_free() -> None:
    async with Broker(topics={"a": COUNT // 2, "b": COUNT // 2}) as broker:
        client = await RawClient.connect(broker)
        await client.ask(produce_request("a", batch([b"v"])), 9)  # loads the handler, saves the topics
        frames = b"".join(encode_request(_request("a", "b", count=COUNT // 2), 9, 2, None))
        with _Turns() as turns:
            client.writer.write(frames)
            answer = await client.receive(produce.ProduceResponse, 9, 2)
        assert [topic.name for topic in answer.responses] == ["a", "b"]
        for topic in answer.responses:
            assert [one.index for one in topic.partition_responses] == list(range(COUNT // 2))
            assert not any(one.error_code for one in topic.partition_responses)
        assert turns.longest < MOST_CPU
        await client.close()


async def test_large_requests_of_several_clients_have_one_slice_of_each_turn_together() -> None:
    async with Broker(topics={"t": COUNT // 4}) as broker:
        clients = [await RawClient.connect(broker) for _ in range(10)]
        await clients[0].ask(produce_request("t", batch([b"v"])), 9)
        frames = b"".join(encode_request(_request("t", count=COUNT // 4), 9, 7, None))
        with _Turns() as turns:
            for client in clients:
                client.writer.write(frames)
            for client in clients:
                await client.receive(produce.ProduceResponse, 9, 7)
        assert turns.longest < 2 * MOST_CPU, "the requests are decoded whole"
        for client in clients:
            await client.close()


async def test_others_get_responses_between_the_slices_of_a_large_request() -> None:
    async with Broker(topics={"t": COUNT}, journal=1000) as broker:
        large, other = await RawClient.connect(broker), await RawClient.connect(broker)
        large.send(_request("t"), 9)
        await broker.journal.wait_for(lambda entry: entry.api is ApiKey.PRODUCE)
        await other.ask(api_versions.ApiVersionsRequest(), 0)
        end = broker.state.partition("t", COUNT - 1).log.end_offset
        assert end == 0, "the large request is still handled"
        await large.receive(produce.ProduceResponse, 9)
        await large.close()
        await other.close()


async def test_a_topic_deleted_between_slices_refuses_the_partitions_that_come_later() -> None:
    async with Broker(topics={"a": COUNT // 2, "b": COUNT // 2}, journal=1000) as broker:
        large, other = await RawClient.connect(broker), await RawClient.connect(broker)
        large.send(_request("a", "b", count=COUNT // 2), 9)
        await broker.journal.wait_for(lambda entry: entry.api is ApiKey.PRODUCE)
        await other.ask(delete_topics.DeleteTopicsRequest(topic_names=["b"], timeout_ms=10_000), 5)
        answer = await large.receive(produce.ProduceResponse, 9)
        codes = [{one.error_code for one in topic.partition_responses} for topic in answer.responses]
        assert codes[0] == {ErrorCode.NONE}
        assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION in codes[1]
        assert codes[1] <= {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        await large.close()
        await other.close()


async def test_requests_of_a_connection_stay_in_order_behind_a_large_one() -> None:
    async with Broker(topics={"t": 200}) as broker:
        client = await RawClient.connect(broker)
        client.send(_request("t", count=200), 9)
        client.send(produce_request("t", batch([b"later"]), partition=199), 9)
        await client.receive(produce.ProduceResponse, 9, 1)
        answer = await client.receive(produce.ProduceResponse, 9, 2)
        assert answer.responses[0].partition_responses[0].base_offset == 1
        await client.close()


async def test_all_of_a_large_request_with_acks_0_is_written_before_an_error_closes_the_connection() -> None:
    async with Broker(topics={"t": 200}) as broker:
        client, reader = await RawClient.connect(broker), await RawClient.connect(broker)
        client.send(_request("missing", "t", count=200, acks=0), 9)
        assert await client.closed_by_broker()
        answer = await reader.ask(fetch_request("t", 0, partition=199), 12)
        assert values_of(answer.responses[0].partitions[0]) == [b"v"]
        await client.close()
        await reader.close()


async def test_a_large_request_of_a_client_that_left_is_written_whole() -> None:
    async with Broker(topics={"t": 1000}, journal=1000) as broker:
        client, reader = await RawClient.connect(broker), await RawClient.connect(broker)
        client.send(_request("t", count=1000), 9)
        await broker.journal.wait_for(lambda entry: entry.api is ApiKey.PRODUCE)
        client.writer.transport.abort()
        answer = await reader.ask(fetch_request("t", 0, partition=999, max_wait_ms=5000), 12)
        assert values_of(answer.responses[0].partitions[0]) == [b"v"]
        await reader.close()


async def test_a_broker_closes_between_the_slices_of_a_large_request() -> None:
    with anyio.fail_after(20):
        async with Broker(topics={"t": COUNT}, journal=1000) as broker:
            client = await RawClient.connect(broker)
            client.send(_request("t"), 9)
            await broker.journal.wait_for(lambda entry: entry.api is ApiKey.PRODUCE)
        assert await client.closed_by_broker()
        await client.close()
