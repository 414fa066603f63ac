"""flush.messages: all requests that wait for one log share its next flush."""

from __future__ import annotations

import random
from collections.abc import Callable

import anyio
import pytest

from aiokwire.broker.log import LogConfig, LogManager, MemoryStorage, PartitionLog
from aiokwire.errors import StorageError
from tests.broker.logs import flush

NOW = 1_700_000_000_000
TOPIC_ID = bytes(range(16))
MakeBatch = Callable[..., bytearray]


class _Counting(MemoryStorage):
    """Counts flushes, and fails those that a test selects."""

    def __init__(self) -> None:
        super().__init__()
        self.synced: list[str] = []
        self.is_failing = False

    def sync(self, path: str) -> None:
        if self.is_failing:
            raise StorageError("cannot flush: no device")
        self.synced.append(path)
        super().sync(path)


@pytest.fixture
def storage() -> _Counting:
    return _Counting()


@pytest.fixture
def log(storage: _Counting) -> PartitionLog:
    manager = LogManager(storage, config=LogConfig().override({"flush.messages": "1"}), rng=random.Random(7))
    manager.open(NOW)
    return manager.create("orders", 0, TOPIC_ID, NOW)


async def _append_and_flush(log: PartitionLog, batch: bytearray, done: list[int]) -> None:
    end = log.append(batch, now_ms=NOW).last_offset + 1
    assert log.flush_needed
    await log.flush_upto(end, lambda: NOW)
    assert log.recovery_point >= end
    done.append(end)


async def test_twenty_waiters_share_two_flushes(storage: _Counting, log: PartitionLog, make_batch: MakeBatch) -> None:
    done: list[int] = []
    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(_append_and_flush, log, make_batch(1), done)
    assert done == list(range(1, 21))
    flushes = [path for path in storage.synced if path.endswith(".log")]
    assert 1 <= len(flushes) <= 2


async def test_a_flush_of_the_active_segment_flushes_one_file(
    storage: _Counting, log: PartitionLog, make_batch: MakeBatch
) -> None:
    await _append_and_flush(log, make_batch(1), [])
    storage.synced.clear()
    await _append_and_flush(log, make_batch(1), [])
    assert storage.synced == ["orders-0/00000000000000000000.log"]


async def test_indexes_of_a_segment_that_was_flushed_while_it_was_active_are_flushed_once_it_is_sealed(
    storage: _Counting, log: PartitionLog, make_batch: MakeBatch
) -> None:
    await _append_and_flush(log, make_batch(1), [])
    log.roll(NOW)
    storage.synced.clear()
    await _append_and_flush(log, make_batch(1), [])
    assert "orders-0/00000000000000000000.timeindex" in storage.synced
    assert "orders-0/00000000000000000001.log" in storage.synced


async def test_a_failed_flush_fails_its_waiters_and_the_next_one_retries(
    storage: _Counting, log: PartitionLog, make_batch: MakeBatch
) -> None:
    end = log.append(make_batch(1), now_ms=NOW).last_offset + 1
    storage.is_failing = True
    with pytest.raises(StorageError, match="no device"):
        await log.flush_upto(end, lambda: NOW)
    storage.is_failing = False
    await log.flush_upto(end, lambda: NOW)
    assert log.recovery_point == end


async def test_a_waiter_that_is_cancelled_leaves_the_flush_to_the_others(
    storage: _Counting, log: PartitionLog, make_batch: MakeBatch
) -> None:
    done: list[int] = []
    async with anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()

        async def cancelled() -> None:
            with scope:
                await _append_and_flush(log, make_batch(1), [])

        tasks.start_soon(cancelled)
        tasks.start_soon(_append_and_flush, log, make_batch(1), done)
        await anyio.lowlevel.checkpoint()
        scope.cancel()
    assert done == [2]


def test_what_a_group_commit_acknowledged_survives_a_power_failure_with_its_topic_id(
    storage: _Counting, log: PartitionLog, make_batch: MakeBatch
) -> None:
    log.note_registered()
    log.append(make_batch(3), now_ms=NOW)
    flush(log, NOW)
    storage.unlock()
    for file in storage.files.values():
        del file.data[file.synced :]
    again = LogManager(storage, rng=random.Random(1))
    again.open(NOW)
    found = again.get("orders", 0)
    assert found is not None
    assert (found.topic_id, found.end_offset) == (TOPIC_ID, 3)
    again.abandon()
