"""`AIOKafkaProducer` keeps what aiokafka documents."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import pytest
import pytest_asyncio

from aiokwire.broker import Broker
from aiokwire.compat.aiokafka import AIOKafkaConsumer, AIOKafkaProducer, IllegalOperation, TopicPartition
from aiokwire.compat.aiokafka.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    ProducerClosed,
    ProducerFenced,
    UnknownTopicOrPartitionError,
)
from aiokwire.compat.aiokafka.structs import RecordMetadata


@pytest_asyncio.fixture
async def producer(broker: Broker) -> AsyncIterator[AIOKafkaProducer]:
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        yield producer


async def read(broker: Broker, count: int, topic: str = "orders", **options: Any) -> list[Any]:
    """Return the first records of a topic."""
    address = broker.bootstrap_servers
    found: list[Any] = []
    async with AIOKafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest", **options) as consumer:
        with anyio.fail_after(20):
            while len(found) < count:
                found.append(await consumer.getone())
    return found


async def test_send_returns_a_future_of_the_metadata(producer: AIOKafkaProducer) -> None:
    assert inspect.iscoroutinefunction(producer.send)
    future = await producer.send("orders", b"paid", partition=1, timestamp_ms=123)
    assert isinstance(future, asyncio.Future)
    metadata = await future
    assert metadata == RecordMetadata("orders", 1, TopicPartition("orders", 1), 0, 123, 0, None)


async def test_futures_work_with_wait_and_callbacks(producer: AIOKafkaProducer) -> None:
    called: list[int] = []
    futures = [await producer.send("orders", b"%d" % index, partition=0) for index in range(5)]
    for future in futures:
        future.add_done_callback(lambda done: called.append(done.result().offset))
    done, pending = await asyncio.wait(futures)
    assert not pending
    assert sorted(future.result().offset for future in done) == [0, 1, 2, 3, 4]
    assert called == [0, 1, 2, 3, 4]


async def test_a_cancelled_future_does_not_stop_its_record(broker: Broker, producer: AIOKafkaProducer) -> None:
    future = await producer.send("orders", b"first", partition=0)
    future.cancel()
    assert (await producer.send_and_wait("orders", b"second", partition=0)).offset == 1  # type: ignore[union-attr]
    assert [record.value for record in await read(broker, 2)] == [b"first", b"second"]


async def test_serializers_headers_and_keys_arrive(broker: Broker) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap_servers,
        key_serializer=str.encode,
        value_serializer=lambda value: json.dumps(value).encode(),
        compression_type="gzip",
    ) as producer:
        await producer.send_and_wait("orders", {"id": 1}, key="a", headers=[("h", b"1")])
    (record,) = await read(broker, 1, value_deserializer=json.loads, key_deserializer=bytes.decode)
    assert (record.key, record.value, record.headers) == ("a", {"id": 1}, (("h", b"1"),))


async def test_wrong_types_and_places_are_refused(producer: AIOKafkaProducer) -> None:
    with pytest.raises(AssertionError):
        await producer.send("orders")
    with pytest.raises(TypeError, match="bytes"):
        await producer.send("orders", "text")
    with pytest.raises(AssertionError, match="no partition 7"):
        await producer.send("orders", b"x", partition=7)
    with pytest.raises(MessageSizeTooLargeError):
        await producer.send("orders", b"x" * 1_100_000)


@pytest.mark.parametrize(
    "options",
    [
        {"acks": 5},
        {"compression_type": "brotli"},
        {"acks": 1, "enable_idempotence": True},
        {"acks": 0, "transactional_id": "t"},
        {"security_protocol": "TLS"},
        {"security_protocol": "SSL"},
        {"security_protocol": "SASL_PLAINTEXT"},
        {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"},
    ],
)
def test_contradicting_options_are_value_errors(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        AIOKafkaProducer(**options)


async def test_deprecated_arguments_are_accepted(broker: Broker) -> None:
    with pytest.warns(DeprecationWarning, match="loop"):
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, loop=asyncio.get_running_loop())
    with pytest.warns(DeprecationWarning, match="api_version"):
        AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, api_version="auto")._closed = True
    await producer.start()
    await producer.stop()


async def test_a_start_without_a_broker_fails_at_once() -> None:
    producer = AIOKafkaProducer(bootstrap_servers="127.0.0.1:1")
    with pytest.raises(KafkaConnectionError):
        await producer.start()
    await producer.stop()


async def test_a_stopped_producer_refuses_records(producer: AIOKafkaProducer) -> None:
    future = await producer.send("orders", b"x")
    await producer.stop()
    assert future.done()
    with pytest.raises(ProducerClosed):
        await producer.send("orders", b"x")
    with pytest.raises(ProducerClosed):
        await producer.send("others", b"x")


async def test_a_missing_topic_is_reported_after_the_request_timeout() -> None:
    async with (
        Broker(auto_create_topics_enable=False) as broker,
        AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, request_timeout_ms=200) as producer,
    ):
        with pytest.raises(UnknownTopicOrPartitionError):
            await producer.send("missing", b"x")


async def test_without_acknowledgements_the_result_is_none(broker: Broker) -> None:
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, acks=0) as producer:
        assert await producer.send_and_wait("orders", b"x") is None


async def test_a_custom_partitioner_receives_key_and_partitions(broker: Broker) -> None:
    seen: list[tuple[Any, Sequence[int], Sequence[int]]] = []

    def choose(key: bytes | None, partitions: Sequence[int], available: Sequence[int]) -> int:
        seen.append((key, partitions, available))
        return partitions[-1]

    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, partitioner=choose) as producer:
        metadata = await producer.send_and_wait("orders", b"x", key=b"k")
    assert metadata is not None
    assert metadata.partition == 1
    assert seen == [(b"k", [0, 1], [0, 1])]


async def test_a_batch_is_sent_in_order_to_its_partition(broker: Broker, producer: AIOKafkaProducer) -> None:
    batch = producer.create_batch()
    for index in range(10):
        appended = batch.append(key=None, value=b"%d" % index, timestamp=1000 + index)
        assert appended is not None
        assert appended.offset == index
    assert (batch.record_count(), batch.closed()) == (10, False)
    metadata = await (await producer.send_batch(batch, "orders", partition=1))
    assert (metadata.partition, metadata.offset) == (1, 0)
    assert batch.append(key=None, value=b"late", timestamp=None) is None
    assert [record.value for record in await read(broker, 10)] == [b"%d" % index for index in range(10)]


async def test_a_full_batch_takes_no_more_records(broker: Broker) -> None:
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, max_batch_size=1000) as producer:
        batch = producer.create_batch()
        while batch.append(key=None, value=b"x" * 100, timestamp=None) is not None:
            assert batch.size() <= 1000
        assert batch.closed()
        with pytest.raises(TypeError):
            producer.create_batch().append(key=None, value="text", timestamp=None)


async def fail_in_a_transaction(producer: AIOKafkaProducer) -> None:
    async with producer.transaction():
        await producer.send("orders", b"failed", partition=0)
        raise ZeroDivisionError


async def test_committed_records_are_visible_and_aborted_ones_are_not(broker: Broker) -> None:
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="t") as producer:
        with pytest.raises(IllegalOperation):
            await producer.send("orders", b"outside")
        await producer.begin_transaction()
        with pytest.raises(AssertionError):
            await producer.begin_transaction()
        await producer.send("orders", b"aborted", partition=0)
        await producer.abort_transaction()
        with pytest.raises(ZeroDivisionError):
            await fail_in_a_transaction(producer)
        async with producer.transaction():
            await producer.send("input", b"created", partition=0)
            await producer.send("orders", b"committed", partition=0)
            await producer.send_offsets_to_transaction({TopicPartition("input", 0): (7, "m")}, "group")
        with pytest.raises(AssertionError):
            await producer.commit_transaction()
    (record,) = await read(broker, 1, isolation_level="read_committed")
    assert record.value == b"committed"
    async with AIOKafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="group") as consumer:
        assert await consumer.committed(TopicPartition("input", 0)) == 7


async def test_an_older_transactional_producer_is_fenced(broker: Broker) -> None:
    address = broker.bootstrap_servers
    async with AIOKafkaProducer(bootstrap_servers=address, transactional_id="t") as old:
        await old.begin_transaction()
        await (await old.send("orders", b"x"))
        async with AIOKafkaProducer(bootstrap_servers=address, transactional_id="t"):
            await old.send("orders", b"y")
            with pytest.raises(ProducerFenced):
                await old.commit_transaction()


async def test_transactions_need_a_transactional_id(producer: AIOKafkaProducer) -> None:
    for call in (producer.begin_transaction, producer.commit_transaction, producer.abort_transaction):
        with pytest.raises(IllegalOperation):
            await call()


async def test_partitions_for_returns_a_set(producer: AIOKafkaProducer) -> None:
    assert await producer.partitions_for("orders") == {0, 1}


async def test_an_unclosed_producer_is_reported(broker: Broker) -> None:
    producers = [AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)]
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
    with pytest.warns(ResourceWarning, match="Unclosed AIOKafkaProducer"):
        producers.clear()
    assert [context["message"] for context in reported] == ["Unclosed AIOKafkaProducer"]


async def test_nothing_is_sent_before_send_is_awaited(broker: Broker, producer: AIOKafkaProducer) -> None:
    await producer.send_and_wait("orders", b"first", partition=0)
    later = producer.send("orders", b"third", partition=0)
    await producer.send_and_wait("orders", b"second", partition=0)
    await (await later)
    assert [record.value for record in await read(broker, 3)] == [b"first", b"second", b"third"]
    dropped = [producer.send("orders", b"fourth")]
    with pytest.warns(RuntimeWarning, match="never awaited"):
        dropped.clear()


async def test_send_works_from_another_thread(producer: AIOKafkaProducer) -> None:
    await producer.send_and_wait("orders", b"first", partition=0)
    loop = asyncio.get_running_loop()

    def send() -> Any:
        return asyncio.run_coroutine_threadsafe(producer.send_and_wait("orders", b"second", partition=0), loop).result(
            9
        )

    assert (await asyncio.to_thread(send)).offset == 1
    future = await asyncio.wrap_future(
        asyncio.run_coroutine_threadsafe(producer.send("orders", b"third", partition=0), loop)
    )
    assert (await future).offset == 2


async def test_callbacks_receive_the_future_and_can_be_removed(producer: AIOKafkaProducer) -> None:
    await producer.send_and_wait("orders", b"first", partition=0)
    future = await producer.send("orders", b"second", partition=0)
    seen: list[object] = []
    future.add_done_callback(seen.append)
    future.add_done_callback(print)
    assert future.remove_done_callback(print) == 1
    await asyncio.wait_for(future, 9)  # noqa: TID251 - programs call it
    assert seen[0] is future
    for done in asyncio.as_completed([await producer.send("orders", b"%d" % index) for index in range(3)]):
        assert (await done).topic == "orders"
    found = await asyncio.gather(*[await producer.send("orders", b"x", partition=1) for _ in range(3)])  # noqa: TID251
    assert len({metadata.offset for metadata in found}) == 3


async def test_a_send_that_a_tool_replaces_later_is_used(
    producer: AIOKafkaProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await producer.send_and_wait("orders", b"first")
    original, seen = AIOKafkaProducer.send, []

    async def traced(self: AIOKafkaProducer, topic: str, *given: Any) -> Any:
        seen.append(topic)
        return await original(self, topic, *given)

    monkeypatch.setattr(AIOKafkaProducer, "send", traced)
    await (await producer.send("orders", b"second"))
    assert seen == ["orders"]


async def test_an_overridden_send_calls_the_one_of_the_class(broker: Broker) -> None:
    class Upper(AIOKafkaProducer):
        async def send(self, topic: str, value: Any = None, *given: Any, **named: Any) -> Any:
            return await super().send(topic, value.upper(), *given, **named)

    async with Upper(bootstrap_servers=broker.bootstrap_servers) as producer:
        await producer.send_and_wait("orders", b"paid")
    (record,) = await read(broker, 1)
    assert record.value == b"PAID"


async def test_records_that_wait_for_the_loop_keep_their_order(broker: Broker, producer: AIOKafkaProducer) -> None:
    values = [b"%06d" % index + b"x" * 2_000 for index in range(1_000)]  # the loop turns several times
    futures = [await producer.send("orders", value, partition=0) for value in values]
    assert [(await future).offset for future in futures] == list(range(1_000))
    assert [record.value for record in await read(broker, 1_000)] == values


async def test_a_failed_record_raises_on_every_way_of_reading_it() -> None:
    async with Broker(num_partitions=1) as broker:
        address = broker.bootstrap_servers
        producer = AIOKafkaProducer(bootstrap_servers=address, request_timeout_ms=300)
        await producer.start()
        await producer.send_and_wait("orders", b"first")
    late = await producer.send("orders", b"late")
    with pytest.raises(KafkaTimeoutError):
        await late
    assert late.done()
    assert not late.cancelled()
    assert isinstance(late.exception(), KafkaTimeoutError)
    with pytest.raises(KafkaTimeoutError):
        late.result()
    await producer.stop()


async def test_tools_learn_the_partition_of_a_record_before_it_is_sent(
    broker: Broker, producer: AIOKafkaProducer
) -> None:
    await producer.partitions_for("orders")
    for number in range(20):
        key = b"%d" % number
        expected = producer._partition("orders", None, None, None, key, b"")
        metadata = await producer.send_and_wait("orders", b"", key)
        assert metadata is not None
        assert metadata.partition == expected
    assert producer._partition("orders", 1, None, None, b"key", b"") == 1
    assert producer._partition("orders", None, None, None, None, b"") is None, "it is chosen with the batch"
    with pytest.raises(AssertionError, match="'orders' has no partition 7"):
        producer._partition("orders", 7, None, None, b"key", b"")
    async with AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap_servers, partitioner=lambda key, partitions, available: max(partitions)
    ) as other:
        await other.partitions_for("orders")
        assert other._partition("orders", None, None, None, None, b"") == 1


async def test_tools_read_the_address_and_the_client_id(broker: Broker, producer: AIOKafkaProducer) -> None:
    assert producer.client._bootstrap_servers == [broker.bootstrap_servers]
    assert producer.client._client_id.startswith("aiokafka-producer-")
