"""A task without Spark, on a log that retention shortened after planning, or that was truncated."""

from __future__ import annotations

import functools

import pytest

from aiokwire.cluster import Client, Node
from aiokwire.errors import InvalidArgument
from aiokwire.protocol.messages import delete_records
from aiokwire.spark.audit.tally import PartitionTally
from aiokwire.spark.audit.tasks import merge_all, tally_task
from aiokwire.spark.jobs.spark_session import ask
from aiokwire.spark.options import parse_source
from aiokwire.spark.source.batch import Task
from aiokwire.spark.source.fetching import LostData
from aiokwire.spark.source.planning import Range
from aiokwire.types import TopicPartition
from tests.spark.conftest import Kafka

pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("no_sessions")]


async def delete(client: Client, *, topic: str, before: int) -> None:
    await client.metadata.wait_for_topics({topic}, 10)
    leader = client.cluster.leader(TopicPartition(topic, 0))
    assert leader is not None
    partition = delete_records.DeleteRecordsPartition(partition_index=0, offset=before)
    request = delete_records.DeleteRecordsRequest(
        topics=[delete_records.DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=10_000
    )
    await client.request(request, to=Node(leader))


def test_records_deleted_by_retention_since_the_plan_are_counted_as_deleted(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [b"%d" % number for number in range(20)])
    named = {"kafka.bootstrap.servers": kafka.servers, "subscribe": topic}
    options = parse_source({**named, "kafka.isolation.level": "read_committed"}, streaming=False)
    ask(options.consumer, functools.partial(delete, topic=topic, before=8))
    task = Task((Range(topic, 0, 0, 5), Range(topic, 0, 5, 20)), {})
    tallies = tally_task(options, task)
    [whole] = merge_all(tallies, {TopicPartition(topic, 0): 0})
    assert whole.deleted.shown == [(0, 8)]
    assert (whole.records.count, whole.records.first, whole.missing.offsets) == (12, 8, 0)
    with pytest.raises(LostData, match="the log ends at 20"):
        tally_task(options, Task((Range(topic, 0, 25, 30),), {}))


def test_empty_partitions_are_part_of_the_result() -> None:
    parts = [PartitionTally("t", 0, 5, 9), PartitionTally("t", 0, 0, 5)]
    found = merge_all(parts, {TopicPartition("t", 0): 0, TopicPartition("t", 1): 7})
    assert [(each.partition, each.start, each.end) for each in found] == [(0, 0, 9), (1, 7, 7)]
    with pytest.raises(InvalidArgument):
        merge_all([PartitionTally("t", 0, 0, 5), PartitionTally("t", 0, 6, 9)], {})
