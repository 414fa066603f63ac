"""Batch reads of Spark from the embedded broker."""

from __future__ import annotations

import datetime

import pytest

from aiokwire.spark import compat
from tests.spark.conftest import Kafka, Reads

pytestmark = pytest.mark.timeout(240)


def test_rows_have_the_columns_of_spark_sql_kafka(kafka: Kafka, read: Reads) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [b"paid", None], key=b"42", timestamp=1_700_000_000_123)
    frame = read(topic)
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    time = datetime.datetime(2023, 11, 14, 22, 13, 20, 123_000)
    assert [tuple(row) for row in frame.collect()] == [
        (b"42", b"paid", topic, 0, 0, time, 0),
        (b"42", None, topic, 0, 1, time, 0),
    ]


@pytest.mark.skipif(not compat.HAS_FILTERS, reason="filters are pushed down from PySpark 4.1 on")
def test_filters_and_columns_of_a_query_narrow_the_read(kafka: Kafka, read: Reads) -> None:
    topic = kafka.topic(2)
    for partition in (0, 1):
        kafka.produce(topic, [b"%d" % number for number in range(10)], partition=partition)
    everything = read(topic, pushdown="true")
    chosen = everything.where("partition = 1 and offset >= 3 and offset < 6").select("offset", "value")
    assert [tuple(row) for row in chosen.collect()] == [(3, b"3"), (4, b"4"), (5, b"5")]
    assert everything.where(f"topic = '{topic}x'").count() == 0
    assert everything.where("timestamp > timestamp'2001-01-01 00:00:00'").count() == 20


def test_values_are_decoded_and_undecodable_bytes_are_kept(kafka: Kafka, read: Reads) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [b'{"id":1,"at":"2026-01-02T03:04:05Z","tags":["a"]}', b"{", None], headers=[("h", b"1")])
    options = {
        "value.format": "json",
        "value.schema": "id int, at timestamp, tags array<string>",
        "columns": "offset,value",
        "includeHeaders": "true",
        "columnNameOfCorruptRecord": "_bad",
    }
    rows = read(topic, **options).select("offset", "value.*", "headers.key", "_bad").collect()
    at = datetime.datetime(2026, 1, 2, 3, 4, 5)
    assert [tuple(row) for row in rows] == [
        (0, 1, at, ["a"], ["h"], None),
        (1, None, None, None, ["h"], b"{"),
        (2, None, None, None, ["h"], None),
    ]


def test_a_limit_ends_the_tasks_early(kafka: Kafka, read: Reads) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [b"x" * 100] * 20_000)
    frame = read(topic, kafka__max__partition__fetch__bytes="100000")
    assert len(frame.limit(5).collect()) == 5
    assert frame.count() == 20_000


def test_an_empty_topic_has_no_rows(kafka: Kafka, read: Reads) -> None:
    assert read(kafka.topic()).collect() == []
