"""Record and DeserializedRecord as values."""

from __future__ import annotations

import copy
import gc
import pickle

import pytest

from aiokwire.records import DeserializedRecord, Record
from aiokwire.types import TimestampType

RECORD = Record("t", 2, 5, 99, b"k", b"v", [("h", b"x"), ("n", None)], leader_epoch=4)


def test_a_record_has_its_fields_and_a_text() -> None:
    assert RECORD.headers == (("h", b"x"), ("n", None))
    assert RECORD.timestamp_type is TimestampType.CREATE_TIME
    assert repr(RECORD).startswith("Record(topic='t', partition=2, offset=5, timestamp=99, key=b'k', value=b'v'")


def test_records_are_equal_by_content() -> None:
    assert pickle.loads(pickle.dumps(RECORD)) == RECORD == copy.deepcopy(RECORD)
    assert hash(Record("t", 2, 5)) == hash(RECORD)
    assert Record("t", 2, 5) != RECORD
    assert RECORD != "record"


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        RECORD.value = b"other"  # type: ignore[misc]  # wrong on purpose


def test_records_stay_out_of_the_garbage_collector() -> None:
    assert not gc.is_tracked(RECORD)


def test_a_deserialized_record_holds_any_objects() -> None:
    record = DeserializedRecord(RECORD, {"key": 1}, ["value"])
    assert (record.topic, record.partition, record.offset, record.timestamp) == ("t", 2, 5, 99)
    assert (record.key, record.value, record.headers, record.leader_epoch) == ({"key": 1}, ["value"], RECORD.headers, 4)
    assert record.timestamp_type is TimestampType.CREATE_TIME
    assert pickle.loads(pickle.dumps(record)) == record
    assert record != DeserializedRecord(RECORD, None, None)
    assert gc.is_tracked(record)


def test_a_cycle_through_a_deserialized_record_is_collected() -> None:
    value: list[object] = []
    value.append(DeserializedRecord(RECORD, None, value))
    gc.collect()
    del value
    assert gc.collect() > 0
