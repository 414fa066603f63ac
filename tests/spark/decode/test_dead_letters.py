"""Undecodable records and the dead-letter topic: what a task sends, and when it fails."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import DataType, StringType

from aiokwire import Consumer, ConsumerRecord
from aiokwire.errors import ConfigurationError
from aiokwire.spark.decode.dead_letters import DeadLettersFailed
from aiokwire.spark.decode.options import Format
from aiokwire.spark.options import parse_source
from aiokwire.spark.source.batch import BatchReader
from aiokwire.types import TopicPartition
from tests.spark.conftest import Kafka, columns_of

pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("no_sessions")]


def reader(kafka: Kafka, topic: str, **options: str) -> BatchReader:
    named = {"kafka.bootstrap.servers": kafka.servers, "subscribe": topic, "value.format": "string"} | options
    parsed = parse_source(named, streaming=False)
    sides = [side for side, each in parsed.decoding.sides if each.format is Format.STRING]
    strings: dict[str, DataType] = dict.fromkeys(sides, StringType())
    return BatchReader(parsed, columns_of(parsed, **strings))


def rows(job: BatchReader) -> list[dict[str, Any]]:
    return [row for task in job.partitions() for batch in job.read(task) for row in batch.to_pylist()]


def records(kafka: Kafka, topic: str) -> list[ConsumerRecord[bytes, bytes]]:
    async def main() -> list[ConsumerRecord[bytes, bytes]]:
        async with Consumer(bootstrap_servers=kafka.servers, auto_offset_reset="earliest") as consumer:
            await consumer.assign([TopicPartition(topic, 0)])
            end = (await consumer.end_offsets([TopicPartition(topic, 0)]))[TopicPartition(topic, 0)]
            found: list[ConsumerRecord[bytes, bytes]] = []
            while len(found) < end:
                found += await consumer.getmany(timeout=1.0)
            return found

    return kafka.run(main)


def test_a_dead_letter_has_the_record_the_reason_and_its_coordinates(kafka: Kafka) -> None:
    topic, dead = kafka.topic(), kafka.topic()
    kafka.produce(topic, [b"good"], timestamp=1000)
    kafka.produce(topic, [b"\xff\xfe"], key=b"k", timestamp=2000, headers=[("trace", b"1"), ("none", None)])
    kafka.produce(topic, [b"better"], timestamp=3000)
    found = rows(reader(kafka, topic, deadLetterTopic=dead, columns="value"))
    assert found == [{"value": "good"}, {"value": None}, {"value": "better"}]
    (letter,) = records(kafka, dead)
    assert (letter.key, letter.value, letter.timestamp) == (b"k", b"\xff\xfe", 2000)
    headers = dict(letter.headers)
    assert list(headers)[:2] == ["trace", "none"]
    error = headers.pop("aiokwire.dead.error")
    assert error is not None
    assert b"invalid start byte" in error
    assert headers == {
        "trace": b"1",
        "none": None,
        "aiokwire.dead.topic": topic.encode(),
        "aiokwire.dead.partition": b"0",
        "aiokwire.dead.offset": b"1",
        "aiokwire.dead.side": b"value",
    }


def test_dropmalformed_drops_rows_with_an_undecodable_key_or_value(kafka: Kafka) -> None:
    topic, dead = kafka.topic(), kafka.topic()
    kafka.produce(topic, [b"a"], key=b"\xff")
    kafka.produce(topic, [None], key=b"k")
    options = {"key.format": "string", "deadLetterTopic": dead, "mode": "dropmalformed", "columns": "key,value"}
    assert rows(reader(kafka, topic, **options)) == [{"key": "k", "value": None}]
    (letter,) = records(kafka, dead)
    assert (letter.key, letter.value) == (b"\xff", b"a")
    assert dict(letter.headers)["aiokwire.dead.side"] == b"key"


def test_a_repeated_task_sends_its_dead_letters_again_with_the_same_coordinates(kafka: Kafka) -> None:
    topic, dead = kafka.topic(), kafka.topic()
    kafka.produce(topic, [b"\xff"] * 3)
    job = reader(kafka, topic, deadLetterTopic=dead)
    (task,) = job.partitions()
    for _ in range(2):
        assert sum(batch.num_rows for batch in job.read(task)) == 3
    offsets = [dict(letter.headers)["aiokwire.dead.offset"] for letter in records(kafka, dead)]
    assert sorted(offsets, key=str) == [b"0", b"0", b"1", b"1", b"2", b"2"]


def test_decodable_records_start_no_producer_and_send_no_dead_letter(kafka: Kafka) -> None:
    topic, dead = kafka.topic(), kafka.topic()
    kafka.produce(topic, [b"a"])
    assert len(rows(reader(kafka, topic, deadLetterTopic=dead))) == 1
    assert records(kafka, dead) == []


def test_a_missing_dead_letter_topic_is_named_before_the_query_starts(kafka: Kafka) -> None:
    topic = kafka.topic()
    with pytest.raises(ConfigurationError, match="topic 'nowhere' does not exist"):
        reader(kafka, topic, deadLetterTopic="nowhere", **{"kafka.default.api.timeout.ms": "200"}).partitions()


def test_a_task_fails_when_its_dead_letters_cannot_be_sent(kafka: Kafka) -> None:
    topic, dead = kafka.topic(), kafka.topic(1, **{"max.message.bytes": "200"})
    kafka.produce(topic, [b"fine", b"\xff" * 300])
    job = reader(kafka, topic, deadLetterTopic=dead)
    (task,) = job.partitions()
    message = (
        rf"1 undecodable record.* of {topic}, the first in \[0\] at offset 1, could not be sent to deadLetterTopic"
    )
    with pytest.raises(DeadLettersFailed, match=message):
        list(job.read(task))


def test_a_task_fails_when_its_dead_letter_topic_is_deleted(kafka: Kafka) -> None:
    topic, dead = kafka.topic(), kafka.topic()
    kafka.produce(topic, [b"\xff"])
    patience = {"kafka.default.api.timeout.ms": "400", "kafka.request.timeout.ms": "400"}
    job = reader(kafka, topic, deadLetterTopic=dead, **patience)
    (task,) = job.partitions()
    kafka.delete(dead)
    with pytest.raises(DeadLettersFailed, match="could not be sent"):
        list(job.read(task))
