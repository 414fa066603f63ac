"""The journal: its contents, its queries, and its bounds."""

from __future__ import annotations

import pytest

from aiokwire.broker import Broker
from aiokwire.errors import InvalidArgument
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import metadata, produce
from tests.broker.raw import RawClient, batch, produce_one, produce_request


async def test_a_broker_keeps_a_journal_only_if_configured(broker: Broker) -> None:
    with pytest.raises(InvalidArgument, match=r"journal=1000"):
        broker.journal  # noqa: B018 - the property raises


async def test_requests_are_kept_as_they_came() -> None:
    async with Broker(topics={"t": 1}, journal=10) as broker:
        client = await RawClient.connect(broker)
        sent = batch([b"a", b"b"])
        await produce_one(client, "t", batch([b"before"]))
        await produce_one(client, "t", sent)
        (_, entry) = broker.journal.of(ApiKey.PRODUCE)
        assert (entry.api, entry.version, entry.node, entry.client_id) == (ApiKey.PRODUCE, 9, 1, "raw")
        assert entry.connection == 1
        (_, request) = broker.journal.requests(produce.ProduceRequest)
        assert bytes(request.topic_data[0].partition_data[0].records or b"") == sent, "without the broker's stamps"
        assert broker.journal.requests(metadata.MetadataRequest) == []
        broker.journal.clear()
        assert len(broker.journal) == 0
        await client.close()


async def test_the_oldest_requests_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Broker(topics={"t": 1}, journal=3) as broker:
        client = await RawClient.connect(broker)
        for acks in (1, -1, 1, -1, -1):
            await produce_one(client, "t", batch([b"x"]), acks=acks)
        assert [request.acks for request in broker.journal.requests(produce.ProduceRequest)] == [1, -1, -1]
        monkeypatch.setattr("aiokwire.broker.faults.journal.MAX_BYTES", 1000)
        for _ in range(3):
            await produce_one(client, "t", batch([b"x" * 600]))
        assert len(broker.journal) == 1
        await client.close()


async def test_a_test_may_wait_for_a_request() -> None:
    async with Broker(topics={"t": 1}, journal=10) as broker:
        client = await RawClient.connect(broker)
        client.send(produce_request("t", batch([b"a"])), 9)
        (entry,) = await broker.journal.wait_for(lambda entry: entry.api == ApiKey.PRODUCE)
        assert isinstance(entry.request, produce.ProduceRequest)
        with pytest.raises(TimeoutError, match="PRODUCE@1"):
            await broker.journal.wait_for(lambda entry: entry.api == ApiKey.FETCH, 0.01)
        await client.close()
