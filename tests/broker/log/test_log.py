"""One partition's log: append, read, roll, look up, flush, truncate."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from aiokwire.broker.log import LogManager, MemoryStorage, PartitionLog, Storage
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, InvalidArgument, OffsetOutOfRange, StorageError
from aiokwire.records import read_batches
from tests.broker.logs import first_at, flush

NOW = 1_700_000_000_000
MakeBatch = Callable[..., bytearray]
OpenLog = Callable[..., PartitionLog]


def offsets(data: bytes) -> list[int]:
    return [record.offset for batch in read_batches(data, "orders", 0) for record in batch.records()]


def test_an_append_gets_the_next_offsets_and_reads_back(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    first = log.append(make_batch(3, value=b"a"), now_ms=NOW, leader_epoch=0)
    second = log.append(memoryview(make_batch(2, value=b"b")), now_ms=NOW)
    assert first == (0, 2, -1, 0, False)
    assert (second.base_offset, second.last_offset) == (3, 4)
    assert (log.end_offset, log.high_watermark, log.last_stable_offset) == (5, 5, 5)
    found = log.read(0, 1 << 20)
    assert found.upper_bound == 5
    batches = read_batches(found.data, "orders", 0, check_crcs=True)
    assert [(record.offset, record.value) for batch in batches for record in batch.records()] == [
        (0, b"a"), (1, b"a"), (2, b"a"), (3, b"b"), (4, b"b"),
    ]  # fmt: skip


def test_several_batches_in_one_append_follow_each_other(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    log.append(make_batch(2) + make_batch(3), now_ms=NOW, leader_epoch=4)
    assert offsets(log.read(0, 1 << 20).data) == [0, 1, 2, 3, 4]
    assert [batch.leader_epoch for batch in read_batches(log.read(0, 1 << 20).data, "", 0)] == [4, 4]


def test_an_append_of_nothing_is_an_invalid_argument(open_log: OpenLog) -> None:
    with pytest.raises(InvalidArgument):
        open_log().append(bytearray(), now_ms=NOW)


def test_log_append_time_replaces_the_timestamps(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    info = log.append(make_batch(2, timestamp=5), now_ms=NOW, log_append_time=NOW)
    assert info.log_append_time == NOW
    [batch] = read_batches(log.read(0, 1 << 20).data, "orders", 0, check_crcs=True)
    assert {record.timestamp for record in batch.records()} == {NOW}
    found = first_at(log, None)
    assert found is not None
    assert found.timestamp == NOW


def test_an_offset_inside_a_batch_gives_the_whole_batch(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    for _ in range(3):
        log.append(make_batch(10), now_ms=NOW)
    assert offsets(log.read(15, 1 << 20).data)[0] == 10


def test_the_first_batch_comes_whole_even_when_it_is_larger_than_asked(
    open_log: OpenLog, make_batch: MakeBatch
) -> None:
    log = open_log()
    batch = make_batch(10)
    log.append(batch, now_ms=NOW)
    assert len(log.read(0, 1).data) == len(batch)
    assert log.read(0, 1, min_one=False).data == b""
    assert len(log.read(0, len(batch), min_one=False).data) == len(batch)


def test_a_read_is_limited_and_may_cut_its_last_batch(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    size = len(make_batch(1))
    for _ in range(10):
        log.append(make_batch(1), now_ms=NOW)
    data = log.read(0, 3 * size + 5).data
    assert len(data) == 3 * size + 5
    assert offsets(data) == [0, 1, 2]


def test_a_limited_read_ends_at_a_batch_where_the_index_knows_one(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    batch = make_batch(1, value=b"x" * 5000)
    for _ in range(10):
        log.append(batch, now_ms=NOW)
    found = log.read(1, 3 * len(batch) + 999)
    assert len(found.data) == 3 * len(batch)
    assert offsets(found.data) == [1, 2, 3]
    assert found.upper_bound == 5  # the next indexed batch ends there: above every offset that was read


def test_a_read_stops_below_the_last_stable_offset(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    for _ in range(5):
        log.append(make_batch(2), now_ms=NOW)
    assert offsets(log.read(0, 1 << 20, upto=6).data) == [0, 1, 2, 3, 4, 5]
    assert log.read(6, 1 << 20, upto=6).data == b""
    assert log.read(8, 1 << 20, upto=6).data == b""


def test_reads_outside_of_the_log_are_out_of_range(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    log.append(make_batch(5), now_ms=NOW)
    assert log.read(5, 100).data == b""
    with pytest.raises(OffsetOutOfRange, match="0 to 5"):
        log.read(6, 100)
    log.delete_records(2)
    with pytest.raises(OffsetOutOfRange) as caught:
        log.read(1, 100)
    assert (caught.value.topic, caught.value.partition, caught.value.offset) == ("orders", 0, 1)
    assert offsets(log.read(2, 100).data)[0] == 0  # the batch that holds it, whole


# --- roll -------------------------------------------------------------------------------------------------------------


def test_the_log_rolls_when_a_segment_is_full(open_log: OpenLog, make_batch: MakeBatch) -> None:
    size = len(make_batch(2))
    log = open_log(segment_bytes=3 * size)
    for _ in range(7):
        log.append(make_batch(2), now_ms=NOW)
    assert log.segment_offsets == (0, 6, 12)
    read: list[int] = []
    while (position := read[-1] + 1 if read else 0) < log.end_offset:
        read += offsets(log.read(position, 1 << 20).data)
    assert read == list(range(14))


def test_an_append_larger_than_a_segment_is_refused(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log(segment_bytes=100)
    with pytest.raises(BrokerError, match=r"segment\.bytes is 100") as caught:
        log.append(make_batch(1, value=bytes(100)), now_ms=NOW)
    assert caught.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.end_offset == 0


def test_the_log_rolls_by_the_records_time(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log(segment_ms=1000)
    for timestamp in (NOW, NOW + 1000, NOW + 1001, NOW + 1500):
        log.append(make_batch(1, timestamp=timestamp), now_ms=NOW)
    assert log.segment_offsets == (0, 2)


def test_the_log_rolls_by_the_clock_where_records_have_no_time(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log(segment_ms=1000)
    log.append(make_batch(1, timestamp=-1), now_ms=NOW)
    log.append(make_batch(1, timestamp=-1), now_ms=NOW + 1000)
    log.append(make_batch(1, timestamp=-1), now_ms=NOW + 1001)
    assert log.segment_offsets == (0, 2)


def test_the_log_rolls_when_an_index_is_full(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log(segment_index_bytes=24, index_interval_bytes=0)
    for _ in range(5):  # the first batch of a segment is not indexed, the next three fill the index
        log.append(make_batch(1, timestamp=-1), now_ms=NOW)
    assert log.segment_offsets == (0, 4)


def test_the_time_index_keeps_one_slot_for_its_last_entry(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log(segment_index_bytes=24, index_interval_bytes=0, segment_ms=1 << 60)
    for i in range(3):
        log.append(make_batch(1, timestamp=NOW + i), now_ms=NOW)
    assert log.segment_offsets == (0, 2)


def test_the_log_rolls_before_relative_offsets_overflow(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    for _ in range(2):  # batches that stand for 1.5 billion offsets each, as compaction may leave them
        batch = make_batch(1)
        struct.pack_into(">i", batch, 23, 1_500_000_000 - 1)
        log.append(batch, now_ms=NOW)
    assert log.segment_offsets == (0, 1_500_000_000)


def test_a_roll_of_an_empty_segment_changes_nothing(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    log.roll(NOW)
    assert list(log.segment_offsets) == [0]
    log.append(make_batch(1), now_ms=NOW)
    log.roll(NOW)
    log.roll(NOW)
    assert list(log.segment_offsets) == [0, 1]


# --- what is on disk --------------------------------------------------------------------------------------------------


def test_index_files_follow_kafkas_rules(
    storage: Storage, open_manager: Callable[..., LogManager], make_batch: MakeBatch
) -> None:
    """An entry when over index.interval.bytes lie behind the last: last offset, batch start."""
    manager = open_manager(storage)
    log = manager.create("orders", 0, bytes(16), NOW)
    size = len(make_batch(2, value=bytes(3000)))
    for i in range(4):
        log.append(make_batch(2, value=bytes(3000), timestamp=NOW + 10 * (i % 3)), now_ms=NOW)
    manager.close(NOW)
    name = "orders-0/00000000000000000000"
    assert storage.read(name + ".index") == struct.pack(">iiiiii", 3, size, 5, 2 * size, 7, 3 * size)
    assert storage.read(name + ".timeindex") == struct.pack(">qiqi", NOW + 10, 3, NOW + 20, 5)
    assert storage.read("orders-0/partition.metadata") == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"
    assert storage.read("orders-0/leader-epoch-checkpoint") == b"0\n1\n0 0\n"
    assert storage.read("orders-0/00000000000000000008.snapshot") is not None
    assert storage.read(name + ".txnindex") is None


def test_sealed_segments_are_read_again_after_their_handles_were_given_back(
    open_log: OpenLog, make_batch: MakeBatch
) -> None:
    log = open_log(segment_bytes=400, index_interval_bytes=0)
    for i in range(30):
        log.append(make_batch(1, timestamp=NOW + i), now_ms=NOW)
    log.release_idle()
    assert offsets(log.read(3, 80).data) == [3]
    found = first_at(log, NOW + 4)
    assert found is not None
    assert found.offset == 4


# --- lookups by time --------------------------------------------------------------------------------------------------


def test_a_timestamp_finds_the_first_record_at_or_after_it(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log(segment_bytes=800, index_interval_bytes=0)
    for i in range(20):
        log.append(make_batch(10, timestamp=NOW + 100 * i, step=10), now_ms=NOW, leader_epoch=3)
    assert len(log.segment_offsets) > 2
    for target in range(-5, 2000, 7):
        found = first_at(log, NOW + target)
        if target > 1990:
            assert found is None
        else:
            expected = max(-(-target // 10), 0)
            assert found == (expected, NOW + 10 * expected, 3)
    assert first_at(log, NOW + 1991) is None
    assert first_at(log, None) == (199, NOW + 1990, 3)


def test_timestamps_out_of_order_are_found(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log(index_interval_bytes=0, segment_bytes=300)
    for timestamp in (50, 90, 10, 20, 95, 30):
        log.append(make_batch(1, timestamp=timestamp), now_ms=NOW)
    assert first_at(log, 60) == (1, 90, 0)
    assert first_at(log, 91) == (4, 95, 0)
    assert first_at(log, None) == (4, 95, 0)


def test_records_below_the_logs_start_are_not_found_by_time(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    log.append(make_batch(10, timestamp=100, step=1), now_ms=NOW)
    log.delete_records(5)
    assert first_at(log, 0) == (5, 105, 0)
    log.delete_records(-1)
    assert first_at(log, 0) is None
    assert first_at(log, None) is None


def test_an_empty_log_has_no_times(open_log: OpenLog) -> None:
    log = open_log()
    assert first_at(log, 0) is None
    assert first_at(log, None) is None


# --- transactions -----------------------------------------------------------------------------------------------------


def test_an_open_transaction_holds_the_last_stable_offset(
    open_log: OpenLog, make_batch: MakeBatch, make_marker: MakeBatch
) -> None:
    log = open_log()
    log.append(make_batch(2), now_ms=NOW)
    log.append(make_batch(3, attributes=0x10, producer_id=7, epoch=0, sequence=0), now_ms=NOW)
    log.append(make_batch(1, attributes=0x10, producer_id=8, epoch=0, sequence=0), now_ms=NOW)
    assert log.last_stable_offset == 2
    log.append(make_marker(7, 0, commit=False), now_ms=NOW, from_client=False)
    assert log.last_stable_offset == 5
    log.append(make_marker(8, 0, commit=True), now_ms=NOW, from_client=False)
    assert log.last_stable_offset == log.end_offset == 8
    assert log.aborted_transactions(0, 8) == [(7, 2, 6, 5)]
    assert log.aborted_transactions(0, 2) == []
    assert log.aborted_transactions(7, 8) == []


def test_a_marker_without_a_transaction_changes_nothing(open_log: OpenLog, make_marker: MakeBatch) -> None:
    log = open_log()
    log.append(make_marker(7, 0, commit=False), now_ms=NOW, from_client=False)
    assert log.aborted_transactions(0, 1) == []
    assert log.last_stable_offset == 1


# --- idempotence ------------------------------------------------------------------------------------------------------


def test_a_retried_batch_gets_the_response_of_the_first_attempt(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    log.append(make_batch(5), now_ms=NOW)
    first = log.append(make_batch(3, producer_id=7, epoch=0, sequence=0), now_ms=NOW)
    again = log.append(make_batch(3, producer_id=7, epoch=0, sequence=0), now_ms=NOW)
    assert again == (first.base_offset, first.last_offset, NOW, 0, True)
    assert log.end_offset == 8


def test_a_gap_in_the_sequence_is_refused_and_nothing_is_appended(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    log.append(make_batch(3, producer_id=7, epoch=0, sequence=0), now_ms=NOW)
    with pytest.raises(BrokerError) as caught:
        log.append(make_batch(3, producer_id=7, epoch=0, sequence=4), now_ms=NOW)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.end_offset == 3


# --- flush ------------------------------------------------------------------------------------------------------------


def test_a_flush_moves_the_recovery_point(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log(flush_messages=5)
    log.append(make_batch(3), now_ms=NOW)
    assert (log.recovery_point, log.unflushed, log.flush_needed) == (0, 3, False)
    log.append(make_batch(3), now_ms=NOW)
    assert log.flush_needed
    work = log.prepare_flush(NOW)
    assert work is not None
    work.run()
    log.append(make_batch(3), now_ms=NOW)  # while the flush was under way
    work.finish()
    assert (log.recovery_point, log.unflushed, log.flush_needed) == (6, 3, False)


def test_a_flushed_log_has_nothing_to_flush(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    assert log.prepare_flush(NOW) is None
    log.append(make_batch(1), now_ms=NOW)
    flush(log, NOW)
    assert log.prepare_flush(NOW) is None


def test_a_flush_before_a_truncation_does_not_move_the_recovery_point(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    for _ in range(3):
        log.append(make_batch(1), now_ms=NOW)
    work = log.prepare_flush(NOW)
    assert work is not None
    work.run()
    log.truncate_to(1)
    log.append(make_batch(2), now_ms=NOW)
    work.finish()
    assert log.recovery_point == 0


class WornStorage(MemoryStorage):
    """A medium that takes writes, and fails to flush them while `is_failing`."""

    is_failing = False

    def sync(self, path: str) -> None:
        if self.is_failing:
            raise StorageError(f"cannot flush {path}: Input/output error")
        super().sync(path)


def test_a_flush_that_fails_is_still_due(open_manager: Callable[..., LogManager], make_batch: MakeBatch) -> None:
    storage = WornStorage()
    manager = open_manager(storage)
    log = manager.create("orders", 0, bytes(16), NOW)
    log.append(make_batch(1), now_ms=NOW)
    log.roll(NOW)
    [work] = manager.flush_due(NOW)
    storage.is_failing = True
    with pytest.raises(StorageError, match="cannot flush"):
        work.run()
    storage.is_failing = False
    assert log.recovery_point == 0
    [work] = manager.flush_due(NOW)
    work.do()
    assert log.recovery_point == 1
    assert storage.files["orders-0/00000000000000000000.log"].synced > 0


# --- truncate ---------------------------------------------------------------------------------------------------------


def test_a_truncation_forgets_segments_epochs_and_producers(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log(segment_bytes=400)
    for i in range(20):
        log.append(make_batch(1, producer_id=7, epoch=0, sequence=i), now_ms=NOW, leader_epoch=i // 5)
    log.truncate_to(7)
    assert log.end_offset == 7
    assert log.leader_epochs.entries == [(0, 0), (1, 5)]
    assert offsets(log.read(6, 1000).data) == [6]
    info = log.append(make_batch(1, producer_id=7, epoch=0, sequence=7), now_ms=NOW, leader_epoch=9)
    assert info.base_offset == 7
    log.truncate_to(100)
    assert log.end_offset == 8


def test_a_truncation_inside_a_batch_takes_the_whole_batch(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    log.append(make_batch(5), now_ms=NOW)
    log.append(make_batch(5), now_ms=NOW)
    log.truncate_to(7)
    assert log.end_offset == 5


# --- a full disk ------------------------------------------------------------------------------------------------------


def test_a_full_disk_refuses_the_append_and_loses_nothing(
    open_manager: Callable[..., LogManager], make_batch: MakeBatch
) -> None:
    storage = MemoryStorage()
    log = open_manager(storage, segment_bytes=1000).create("orders", 0, bytes(16), NOW)
    accepted = 0
    storage.capacity = 2000
    refusals = set()
    for _ in range(50):
        try:
            log.append(make_batch(2, value=bytes(20)), now_ms=NOW)
            accepted += 2
        except StorageError as error:
            refusals.add("No space left" in str(error))
    assert refusals == {True}
    assert 0 < accepted < 100
    assert log.end_offset == accepted
    storage.capacity = None
    log.append(make_batch(2), now_ms=NOW)
    read: list[int] = []
    while (position := read[-1] + 1 if read else 0) < log.end_offset:
        read += offsets(log.read(position, 1 << 20).data)
    assert read == list(range(accepted + 2))


def test_the_repr_of_a_log_shows_its_contents(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    log.append(make_batch(2), now_ms=NOW)
    assert repr(log) == "<PartitionLog orders[0] 0..2, 1 segments>"
    assert log.size == len(make_batch(2))
