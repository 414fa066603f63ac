"""Traces with OpenTelemetry's SDK and the embedded broker: parents, links, attributes, errors."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import anyio
import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.semconv._incubating.attributes import messaging_attributes as messaging
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.semconv.schemas import Schemas
from opentelemetry.trace import SpanKind, StatusCode

from aiokwire.broker import Broker
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BufferFullError, DeliveryFailed, InvalidArgument, KafkaError
from aiokwire.hooks import Hooks, combined_hooks
from aiokwire.producer import Producer
from aiokwire.protocol import ApiKey
from aiokwire.records import Record
from aiokwire.telemetry import Tracing, conventions
from aiokwire.telemetry.tracing import MAX_LINKS, key_text
from tests.telemetry.conftest import Spans, consumer, producer


async def settled() -> None:
    """Let callbacks of acknowledged records run."""
    for _ in range(3):
        await anyio.lowlevel.checkpoint()


# --- one trace --------------------------------------------------------------------------------------------------------


async def test_a_record_that_is_sent_on_belongs_to_one_trace(
    kafka_broker: Broker, spans: Spans, tracing: Tracing
) -> None:
    async with (
        producer(kafka_broker, tracing) as sender,
        consumer(kafka_broker, tracing, "orders") as orders,
        consumer(kafka_broker, tracing, "invoices", group_id="mail") as invoices,
    ):
        with spans.tracer.start_as_current_span("POST /orders"):
            await sender.send("orders", b"book", key=b"42")
        async for record in orders:
            await sender.send("invoices", record.value, key=record.key)
            break
        async for _record in invoices:
            break
    flow = ["POST /orders", "send orders", "process orders", "send invoices", "process invoices"]
    found = [spans.one(name) for name in flow]
    assert len({span.context.trace_id for span in found}) == 1
    assert [spans.parent(span) for span in found] == [None, *found[:-1]]
    assert spans.linked(found[2]) == {"send orders"}


@pytest.mark.parametrize("way", ["async for", "streams", "getone", "getmany", "a list", "traced", "batches"])
async def test_every_way_of_reading_makes_the_sender_the_parent(
    kafka_broker: Broker, spans: Spans, tracing: Tracing, way: str
) -> None:
    async with producer(kafka_broker, tracing) as sender:
        await sender.send("orders", b"book")
    seen: list[trace.Span] = []
    hooks = None if way == "traced" else tracing
    async with consumer(kafka_broker, hooks, "orders") as orders:
        if way == "async for":
            async for _record in orders:
                seen.append(trace.get_current_span())
                break
        elif way == "streams":
            (stream,) = orders.streams(1)
            async for _record in stream:
                seen.append(trace.get_current_span())
                break
        elif way == "traced":
            async for _record in tracing.traced(orders):
                seen.append(trace.get_current_span())
                break
        elif way == "batches":
            async for batch in orders.batches():
                seen += [trace.get_current_span() for _record in tracing.traced(batch.records())]
                break
        elif way == "getone":
            with tracing.process(await orders.getone()):
                seen.append(trace.get_current_span())
        elif way == "getmany":
            for record in await orders.getmany():
                with tracing.process(record):
                    seen.append(trace.get_current_span())
        else:
            seen += [trace.get_current_span() for _record in tracing.traced(await orders.getmany())]
        assert not trace.get_current_span().get_span_context().is_valid, "the span is current in the loop only"
    process = spans.one("process orders")
    assert [span.get_span_context() for span in seen] == [process.context]
    assert spans.parent(process) is spans.one("send orders")


async def test_a_span_that_is_current_where_a_record_is_processed_is_the_parent_and_the_sender_linked(
    kafka_broker: Broker, spans: Spans, tracing: Tracing
) -> None:
    async with producer(kafka_broker, tracing) as sender, consumer(kafka_broker, tracing, "orders") as orders:
        await sender.send("orders", b"book")
        record = await orders.getone()
        with spans.tracer.start_as_current_span("job"), tracing.process(record):
            pass
        with spans.tracer.start_as_current_span("job"), Tracing(spans.provider, parent="record").process(record):
            pass
    inside, beside = spans.named("process orders")
    assert spans.parent(inside) is spans.named("job")[0]
    assert spans.linked(inside) == {"send orders"}
    assert spans.parent(beside) is spans.one("send orders")
    assert spans.linked(beside) == {"send orders", "job"}


async def test_a_span_of_the_application_can_have_the_sender_as_its_parent(
    kafka_broker: Broker, spans: Spans, tracing: Tracing
) -> None:
    async with producer(kafka_broker, tracing) as sender, consumer(kafka_broker, None, "orders") as orders:
        await sender.send("orders", b"book")
        record = await orders.getone()
    with spans.tracer.start_as_current_span("bill", context=tracing.context_of(record)):
        pass
    assert spans.parent(spans.one("bill")) is spans.one("send orders")
    with spans.tracer.start_as_current_span("job"):
        here = trace.get_current_span(tracing.context_of(Record("t", 0, 0)))
        assert here is trace.get_current_span(), "a record without a context has that of its reader"


async def test_baggage_of_the_sender_reaches_the_next_consumer(
    kafka_broker: Broker, spans: Spans, tracing: Tracing
) -> None:
    async with producer(kafka_broker, tracing) as sender, consumer(kafka_broker, tracing, "orders") as orders:
        token = context.attach(baggage.set_baggage("tenant", "acme"))
        try:
            await sender.send("orders", b"book")
        finally:
            context.detach(token)
        async for _record in orders:
            assert baggage.get_baggage("tenant") == "acme"
            break
        assert baggage.get_baggage("tenant") is None


# --- sending ----------------------------------------------------------------------------------------------------------


async def test_a_send_span_ends_when_the_record_is_acknowledged(
    kafka_broker: Broker, spans: Spans, tracing: Tracing
) -> None:
    async with producer(kafka_broker, tracing) as sender:
        await sender.partitions_for("orders")
        hold = kafka_broker.faults.on(ApiKey.PRODUCE).hold()
        delivery = sender.submit_nowait("orders", b"book")
        await hold.arrived()
        assert spans.all == []
        hold.release()
        assert (await delivery).offset == 0
        await settled()
        span = spans.one("send orders")
        assert span.attributes is not None
        assert span.attributes[conventions.OFFSET] == 0
        assert span.status.status_code is StatusCode.UNSET


@pytest.mark.parametrize("way", ["send", "submit", "submit_nowait"])
async def test_a_failed_record_ends_its_span_with_the_error(
    kafka_broker: Broker, spans: Spans, tracing: Tracing, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    kafka_broker.faults.on(ApiKey.PRODUCE).error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    async with producer(kafka_broker, tracing) as sender:
        if way == "send":
            with pytest.raises(KafkaError):
                await sender.send("orders", b"book")
        elif way == "submit":
            await sender.submit("orders", b"book")
        else:
            sender.submit_nowait("orders", b"book")
        with anyio.fail_after(10):
            await sender.flush()
            while not spans.all:
                await anyio.lowlevel.checkpoint()
    span = spans.one("send orders")
    assert span.attributes is not None
    assert span.attributes[conventions.ERROR_TYPE] == "TOPIC_AUTHORIZATION_FAILED"
    assert span.status.status_code is StatusCode.ERROR
    lost = [each for each in caplog.records if "never awaited" in each.getMessage()]
    assert len(lost) == (way != "send"), "the span does not count as awaiting the delivery"


async def test_a_refused_record_ends_its_span_with_the_error(
    kafka_broker: Broker, spans: Spans, tracing: Tracing
) -> None:
    async with producer(kafka_broker, tracing) as sender:
        for way in (sender.send, sender.submit, sender.submit_nowait):
            with pytest.raises(InvalidArgument):
                await way("orders", b"book", partition=-1)
    refused = spans.named("send orders")
    assert [span.attributes and span.attributes[conventions.ERROR_TYPE] for span in refused] == ["InvalidArgument"] * 3


async def test_the_span_of_a_record_that_waits_for_room_ends_however_it_leaves_the_line(
    kafka_broker: Broker, spans: Spans, tracing: Tracing
) -> None:
    big = bytes(3500)
    async with producer(kafka_broker, tracing, buffer_memory=5024, max_request_size=4000, batch_size=1024) as sender:
        await sender.partitions_for("orders")
        hold = kafka_broker.faults.on(ApiKey.PRODUCE).hold()
        first = sender.submit_nowait("orders", big)
        await hold.arrived()
        with pytest.raises(BufferFullError):
            sender.submit_nowait("orders", big)
        withdrawn = sender.submit("orders", big)
        queued = sender.submit("orders", big)
        async with anyio.create_task_group() as group:
            group.start_soon(sender.send, "orders", big)
            await settled()
            with pytest.raises(asyncio.CancelledError):
                withdrawn.throw(asyncio.CancelledError())
            hold.release()
        await (await queued)
        await first
        await settled()
    kinds = [span.attributes and span.attributes.get(conventions.ERROR_TYPE) for span in spans.named("send orders")]
    assert sorted(map(str, kinds)) == ["BufferFullError", "CancelledError", "None", "None", "None"]


async def test_the_spans_that_wait_for_acknowledgements_are_bounded(kafka_broker: Broker, spans: Spans) -> None:
    async with producer(kafka_broker, Tracing(spans.provider, max_pending=3)) as sender:
        await sender.partitions_for("orders")
        hold = kafka_broker.faults.on(ApiKey.PRODUCE).hold()
        for _ in range(10):
            sender.submit_nowait("orders", b"book")
        await hold.arrived()
        assert len(spans.all) == 7
        hold.release()
        await sender.flush()
        await settled()
    assert len(spans.named("send orders")) == 10


async def test_records_of_one_call_have_one_span_and_its_context(
    kafka_broker: Broker, spans: Spans, tracing: Tracing
) -> None:
    async with producer(kafka_broker, tracing) as sender, consumer(kafka_broker, tracing, "orders") as orders:
        await sender.send_many("orders", [b"a", b"b", b"c"])
        records = await orders.getmany(timeout=5)
        for _record in tracing.traced(records):
            pass
    span = spans.one("send orders")
    assert span.attributes is not None
    assert span.attributes[conventions.BATCH_COUNT] == 3
    assert [spans.parent(each) for each in spans.named("process orders")] == [span] * len(records)


async def test_a_call_with_failed_records_has_an_error_in_its_span(
    kafka_broker: Broker, spans: Spans, tracing: Tracing
) -> None:
    kafka_broker.faults.on(ApiKey.PRODUCE).error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    async with producer(kafka_broker, tracing) as sender:
        result = await sender.send_many("orders", [b"a", b"b"])
        assert result.failed == 2
        with pytest.raises(InvalidArgument):
            await sender.send_many("orders", [("a", "tuple")])  # type: ignore[list-item]
    failed, refused = spans.named("send orders")
    assert failed.status.description is not None
    assert failed.status.description.startswith("2 of 2 records failed; the first: ")
    assert refused.attributes is not None
    assert refused.attributes[conventions.ERROR_TYPE] == "InvalidArgument"


async def test_copied_headers_carry_the_context_of_the_last_sender_only(
    kafka_broker: Broker, spans: Spans, tracing: Tracing
) -> None:
    async with (
        producer(kafka_broker, tracing) as sender,
        consumer(kafka_broker, None, "orders") as orders,
        consumer(kafka_broker, None, "copies", group_id="copies") as copies,
    ):
        await sender.send("orders", b"book", headers=[("own", b"1"), ("tracestate", b"vendor=old")])
        first = await orders.getone()
        await sender.send("copies", first.value, headers=first.headers)
        second = await copies.getone()
    assert [name for name, _ in second.headers] == ["own", "traceparent"]
    copied = spans.one("send copies")
    assert spans.linked(copied) == {"send orders"}
    sender_of_copy = trace.get_current_span(tracing.context_of(second)).get_span_context()
    assert sender_of_copy.span_id == copied.context.span_id


async def test_a_trace_that_is_not_sampled_is_propagated_but_not_recorded(kafka_broker: Broker) -> None:
    tracing = Tracing(TracerProvider(sampler=ALWAYS_OFF))
    async with producer(kafka_broker, tracing) as sender, consumer(kafka_broker, tracing, "orders") as orders:
        await sender.send("orders", b"book")
        await sender.send_many("orders", [b"lamp"])
        async for record in orders:
            assert dict(record.headers)["traceparent"][-2:] in {b"00", b"02"}, "not sampled"  # type: ignore[index]
            break


async def test_without_a_provider_records_are_sent_and_read_without_headers(kafka_broker: Broker) -> None:
    tracing = Tracing(trace.NoOpTracerProvider())
    async with producer(kafka_broker, tracing) as sender, consumer(kafka_broker, tracing, "orders") as orders:
        await sender.send("orders", b"book")
        async for record in orders:
            assert record.headers == ()
            break


# --- reading and committing -------------------------------------------------------------------------------------------


async def test_a_call_that_reads_records_links_to_their_senders(
    kafka_broker: Broker, spans: Spans, tracing: Tracing
) -> None:
    topics = ("orders", "refunds")
    async with producer(kafka_broker, tracing) as sender, consumer(kafka_broker, tracing, *topics) as reader:
        for topic in topics:
            await sender.send(topic, b"a")
        read: list[Any] = []
        while len(read) < 2:
            read += await reader.getmany(timeout=5)
    polls = [span for span in spans.all if span.name.startswith("poll")]
    assert set().union(*map(spans.linked, polls)) == {"send orders", "send refunds"}
    assert all(span.kind is SpanKind.CLIENT and span.parent is None for span in polls)


async def test_an_empty_read_has_no_span(kafka_broker: Broker, spans: Spans, tracing: Tracing) -> None:
    async with consumer(kafka_broker, tracing, "orders") as orders:
        assert await orders.getmany(timeout=0) == []
    assert spans.all == []


async def test_the_links_of_a_span_are_bounded(kafka_broker: Broker, spans: Spans, tracing: Tracing) -> None:
    async with producer(kafka_broker, tracing) as sender, consumer(kafka_broker, tracing, "orders") as orders:
        for _ in range(MAX_LINKS + 10):
            sender.submit_nowait("orders", b"a")
        await sender.flush()
        records: list[Any] = []
        while len(records) < MAX_LINKS + 10:
            records += await orders.getmany(timeout=5)
        with tracing.process(records):
            pass
    span = spans.one("process orders")
    assert len(span.links) == MAX_LINKS
    assert span.attributes is not None
    assert span.attributes[conventions.BATCH_COUNT] == MAX_LINKS + 10


async def test_a_commit_is_a_child_of_the_caller_and_an_automatic_one_a_root(
    kafka_broker: Broker, spans: Spans, tracing: Tracing
) -> None:
    async with producer(kafka_broker, tracing) as sender:
        await sender.send("orders", b"a")
        await sender.send("orders", b"b")
    with spans.tracer.start_as_current_span("start"):
        orders = consumer(kafka_broker, tracing, "orders")
        reader = await orders.__aenter__()
    async for record in reader:
        await reader.commit(record)
        break
    reader.ack(await reader.getone())
    await orders.__aexit__(None, None, None)
    asked, last = spans.named("commit orders")
    assert spans.parent(asked) is spans.one("process orders")
    assert asked.attributes is not None
    assert asked.attributes[conventions.OFFSET] == 0
    assert last.parent is None


async def test_a_failed_commit_has_the_error_in_its_span(kafka_broker: Broker, spans: Spans, tracing: Tracing) -> None:
    async with producer(kafka_broker, tracing) as sender, consumer(kafka_broker, tracing, "orders") as orders:
        await sender.send("orders", b"a")
        record = await orders.getone()
        kafka_broker.faults.on(ApiKey.OFFSET_COMMIT).error(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        with pytest.raises(KafkaError):
            await orders.commit(record)
        kafka_broker.faults.clear_rules()
    span = spans.named("commit orders")[0]
    assert span.attributes is not None
    assert span.attributes[conventions.ERROR_TYPE] == "GROUP_AUTHORIZATION_FAILED"


# --- processing -------------------------------------------------------------------------------------------------------


def record_of(topic: str = "orders", offset: int = 0) -> Record:
    return Record(topic, 0, offset)


async def records_of(*offsets: int) -> Any:
    for offset in offsets:
        yield record_of(offset=offset)


async def test_an_exception_that_leaves_the_block_is_recorded(spans: Spans, tracing: Tracing) -> None:
    with pytest.raises(ValueError, match="no price"), tracing.process(record_of()):
        raise ValueError("no price")
    span = spans.one("process orders")
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes is not None
    assert span.attributes[conventions.ERROR_TYPE] == "ValueError"
    assert [event.name for event in span.events] == ["exception"]


async def test_a_block_in_a_traced_loop_uses_the_span_of_the_iteration(spans: Spans, tracing: Tracing) -> None:
    async for record in tracing.traced(records_of(0, 1)):
        if record.offset == 0:
            with tracing.process(record) as span:
                assert span is trace.get_current_span()
        else:
            with pytest.raises(ValueError, match="no"), tracing.process(record):
                raise ValueError("no")
    good, bad = spans.named("process orders")
    assert (good.status.status_code, bad.status.status_code) == (StatusCode.UNSET, StatusCode.ERROR)


async def test_a_loop_that_is_left_by_an_exception_ends_its_span(spans: Spans, tracing: Tracing) -> None:
    async def run() -> None:
        async for _record in tracing.traced(records_of(0, 1)):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no") as caught:
        await run()
    caught.value.__traceback__ = None
    assert len(spans.named("process orders")) == 1
    assert not trace.get_current_span().get_span_context().is_valid


async def test_a_loop_can_be_continued_and_dropped_in_other_tasks(
    spans: Spans, tracing: Tracing, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    records = [tracing.traced(records_of(0, 1, 2))]

    async def step() -> None:
        await anext(records[0])
        assert trace.get_current_span().get_span_context().is_valid

    for _ in range(3):
        async with anyio.create_task_group() as group:
            group.start_soon(step)
    assert not trace.get_current_span().get_span_context().is_valid
    records.clear()
    assert len(spans.named("process orders")) == 3
    assert [each.getMessage() for each in caplog.records if "detach" in each.getMessage()] == []


async def test_handlers_that_run_at_the_same_time_have_their_own_spans(spans: Spans, tracing: Tracing) -> None:
    async def handle(offset: int, before: anyio.Event, after: anyio.Event) -> None:
        with tracing.process(record_of(offset=offset)) as span:
            after.set()
            await before.wait()
            assert trace.get_current_span() is span

    first, second = anyio.Event(), anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(handle, 1, first, second)
        group.start_soon(handle, 2, second, first)
    assert len(spans.named("process orders")) == 2


def test_a_header_that_cannot_be_read_is_ignored(spans: Spans, tracing: Tracing) -> None:
    for value in (b"\xff\xfe", b"", b"00-zz-1-01", None, b"0" * 10_000):
        with tracing.process(Record("orders", 0, 0, headers=[("traceparent", value), ("baggage", value)])):
            pass
    assert all(span.parent is None and not span.links for span in spans.all)
    assert len(spans.all) == 5


# --- names ------------------------------------------------------------------------------------------------------------


async def test_names_and_attributes_are_those_of_the_semantic_conventions(
    kafka_broker: Broker, spans: Spans, tracing: Tracing
) -> None:
    async with producer(kafka_broker, tracing) as sender, consumer(kafka_broker, tracing, "orders") as orders:
        await sender.send("orders", None, key=b"42")
        with tracing.process(await orders.getone()):
            await orders.commit()
    place = {
        messaging.MESSAGING_SYSTEM: messaging.MessagingSystemValues.KAFKA.value,
        messaging.MESSAGING_DESTINATION_NAME: "orders",
        messaging.MESSAGING_DESTINATION_PARTITION_ID: "0",
        messaging.MESSAGING_KAFKA_OFFSET: 0,
    }
    record = {messaging.MESSAGING_KAFKA_MESSAGE_KEY: "42", messaging.MESSAGING_KAFKA_MESSAGE_TOMBSTONE: True}
    reader = {messaging.MESSAGING_CLIENT_ID: "biller", messaging.MESSAGING_CONSUMER_GROUP_NAME: "billing"}
    kinds = messaging.MessagingOperationTypeValues
    expected: dict[str, tuple[SpanKind, Any, dict[str, Any]]] = {
        "send": (SpanKind.PRODUCER, kinds.SEND, record | {messaging.MESSAGING_CLIENT_ID: "shop"}),
        "poll": (SpanKind.CLIENT, kinds.RECEIVE, record | reader),
        "process": (SpanKind.CONSUMER, kinds.PROCESS, record),
        "commit": (SpanKind.CLIENT, kinds.SETTLE, reader),
    }
    for name, (kind, operation, more) in expected.items():
        span = spans.one(f"{name} orders")
        assert span.kind is kind
        assert dict(span.attributes or {}) == place | more | {
            messaging.MESSAGING_OPERATION_NAME: name,
            messaging.MESSAGING_OPERATION_TYPE: operation.value,
        }
        assert span.instrumentation_scope is not None
        assert span.instrumentation_scope.schema_url == conventions.SCHEMA_URL


def test_every_constant_is_in_the_package_of_the_conventions() -> None:
    ours = {value for name, value in vars(conventions).items() if name.isupper() and isinstance(value, str)}
    known = {value for name, value in vars(messaging).items() if name.startswith("MESSAGING_")}
    known |= {each.value for kind in vars(messaging).values() if hasattr(kind, "__members__") for each in kind}
    known |= {error_attributes.ERROR_TYPE} | {each.value for each in Schemas}
    # The operation names are Kafka's own, as in the examples of the conventions.
    assert ours - known == {conventions.POLL, conventions.COMMIT}


@pytest.mark.parametrize(
    ("key", "text"),
    [
        *((b"42", "42"), ("a", "a"), (7, "7")),
        *((each, None) for each in (b"\xff", True, 1.5, b"x" * 300, b"\n")),
    ],
)
def test_a_key_without_a_canonical_text_is_left_out(key: object, text: str | None) -> None:
    assert key_text(key) == text


# --- without tracing --------------------------------------------------------------------------------------------------


async def test_without_hooks_nothing_is_added_to_the_way_of_a_record(kafka_broker: Broker) -> None:
    async with producer(kafka_broker, None) as sender, consumer(kafka_broker, None, "orders") as orders:
        assert sender.submit == sender._accumulator.submit, "the compiled method"
        assert type(aiter(orders)).__name__ == "Feed"
        assert type(orders._reader).__name__ == "Reader"
        await sender.send("orders", b"a")
        assert (await orders.getone()).headers == ()


class Sticker(Hooks):
    """Adds a header, and fails at everything else."""

    def on_send(self, topic: str, partition: Any, key: Any, value: Any, headers: Any) -> Any:
        return [*(headers or ()), ("sticker", b"1")]

    def on_accepted(self, headers: Any, delivery: Any) -> None:
        raise ValueError("on_accepted")

    def around_send_many(self, topic: str) -> Any:
        raise ValueError("around_send_many")

    def on_read(self, records: Any, elapsed: float) -> None:
        raise ValueError("on_read")


async def test_tracing_works_beside_other_hooks(kafka_broker: Broker, spans: Spans, tracing: Tracing) -> None:
    both: Any = combined_hooks(Sticker(), tracing)
    async with producer(kafka_broker, both) as sender, consumer(kafka_broker, both, "orders") as orders:
        await sender.send("orders", b"a")
        await sender.send_many("orders", [b"b"])
        async for record in orders:
            assert {name for name, _ in record.headers} == {"sticker", "traceparent"}
            break
        await orders.getone()
        await orders.commit()
    assert {span.name for span in spans.all} == {"send orders", "process orders", "poll orders", "commit orders"}
    assert len(spans.named("send orders")) == 2


async def test_a_record_that_is_purged_or_undelivered_ends_its_span(
    kafka_broker: Broker, spans: Spans, tracing: Tracing
) -> None:
    sender = Producer(kafka_broker.bootstrap_servers, hooks=tracing, linger_ms=10_000)
    await sender.start()
    purged = sender.submit_nowait("orders", b"a")
    sender.purge()
    with pytest.raises(DeliveryFailed):
        await purged
    cancelled = sender.submit_nowait("orders", b"b")
    assert cancelled.cancel()
    with pytest.raises(DeliveryFailed):
        await cancelled
    await sender.close()
    kinds = [span.attributes and span.attributes[conventions.ERROR_TYPE] for span in spans.named("send orders")]
    assert kinds == ["DeliveryFailed", "DeliveryFailed"]
