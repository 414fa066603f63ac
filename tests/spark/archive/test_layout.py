"""The directories and file names of an archive's records."""

from __future__ import annotations

import dataclasses

import pytest

from aiokwire.errors import ConfigurationError
from aiokwire.spark.archive.layout import (
    DAY,
    END_OF_TIME,
    HOUR,
    Layout,
    file_name,
    is_data,
    is_temporary,
    temporary,
)
from aiokwire.types import TopicPartition

DAILY = Layout(False, "offset bigint", "read_committed")
HOURLY = dataclasses.replace(DAILY, hourly=True)
ORDERS = TopicPartition("orders", 3)
MORNING = 20_000 * DAY + 9 * HOUR + 1


def test_a_record_is_filed_by_its_topic_date_and_partition() -> None:
    assert DAILY.folder(ORDERS, DAILY.slot(MORNING)) == "topic=orders/date=2024-10-04/partition=3"
    assert HOURLY.folder(ORDERS, HOURLY.slot(MORNING)) == "topic=orders/date=2024-10-04/hour=9/partition=3"


def test_midnight_belongs_to_the_day_that_it_begins() -> None:
    assert DAILY.slot(DAY - 1) == 0
    assert DAILY.slot(DAY) == 1


@pytest.mark.parametrize("timestamp", [-1, -DAY, END_OF_TIME, 1_763_000_000_000_000])
def test_a_time_without_a_date_is_filed_as_null(timestamp: int) -> None:
    null = "__HIVE_DEFAULT_PARTITION__"
    assert DAILY.folder(ORDERS, DAILY.slot(timestamp)) == f"topic=orders/date={null}/partition=3"
    assert HOURLY.folder(ORDERS, HOURLY.slot(timestamp)) == f"topic=orders/date={null}/hour={null}/partition=3"


def test_the_last_day_of_all_has_a_date() -> None:
    assert "date=9999-12-31" in DAILY.folder(ORDERS, DAILY.slot(END_OF_TIME - 1))
    assert DAILY.slot_end == DAILY.slot(END_OF_TIME - 1) + 1


def test_the_offsets_are_in_the_name() -> None:
    assert file_name(ORDERS, 5, 1234) == "orders-3-00000000000000000005-00000000000000001234.parquet"


@pytest.mark.parametrize("topic", ["_schemas", ".hidden"])
def test_no_topic_gets_a_directory_that_readers_ignore(topic: str) -> None:
    path = f"{DAILY.folder(TopicPartition(topic, 0), 0)}/{file_name(TopicPartition(topic, 0), 0, 1)}"
    assert is_data(path)


def test_readers_ignore_an_uncommitted_file() -> None:
    path = f"{DAILY.folder(ORDERS, 0)}/{file_name(ORDERS, 0, 1)}"
    assert is_data(path)
    assert not is_temporary(path)
    hidden = temporary(path, "run-7")
    assert is_temporary(hidden)
    assert not is_data(hidden)
    assert hidden.rpartition("/")[0] == path.rpartition("/")[0]
    assert not is_data("_manifests/x.parquet")


def test_an_archive_that_was_started_with_other_options_is_refused() -> None:
    DAILY.check({}, "lake")
    DAILY.check(DAILY.to_json(), "lake")
    with pytest.raises(ConfigurationError, match="lake was created with hourly False, not True"):
        HOURLY.check(DAILY.to_json(), "lake")
