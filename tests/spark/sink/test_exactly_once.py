"""Exactly-once: refused options, recognition of committed batches, and the sink's steps."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import StringType, StructType

from aiokwire import Consumer
from aiokwire.admin import Admin
from aiokwire.broker import Broker
from aiokwire.cluster import LATEST, Client
from aiokwire.errors import ConfigurationError, KafkaError, UnsupportedVersion
from aiokwire.group import GroupOffsets
from aiokwire.producer import TransactionTicket
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from aiokwire.spark.options import SinkOptions, parse_sink
from aiokwire.spark.sink import exactly_once as steps
from aiokwire.spark.sink.columns import sink_columns
from aiokwire.spark.sink.commit_messages import Whole
from aiokwire.spark.sink.exactly_once import BATCH_ID, QUERY_ID, Opened, Place, Plan, is_repeated, place_of, plan_of
from aiokwire.spark.sink.ledger import Entry
from aiokwire.spark.sink.writing import Joining, write
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition

TICKET = TransactionTicket("sink", 7, 3, transaction_v2=True)
COLUMNS = sink_columns(StructType().add("key", StringType()).add("value", StringType()), "t")


def options(**more: str) -> SinkOptions:
    given = {"kafka.bootstrap.servers": "localhost:1", "topic": "t", "delivery": "exactly-once"}
    return parse_sink({**given, **{name.replace("__", "."): value for name, value in more.items()}})


def context(properties: dict[str, str] | None = None, attempt: int = 0) -> TaskContext:
    """Create a context as Spark does for a task."""
    found = object.__new__(TaskContext)
    found.__dict__.update(_attemptNumber=attempt, _partitionId=3, _localProperties=properties or {})
    return found


def test_a_stream_is_identified_by_its_id_or_its_checkpoint() -> None:
    assert plan_of(options(sink__id="s"), streaming=True).ledger_group == "s.batches"
    first = plan_of(options(checkpointLocation="/a/b"), streaming=True)
    assert first == plan_of(options(checkpointLocation="/a/b/"), streaming=True)
    assert first != plan_of(options(checkpointLocation="/a/c"), streaming=True)
    assert first.config.transactional_id is not None
    assert first.config.transaction_timeout_ms == 900_000


def test_a_batch_job_is_identified_by_sink_and_run() -> None:
    plan = plan_of(options(sink__id="s", run__id="2026-11-21"), streaming=False)
    assert (plan.config.transactional_id, plan.ledger_group) == ("s", "s.run.2026-11-21")


@pytest.mark.parametrize(
    ("streaming", "given", "message"),
    [
        (True, {}, "needs a name that stays the same"),
        (True, {"sink__id": "s", "run__id": "r"}, "run.id belongs to df.write"),
        (False, {}, "needs the options sink.id"),
        (False, {"sink__id": "s"}, "needs the options sink.id"),
        (True, {"sink__id": "s", "kafka.acks": "1"}, "acks"),
    ],
)
def test_options_that_exactly_once_cannot_have_are_refused(
    streaming: bool, given: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        plan_of(options(**given), streaming=streaming)


def test_a_task_reads_its_batch_number_from_sparks_properties() -> None:
    given = context({BATCH_ID: "12", QUERY_ID: "q"})
    assert place_of(given, streaming=True) == Place(3, 12, "q")
    assert place_of(context(), streaming=False) == Place(3, None, "")


def test_a_missing_batch_number_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="did not set the batch number of this task"):
        place_of(context(), streaming=True)
    with pytest.raises(ConfigurationError, match="not run in a Spark task"):
        place_of(None, streaming=True)


def test_a_second_attempt_is_refused() -> None:
    with pytest.raises(KafkaError, match=r"task 3 is attempted again .*spark\.speculation must be false"):
        place_of(context({BATCH_ID: "12"}, attempt=1), streaming=True)


@pytest.mark.parametrize(
    ("last", "batch_id", "repeated"), [(None, 0, False), (4, 4, True), (4, 5, False), (4, 9, False)]
)
def test_the_ledger_decides_whether_a_batch_was_committed(last: int | None, batch_id: int, repeated: bool) -> None:
    plan = plan_of(options(sink__id="s"), streaming=True)
    known = None if last is None else Entry(last, "q")
    assert is_repeated(Opened(TICKET, known), Place(0, batch_id, "q"), plan) is repeated


@pytest.mark.parametrize("ledger", ["required", "begin"])
def test_a_checkpoint_older_than_the_ledger_is_refused(ledger: str) -> None:
    plan = plan_of(options(sink__id="s", ledger=ledger), streaming=True)
    with pytest.raises(ConfigurationError, match=r"batch 3, but batch 4 of this query is committed"):
        is_repeated(Opened(TICKET, Entry(4, "q")), Place(0, 3, "q"), plan)


@pytest.mark.parametrize("batch_id", [0, 4, 5])
def test_a_new_checkpoint_is_refused_unless_an_option_allows_it(batch_id: int) -> None:
    opened, place = Opened(TICKET, Entry(4, "q")), Place(0, batch_id, "new")
    with pytest.raises(ConfigurationError, match=r"of query new, .* belongs to query q, which wrote up to batch 4"):
        is_repeated(opened, place, plan_of(options(sink__id="s"), streaming=True))
    assert not is_repeated(opened, place, plan_of(options(sink__id="s", ledger="begin"), streaming=True))


def test_a_run_is_repeated_when_it_is_in_the_ledger() -> None:
    plan = plan_of(options(sink__id="s", run__id="r"), streaming=False)
    assert is_repeated(Opened(TICKET, Entry(0, "r")), Place(0, None, ""), plan)
    assert not is_repeated(Opened(TICKET, None), Place(0, None, ""), plan)


def test_a_missing_ledger_is_refused_unless_an_option_allows_it() -> None:
    opened, place = Opened(TICKET, None), Place(0, 8, "q")
    with pytest.raises(ConfigurationError, match=r"batch 8, .*'s\.batches', does not exist"):
        is_repeated(opened, place, plan_of(options(sink__id="s"), streaming=True))
    assert not is_repeated(opened, place, plan_of(options(sink__id="s", ledger="begin"), streaming=True))


# --- the steps --------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def sink(partitions: int = 2) -> AsyncIterator[tuple[Plan, str]]:
    async with Broker(topics={"t": partitions}, auto_create_topics=False) as broker:
        servers = broker.bootstrap_servers
        yield plan_of(options(kafka__bootstrap__servers=servers, sink__id="s"), streaming=True), servers


def frames(*values: str, key: str | None = None) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"key": pa.array([key] * len(values), pa.string()), "value": list(values)})


async def run_batch(plan: Plan, batch_id: int, *tasks: str) -> None:
    """Run one microbatch as Spark does; each task writes one row."""
    opened = await steps.open_transaction(plan)
    rows = 0
    places: set[TopicPartition] = set()
    for task, value in enumerate(tasks):
        if is_repeated(opened, Place(task, batch_id, "q"), plan):
            return
        tally = await write(frames(value), plan.config, COLUMNS, Joining(opened.ticket, task))
        rows += tally.rows
        places.update(TopicPartition(*place) for place in tally.counts)
    await steps.commit_transaction(plan, Whole(opened.ticket, rows, frozenset(places), "q"), batch_id)


async def committed(servers: str, count: int) -> list[bytes | None]:
    """Return the first values that a read_committed consumer reads, sorted."""
    async with Consumer(
        "t", bootstrap_servers=servers, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        found: list[bytes | None] = []
        while len(found) < count:
            found += [record.value for record in await consumer.getmany(timeout=10)]
        found += [record.value for record in await consumer.getmany(timeout=0.05)]
        return sorted(found, key=str)


async def test_batches_are_committed_with_their_numbers() -> None:
    async with sink() as (plan, servers):
        await run_batch(plan, 0, "a", "b")
        await run_batch(plan, 1, "c", "d")
        assert (await steps.open_transaction(plan)).last == Entry(1, "q")
        assert await committed(servers, 4) == [b"a", b"b", b"c", b"d"]


async def test_a_committed_batch_writes_nothing_when_it_is_repeated() -> None:
    async with sink() as (plan, servers):
        await run_batch(plan, 0, "a", "b")
        await run_batch(plan, 0, "other", "rows")
        await run_batch(plan, 1, "c")
        assert await committed(servers, 3) == [b"a", b"b", b"c"]


async def test_a_batch_left_open_is_aborted_when_it_is_repeated() -> None:
    async with sink() as (plan, servers):
        opened = await steps.open_transaction(plan)
        await write(frames("lost"), plan.config, COLUMNS, Joining(opened.ticket, 0))
        await run_batch(plan, 0, "kept")
        assert await committed(servers, 1) == [b"kept"]


async def test_a_failed_batch_is_aborted_immediately() -> None:
    async with sink() as (plan, servers):
        opened = await steps.open_transaction(plan)
        await write(frames("lost"), plan.config, COLUMNS, Joining(opened.ticket, 0))
        await steps.abort_transaction(plan, opened.ticket)
        await steps.abort_transaction(plan, None)
        await run_batch(plan, 0, "kept")
        assert await committed(servers, 1) == [b"kept"]


@pytest.mark.parametrize("topic", ["t", None])
async def test_an_empty_batch_is_in_the_ledger_whether_the_option_or_the_rows_name_the_topic(
    topic: str | None,
) -> None:
    async with sink() as (given, _):
        plan = dataclasses.replace(given, topic=topic)
        for batch_id in range(2):
            await run_batch(plan, batch_id)
            assert (await steps.open_transaction(plan)).last == Entry(batch_id, "q")


async def lag(servers: str, group: str) -> list[int]:
    """Return the lag of a group for each partition with a committed offset."""
    async with Admin(servers) as admin:
        committed = await admin.list_group_offsets(group)
        ends = await admin.list_offsets(dict.fromkeys(committed, LATEST))
    return [ends[tp].offset - place.offset for tp, place in committed.items()]


async def test_the_ledger_does_not_look_like_a_group_that_lags() -> None:
    """Lag tools reported the committed batch number as an ever growing lag."""
    async with sink() as (plan, servers):
        for batch_id in range(3):
            await run_batch(plan, batch_id, "a", "b")
            assert await lag(servers, "s.batches") == [0]
        await run_batch(plan, 3)  # no rows, no marker
        assert await lag(servers, "s.batches") == [0]


async def test_the_ledger_of_an_earlier_version_is_read_and_replaced() -> None:
    """It stored the batch number as the offset, and the query's id as the metadata."""
    async with sink() as (plan, servers):
        async with Client(plan.config) as client:
            old = {TopicPartition("t", 0): OffsetAndMetadata(4, metadata="q")}
            await GroupOffsets(client, "s.batches").commit(old, GroupMetadata("s.batches"), timeout=5)
        await run_batch(plan, 4, "repeated")
        with pytest.raises(ConfigurationError, match="batch 4 of this query is committed"):
            await run_batch(plan, 3, "older")
        await run_batch(plan, 5, "next")
        assert await committed(servers, 1) == [b"next"]
        assert (await steps.open_transaction(plan)).last == Entry(5, "q")
        assert await lag(servers, "s.batches") == [0]


async def test_the_ledger_is_found_after_the_sinks_topic_has_changed() -> None:
    async with sink() as (plan, _):
        await run_batch(plan, 0, "a")
        moved = dataclasses.replace(plan, topic=None)
        assert (await steps.open_transaction(moved)).last == Entry(0, "q")


async def test_brokers_that_do_not_report_pending_offset_commits_are_refused() -> None:
    newest = {ApiKey.API_VERSIONS: 3, ApiKey.METADATA: 9, ApiKey.FIND_COORDINATOR: 3, ApiKey.INIT_PRODUCER_ID: 2}
    ranges = [ApiVersion(api_key=api, max_version=last) for api, last in {**newest, ApiKey.OFFSET_FETCH: 6}.items()]
    async with Broker(topics={"t": 1}) as broker:
        broker.faults.on(ApiKey.API_VERSIONS, times=None).respond(ApiVersionsResponse(api_keys=ranges))
        given = options(kafka__bootstrap__servers=broker.bootstrap_servers, sink__id="s")
        with pytest.raises(UnsupportedVersion, match=r"needs Kafka 2\.5 or newer"):
            await steps.open_transaction(plan_of(given, streaming=True))


async def test_more_tasks_than_partitions_are_refused_for_rows_without_a_key() -> None:
    async with sink() as (plan, _):
        opened = await steps.open_transaction(plan)
        with pytest.raises(ConfigurationError, match=r"t has 2 partition\(s\), this is task 2.*coalesce\(2\)"):
            await write(frames("x"), plan.config, COLUMNS, Joining(opened.ticket, 2))


async def test_two_tasks_that_write_to_a_partition_are_refused() -> None:
    async with sink(1) as (plan, _):
        opened = await steps.open_transaction(plan)
        await write(frames("a", "b", key="k"), plan.config, COLUMNS, Joining(opened.ticket, 0))
        with pytest.raises(ConfigurationError, match=r"two tasks write to t\[0\].*one_owner"):
            await write(frames("a", "b", "c", key="k"), plan.config, COLUMNS, Joining(opened.ticket, 1))
