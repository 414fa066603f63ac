"""The segments that retention removes, and those that it keeps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aiokwire.broker.log import LogConfig, LogManager, MemoryStorage, PartitionLog, Storage
from aiokwire.errors import OffsetOutOfRange
from tests.broker.logs import apply_retention, flush

NOW = 1_700_000_000_000
MakeBatch = Callable[..., bytearray]
OpenLog = Callable[..., PartitionLog]


def fill(log: PartitionLog, make_batch: MakeBatch, count: int, *, step: int = 0) -> None:
    """One batch in each segment, record i at NOW + i * step."""
    for i in range(count):
        log.append(make_batch(1, timestamp=NOW + i * step), now_ms=NOW)
        if i < count - 1:
            log.roll(NOW)


def _retain(log: PartitionLog, now_ms: int) -> list[str]:
    """Return the removed files."""
    removal = log.prepare_retention(now_ms)
    if removal is None:
        return []
    removal.do()
    return removal.files


def test_segments_past_their_retention_are_deleted(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log(retention_ms=1000)
    fill(log, make_batch, 5, step=100)
    assert _retain(log, NOW + 1000) == []
    gone = _retain(log, NOW + 1201)
    assert log.log_start_offset == 3
    assert log.segment_offsets == (3, 4)
    assert [name for name in gone if name.endswith(".log.deleted")] == [
        f"orders-0/{offset:020d}.log.deleted" for offset in range(3)
    ]
    with pytest.raises(OffsetOutOfRange):
        log.read(2, 100)
    assert log.read(3, 100).data


def test_a_log_whose_records_all_expired_continues_in_an_empty_segment(
    open_log: OpenLog, make_batch: MakeBatch
) -> None:
    log = open_log(retention_ms=1000)
    fill(log, make_batch, 3)
    _retain(log, NOW + 5000)
    assert (log.log_start_offset, log.end_offset, log.segment_offsets) == (3, 3, (3,))
    _retain(log, NOW + 50000)
    assert log.segment_offsets == (3,)
    assert log.append(make_batch(1), now_ms=NOW).base_offset == 3


def test_the_log_is_never_cut_below_its_size_limit(open_log: OpenLog, make_batch: MakeBatch) -> None:
    size = len(make_batch(1))
    log = open_log(retention_bytes=3 * size + 1, retention_ms=-1)
    fill(log, make_batch, 6)
    _retain(log, NOW)
    assert log.segment_offsets == (2, 3, 4, 5)
    assert log.size == 4 * size


def test_a_compacted_log_only_drops_records_below_its_start(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    log.config = LogConfig(cleanup_policy="compact", retention_ms=1, retention_bytes=1)
    fill(log, make_batch, 5)
    log.delete_records(3)
    _retain(log, NOW + 10_000)
    assert log.segment_offsets == (3, 4)


def test_deleting_records_moves_the_start_and_frees_whole_segments(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    for _ in range(2):
        log.append(make_batch(5), now_ms=NOW)
    log.roll(NOW)
    log.append(make_batch(5), now_ms=NOW)
    assert log.delete_records(7) == 7
    assert log.delete_records(3) == 7
    assert _retain(log, NOW) == []
    assert log.delete_records(10) == 10
    assert _retain(log, NOW)
    assert log.segment_offsets == (10,)
    assert log.delete_records(-1) == 15
    for offset in (16, -2):
        with pytest.raises(OffsetOutOfRange):
            log.delete_records(offset)


def test_files_are_deleted_when_their_delay_is_over(
    storage: Storage, open_manager: Callable[..., LogManager], make_batch: MakeBatch
) -> None:
    manager = open_manager(storage, retention_ms=1000, file_delete_delay_ms=500)
    fill(manager.create("orders", 0, bytes(16), NOW), make_batch, 3)
    fill(manager.create("other", 0, bytes(16), NOW), make_batch, 2)
    assert apply_retention(manager, NOW + 1001) > 0
    assert manager.deletions_due(NOW + 1500) is None
    work = manager.deletions_due(NOW + 1501)
    assert work is not None
    work.do()
    assert not [name for name in storage.list("orders-0") if name.endswith(".deleted")]
    assert manager.deletions_due(NOW + 9999) is None


def test_the_start_survives_a_crash_once_it_is_in_the_checkpoint(
    open_manager: Callable[..., LogManager], make_batch: MakeBatch
) -> None:
    storage = MemoryStorage()
    manager = open_manager(storage)
    log = manager.create("orders", 0, bytes(16), NOW)
    log.append(make_batch(10), now_ms=NOW)
    log.delete_records(4)
    flush(log, NOW)
    manager.checkpoint()
    manager.abandon()
    again = open_manager(storage).get("orders", 0)
    assert again is not None
    assert (again.log_start_offset, again.end_offset) == (4, 10)
