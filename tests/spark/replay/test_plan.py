"""The plan of a replay: records, rounds and times, decided without Spark or a broker."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pyarrow as pa
import pytest

from aiokwire.errors import ConfigurationError
from aiokwire.spark.archive.manifest import Archive, DataFile
from aiokwire.spark.replay.plan import Resumed, Selection, State, Timeline, check_replayable, resume, shares
from aiokwire.spark.source.planning import Range
from aiokwire.types import TopicPartition

ORDERS = TopicPartition("orders", 0)


def data(
    first: int, last: int, *, partition: int = 0, topic: str = "orders", times: tuple[int, int] = (0, 9)
) -> DataFile:
    return DataFile(topic, partition, first, last, f"{topic}-{partition}-{first}", last - first + 1, 1, *times, 0)


def archive_of(*files: DataFile) -> Archive:
    return Archive(1, 1, files, tuple(Range(*file.tp, file.first, file.last + 1) for file in files))


FILES = archive_of(data(0, 9, times=(0, 99)), data(10, 19, times=(100, 199)), data(0, 4, topic="other"))


def test_a_whole_archive_is_replayed_by_default() -> None:
    everything = Selection()
    assert everything.files(FILES) == list(FILES.files)
    assert everything.bounds(FILES.files) == (
        {ORDERS: 0, TopicPartition("other", 0): 0},
        {ORDERS: 20, TopicPartition("other", 0): 5},
    )


def test_files_without_a_selected_record_are_skipped() -> None:
    assert [file.first for file in Selection(("orders",), since=100).files(FILES)] == [10]
    assert [file.first for file in Selection(("orders",), until=100).files(FILES)] == [0]
    late = Selection.of(["orders"], start='{"orders":{"0":12}}', end='{"orders":{"0":15}}')
    assert [file.first for file in late.files(FILES)] == [10]
    assert late.bounds(late.files(FILES)) == ({ORDERS: 12}, {ORDERS: 15})
    with pytest.raises(ConfigurationError, match="no topic 'payments', only orders, other"):
        Selection(("payments",)).files(FILES)


def test_decoded_values_cannot_be_replayed() -> None:
    check_replayable({"schema": "`key` binary, `value` string, `offset` bigint"})
    with pytest.raises(ConfigurationError, match="has value as struct<n int>"):
        check_replayable({"schema": "`key` binary, `value` struct<n int>, `offset` bigint"})


def test_a_partition_has_one_writer_if_partitions_are_kept() -> None:
    files = [data(0, 9), data(0, 9, partition=1), data(0, 9, topic="other")]
    ranges = [Range(*file.tp, 0, 10) for file in files]
    found = shares(ranges, files, keep_partitions=True, exactly_once=True, tasks=4)
    assert [[str(whole.tp) for whole, _ in share.sources] for share in found] == [
        ["orders[0]", "other[0]"],
        ["orders[1]"],
    ]
    assert {share.owns for share in found} == {None}


def test_when_keys_choose_partitions_tasks_own_partitions_or_read_their_own() -> None:
    files = [data(0, 9), data(0, 9, partition=1)]
    ranges = [Range(*file.tp, 0, 10) for file in files]
    owners = shares(ranges, files, keep_partitions=False, exactly_once=True, tasks=3)
    assert [share.owns for share in owners] == [(0, 3), (1, 3), (2, 3)]
    assert all(len(share.sources) == 2 for share in owners)
    free = shares(ranges, files, keep_partitions=False, exactly_once=False, tasks=3)
    assert [len(share.sources) for share in free] == [1, 1]


def test_offsets_without_files_make_no_task() -> None:
    for keep in (True, False):
        assert (
            shares([Range("orders", 0, 10, 20)], [data(0, 9)], keep_partitions=keep, exactly_once=True, tasks=2) == []
        )


# --- when -----------------------------------------------------------------------------------------------------------


def line_of(times: list[int], *, size: int = 2, since: int | None = None, until: int | None = None) -> Timeline:
    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(times), size):
            part = times[start : start + size]
            stamps = pa.array([time * 1000 for time in part], pa.timestamp("us", "UTC"))
            offsets = pa.array(range(start, start + len(part)), pa.int64())
            yield pa.RecordBatch.from_arrays([offsets, stamps], names=["offset", "timestamp"])

    return Timeline(batches(), len(times), since, until)


def test_records_are_due_at_their_times() -> None:
    line = line_of([100, 200, 200, 300, 400])
    assert line.first == 100
    assert [line.until(time) for time in (99, 100, 199, 250, 300, 1000, 2000)] == [0, 1, 1, 3, 4, 5, 5]


def test_a_record_does_not_overtake_those_before_it() -> None:
    line = line_of([300, 100, 200, 400])
    assert [line.until(time) for time in (299, 300, 400)] == [0, 3, 4]


def test_records_without_a_timestamp_and_skipped_records_do_not_wait() -> None:
    line = line_of([-1, 50, 100, 900, 200], since=60, until=500)
    assert line.first == 100
    assert [line.until(time) for time in (0, 99, 100, 200)] == [2, 2, 4, 5]
    assert line_of([-1, -1]).first is None
    assert line_of([-1, -1]).until(0) == 2


# --- how far --------------------------------------------------------------------------------------------------------

STATE = State("replay-1", 3, {ORDERS: 10}, {ORDERS: 20}, {ORDERS: 50}, False, {"topic": "orders"})


def test_a_checkpoint_is_read_as_it_was_written() -> None:
    assert State.decode(STATE.encode(), "x") == STATE
    for text in (b"", b"{}", b"[]", b'{"start":1}'):
        with pytest.raises(ConfigurationError, match="x is not a checkpoint of a replay"):
            State.decode(text, "x")


def test_a_replay_that_was_started_with_other_options_is_refused() -> None:
    STATE.check({"topic": "orders"}, "x")
    with pytest.raises(ConfigurationError, match="was started with topic 'orders', not 'other'"):
        STATE.check({"topic": "other"}, "x")


def test_a_finished_round_is_not_repeated() -> None:
    next_one = Resumed(4, {ORDERS: 20}, None)
    done = dataclasses.replace(STATE, done=True)
    assert resume(done, None, exactly_once=True) == next_one
    assert resume(done, None, exactly_once=False) == next_one
    assert resume(STATE, 3, exactly_once=True) == next_one


def test_an_unfinished_round_is_repeated() -> None:
    again = Resumed(3, {ORDERS: 10}, {ORDERS: 20})
    assert resume(STATE, 2, exactly_once=True) == again
    assert resume(STATE, None, exactly_once=False) == again
    first = dataclasses.replace(STATE, number=0)
    assert resume(first, None, exactly_once=True).repeat == {ORDERS: 20}


def test_without_its_ledger_a_later_round_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="it is unknown whether round 3 of the replay was written"):
        resume(STATE, None, exactly_once=True)
