"""After a kill or a power failure: the rest is intact, and holds everything that was flushed."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aiokwire.broker.log import LogConfig, LogManager, MemoryStorage, PartitionLog, Storage
from aiokwire.errors import BrokerError, StorageError
from aiokwire.records import read_batches
from tests.broker.logs import apply_retention, first_at, flush

NOW = 1_700_000_000_000
TOPIC_ID = bytes(range(16))
MakeBatch = Callable[..., bytearray]
OpenManager = Callable[..., LogManager]
LOG = "orders-0/00000000000000000000.log"


def values_of(log: PartitionLog) -> list[bytes | None]:
    """Every value in the log, read in pieces; checks that the offsets have no gap."""
    values: list[bytes | None] = []
    position = log.log_start_offset
    while position < log.end_offset:
        for batch in read_batches(log.read(position, 300).data, "orders", 0, check_crcs=True):
            for record in batch.records(position):
                assert record.offset == position
                position += 1
                values.append(record.value)
    return values


def reopened(storage: Storage, open_manager: OpenManager, **config: int) -> PartitionLog:
    log = open_manager(storage, **config).get("orders", 0)
    assert log is not None
    return log


def test_a_killed_broker_loses_nothing_that_it_wrote(
    storage: Storage, open_manager: OpenManager, make_batch: MakeBatch
) -> None:
    manager = open_manager(storage, segment_bytes=500)
    log = manager.create("orders", 0, TOPIC_ID, NOW)
    for i in range(20):
        log.append(make_batch(1, value=b"%d" % i, timestamp=NOW + i), now_ms=NOW, leader_epoch=i // 10)
    manager.abandon()
    log = reopened(storage, open_manager, segment_bytes=500)
    assert values_of(log) == [b"%d" % i for i in range(20)]
    assert log.leader_epochs.entries == [(0, 0), (1, 10), (2, 20)]  # the last by the new start
    found = first_at(log, NOW + 13)
    assert found is not None
    assert found.offset == 13
    assert log.append(make_batch(1), now_ms=NOW).base_offset == 20


@pytest.mark.parametrize("where", [0, 8, 16, 17, 30, 61, 70])
def test_a_flipped_byte_cuts_the_log_there(
    storage: Storage, open_manager: OpenManager, make_batch: MakeBatch, where: int
) -> None:
    manager = open_manager(storage)
    log = manager.create("orders", 0, TOPIC_ID, NOW)
    size = len(make_batch(1, value=bytes(20)))
    for _ in range(10):
        log.append(make_batch(1, value=bytes(20)), now_ms=NOW)
    manager.abandon()
    content = bytearray(storage.read(LOG) or b"")
    content[5 * size + where] ^= 0x81
    storage.write(LOG, content)
    log = reopened(storage, open_manager)
    assert log.end_offset == 5
    assert storage.size(LOG) == 5 * size


def test_segments_after_a_corrupt_one_are_deleted(
    storage: Storage, open_manager: OpenManager, make_batch: MakeBatch
) -> None:
    manager = open_manager(storage, segment_bytes=200)
    log = manager.create("orders", 0, TOPIC_ID, NOW)
    for i in range(10):
        log.append(make_batch(1, producer_id=7, epoch=0, sequence=i), now_ms=NOW)
    second = log.segment_offsets[1]
    manager.abandon()
    name = f"orders-0/{second:020d}"
    content = bytearray(storage.read(name + ".log") or b"")
    content[40] ^= 1
    storage.write(name + ".log", content)
    log = reopened(storage, open_manager, segment_bytes=200)
    assert log.end_offset == second
    assert {n for n in storage.list("orders-0") if n.endswith(".log")} == {"0" * 20 + ".log", f"{second:020d}.log"}
    # the producer continues after the remaining records
    assert log.append(make_batch(1, producer_id=7, epoch=0, sequence=second), now_ms=NOW).base_offset == second


def test_a_clean_stop_is_not_scanned_again(storage: Storage, open_manager: OpenManager, make_batch: MakeBatch) -> None:
    manager = open_manager(storage)
    log = manager.create("orders", 0, TOPIC_ID, NOW)
    for _ in range(100):
        log.append(make_batch(1, value=bytes(200)), now_ms=NOW)
    manager.close(NOW)
    content = bytearray(storage.read(LOG) or b"")
    content[100] ^= 1
    storage.write(LOG, content)
    assert reopened(storage, open_manager).end_offset == 100


def test_lost_indexes_are_rebuilt(storage: Storage, open_manager: OpenManager, make_batch: MakeBatch) -> None:
    manager = open_manager(storage, segment_bytes=2000, index_interval_bytes=100)
    log = manager.create("orders", 0, TOPIC_ID, NOW)
    for i in range(60):
        log.append(make_batch(1, timestamp=NOW + i, attributes=0x10, producer_id=7, epoch=0, sequence=i), now_ms=NOW)
    manager.close(NOW)
    indexes = {name: storage.read(f"orders-0/{name}") for name in storage.list("orders-0") if "index" in name}
    assert len(indexes) > 4
    for name in indexes:
        storage.delete(f"orders-0/{name}")
    manager = open_manager(storage, segment_bytes=2000, index_interval_bytes=100)
    manager.close(NOW)
    assert indexes == {name: storage.read(f"orders-0/{name}") for name in storage.list("orders-0") if "index" in name}


def test_orphans_and_leftovers_are_deleted(storage: Storage, open_manager: OpenManager, make_batch: MakeBatch) -> None:
    manager = open_manager(storage)
    manager.create("orders", 0, TOPIC_ID, NOW).append(make_batch(1), now_ms=NOW)
    manager.close(NOW)
    for name in ("00000000000000000005.index", "00000000000000000003.log.deleted", "x.cleaned", "y.tmp"):
        storage.write(f"orders-0/{name}", b"x")
    before = set(storage.list("orders-0"))
    reopened(storage, open_manager)
    assert before - set(storage.list("orders-0")) == {
        "00000000000000000005.index",
        "00000000000000000003.log.deleted",
        "x.cleaned",
        "y.tmp",
    }


def test_aborted_transactions_are_found_again_after_a_kill(
    storage: Storage, open_manager: OpenManager, make_batch: MakeBatch, make_marker: MakeBatch
) -> None:
    manager = open_manager(storage, segment_bytes=300)
    log = manager.create("orders", 0, TOPIC_ID, NOW)
    for i in range(5):
        log.append(make_batch(2, attributes=0x10, producer_id=i, epoch=0, sequence=0), now_ms=NOW)
        log.append(make_marker(i, 0, commit=i % 2 == 0), now_ms=NOW, from_client=False)
    log.append(make_batch(1, attributes=0x10, producer_id=9, epoch=0, sequence=0), now_ms=NOW)
    expected = log.aborted_transactions(0, 100)
    assert [entry.producer_id for entry in expected] == [1, 3]
    manager.abandon()
    log = reopened(storage, open_manager, segment_bytes=300)
    assert log.aborted_transactions(0, 100) == expected
    assert log.last_stable_offset == 15


def test_a_corrupt_snapshot_is_replaced_by_a_replay(
    storage: Storage, open_manager: OpenManager, make_batch: MakeBatch
) -> None:
    manager = open_manager(storage, segment_bytes=300)
    log = manager.create("orders", 0, TOPIC_ID, NOW)
    for i in range(8):
        log.append(make_batch(1, producer_id=7, epoch=0, sequence=i), now_ms=NOW)
    manager.close(NOW)
    newest = max(name for name in storage.list("orders-0") if name.endswith(".snapshot"))
    storage.write(f"orders-0/{newest}", b"garbage")
    log = reopened(storage, open_manager, segment_bytes=300)
    assert log.append(make_batch(1, producer_id=7, epoch=0, sequence=7), now_ms=NOW).is_duplicate
    assert not log.append(make_batch(1, producer_id=7, epoch=0, sequence=8), now_ms=NOW).is_duplicate


def test_a_log_that_ends_before_its_start_is_reset(open_manager: OpenManager, make_batch: MakeBatch) -> None:
    """The log start was checkpointed, and the power failed before the records were flushed."""
    storage = MemoryStorage()
    manager = open_manager(storage)
    log = manager.create("orders", 0, TOPIC_ID, NOW)
    log.append(make_batch(10), now_ms=NOW)
    log.delete_records(10)
    manager.checkpoint()
    manager.abandon()
    storage.write(LOG, b"")
    log = reopened(storage, open_manager)
    assert (log.log_start_offset, log.end_offset, log.segment_offsets) == (10, 10, (10,))
    assert log.append(make_batch(1), now_ms=NOW).base_offset == 10


def test_a_reset_log_knows_no_producer(open_manager: OpenManager, make_batch: MakeBatch) -> None:
    storage = MemoryStorage()
    manager = open_manager(storage, segment_bytes=300)
    log = manager.create("orders", 0, TOPIC_ID, NOW)
    for sequence in range(5):
        log.append(make_batch(producer_id=7, epoch=0, sequence=sequence, attributes=0x10), now_ms=NOW)
    assert len(log.segment_offsets) > 1
    log.delete_records(5)
    manager.checkpoint()
    manager.abandon()
    storage.write(LOG, b"")
    log = reopened(storage, open_manager)
    assert (log.log_start_offset, log.end_offset, log.last_stable_offset) == (5, 5, 5)
    assert not log.producers.states


def test_a_hole_between_segments_ends_the_log(open_manager: OpenManager, make_batch: MakeBatch) -> None:
    """A lost write that ended with a batch is visible only in the offsets."""
    storage = MemoryStorage()
    manager = open_manager(storage, segment_bytes=300)
    log = manager.create("orders", 0, TOPIC_ID, NOW)
    for _ in range(10):
        log.append(make_batch(1), now_ms=NOW)
    manager.abandon()
    storage.open(LOG).truncate(len(make_batch(1)))
    log = reopened(storage, open_manager, segment_bytes=300)
    assert (log.end_offset, log.segment_offsets) == (1, (0,))


def test_gaps_from_compaction_are_not_corruption(open_manager: OpenManager, make_batch: MakeBatch) -> None:
    storage = MemoryStorage()
    manager = open_manager(storage)
    log = manager.create("orders", 0, TOPIC_ID, NOW)
    for _ in range(5):
        log.append(make_batch(1), now_ms=NOW)
    flush(log, NOW)
    manager.checkpoint()
    manager.abandon()
    size = len(make_batch(1))
    del storage.files[LOG].data[size : 3 * size]
    log = reopened(storage, open_manager)
    assert log.end_offset == 5
    assert [batch.base_offset for batch in read_batches(log.read(1, 1000).data, "orders", 0)] == [3, 4]


class Model:
    """A log and the plain list of values that it must hold, over stops and failures."""

    def __init__(self, storage: MemoryStorage, config: LogConfig, make_batch: MakeBatch, seed: int) -> None:
        self.storage = storage
        self.config = config
        self.make_batch = make_batch
        self.rng = random.Random(seed)
        self.values: list[bytes] = []  # from offset `start` on
        self.start = 0
        self.flushed = 0  # everything below survives a power failure
        self.counter = 0
        self.open()
        self.log = self.manager.create("orders", 0, TOPIC_ID, NOW)
        self.storage.sync("orders-0/partition.metadata")

    def open(self) -> None:
        self.manager = LogManager(self.storage, config=self.config, rng=self.rng)
        self.manager.open(NOW)

    def reopen(self) -> None:
        self.open()
        log = self.manager.get("orders", 0)
        assert log is not None
        self.log = log

    def append(self) -> None:
        for _ in range(self.rng.randint(1, 4)):
            count = self.rng.randint(1, 5)
            self.counter += 1
            value = b"%d" % self.counter + bytes(self.rng.choice([0, 30, 120]))
            stamp = NOW + self.rng.randint(0, 1000)
            self.log.append(self.make_batch(count, value=value, timestamp=stamp), now_ms=NOW)
            self.values += [value] * count

    def full_disk(self) -> None:
        used = sum(len(file.data) for file in self.storage.files.values())
        self.storage.capacity = used + self.rng.randint(0, 400)
        with contextlib.suppress(StorageError):
            for _ in range(5):
                self.append()
        self.storage.capacity = None

    def roll(self) -> None:
        self.log.roll(NOW)

    def flush(self) -> None:
        flush(self.log, NOW)
        self.flushed = self.log.end_offset
        if self.rng.random() < 0.7:
            self.manager.checkpoint()

    def truncate(self) -> None:
        self.log.truncate_to(self.rng.randint(self.start, self.log.end_offset))
        # the truncated batch may have begun below the log's start
        self.start = min(self.start, self.log.end_offset)
        del self.values[self.log.end_offset - self.start :]
        self.flushed = min(self.flushed, self.log.end_offset)
        self.manager.checkpoint()

    def delete_records(self) -> None:
        start = self.log.delete_records(self.rng.randint(self.start, self.log.end_offset))
        flush(self.log, NOW)
        self.flushed = self.log.end_offset
        self.manager.checkpoint()
        apply_retention(self.manager, NOW)
        del self.values[: start - self.start]
        self.start = start

    def restart(self) -> None:
        self.manager.close(NOW)
        self.flushed = self.start + len(self.values)
        self.reopen()

    def kill(self) -> None:
        self.manager.abandon()
        self.reopen()

    def power_failure(self) -> None:
        self.manager.abandon()
        self.storage.crash(self.rng)
        self.reopen()
        end = self.log.end_offset
        assert self.flushed <= end <= self.start + len(self.values)
        del self.values[end - self.start :]
        self.flushed = end

    def check(self) -> None:
        assert self.log.log_start_offset == self.start
        assert self.log.end_offset == self.start + len(self.values)
        assert values_of(self.log) == self.values


ACTIONS = (
    "append",
    "append",
    "append",
    "full_disk",
    "roll",
    "flush",
    "truncate",
    "delete_records",
    "restart",
    "kill",
    "power_failure",
)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(ACTIONS), max_size=25),
    st.integers(0, 1 << 32),
    st.sampled_from([400, 1000, 10_000]),
    st.sampled_from([0, 200, 4096]),
)
def test_the_log_agrees_with_a_list_over_stops_and_failures(
    make_batch: MakeBatch, actions: list[str], seed: int, segment_bytes: int, interval: int
) -> None:
    config = LogConfig(segment_bytes=max(segment_bytes, 800), index_interval_bytes=interval)
    model = Model(MemoryStorage(), config, make_batch, seed)
    for action in actions:
        getattr(model, action)()
        model.check()
    model.manager.abandon()


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 1 << 32), st.integers(0, 1500), st.integers(1, 255))
def test_a_flip_of_any_byte_is_found(make_batch: MakeBatch, seed: int, position: int, flip: int) -> None:
    """Recovery keeps a prefix of the batches; only the epoch, without a CRC, can change unseen."""
    storage = MemoryStorage()
    model = Model(storage, LogConfig(), make_batch, seed)
    for _ in range(3):
        model.append()
    model.manager.abandon()
    data = storage.files[LOG].data
    position %= len(data)
    data[position] ^= flip
    model.reopen()
    held = values_of(model.log)
    assert held == model.values[: len(held)]
    batches = read_batches(bytes(data), "orders", 0, check_crcs=False)
    flipped_in_epoch = any(batch.position + 12 <= position < batch.position + 16 for batch in batches)
    assert flipped_in_epoch or len(held) < len(model.values)
    model.manager.abandon()


def test_a_producer_may_send_its_last_five_batches_again_after_a_clean_restart(
    storage: Storage, open_manager: OpenManager, make_batch: MakeBatch
) -> None:
    """Responses may be lost in the stop; a snapshot in Kafka's format has only the last one."""
    manager = open_manager(storage)
    log = manager.create("orders", 0, TOPIC_ID, NOW)
    for sequence in range(8):
        log.append(make_batch(1, producer_id=7, epoch=0, sequence=sequence), now_ms=NOW)
        log.append(make_batch(1, producer_id=8, epoch=0, sequence=sequence), now_ms=NOW)
    manager.close(NOW)
    log = reopened(storage, open_manager)
    for sequence in range(3, 8):
        again = log.append(make_batch(1, producer_id=7, epoch=0, sequence=sequence), now_ms=NOW)
        assert (again.is_duplicate, again.base_offset) == (True, 2 * sequence)
    with pytest.raises(BrokerError):
        log.append(make_batch(1, producer_id=7, epoch=0, sequence=2), now_ms=NOW)
    assert log.append(make_batch(1, producer_id=7, epoch=0, sequence=8), now_ms=NOW).base_offset == 16
