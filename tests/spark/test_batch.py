"""Batch reads through Spark itself, from the embedded broker."""

from __future__ import annotations

import datetime

import pytest

from tests.spark.conftest import Kafka, Reads

pytestmark = pytest.mark.timeout(120)


def test_rows_have_the_columns_of_sparks_own_source(kafka: Kafka, read: Reads) -> None:
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
