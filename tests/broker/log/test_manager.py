"""A data directory over its life: new, closed, killed, shared, full."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from aiokwire.broker.log import DiskStorage, LogConfig, LogManager, MemoryStorage, Storage
from aiokwire.errors import ConfigurationError, InvalidArgument, StorageError
from aiokwire.types import TopicPartition
from tests.broker.logs import flush

NOW = 1_700_000_000_000
TOPIC_ID = bytes(range(16))
MakeBatch = Callable[..., bytearray]
OpenManager = Callable[..., LogManager]


def test_a_new_directory_gets_an_identity_that_stays(storage: Storage, open_manager: OpenManager) -> None:
    manager = open_manager(storage)
    identity = (manager.cluster_id, manager.directory_id)
    assert [len(each) for each in identity] == [22, 22]
    manager.close(NOW)
    again = LogManager(storage, rng=random.Random(99))
    again.open(NOW)
    assert (again.cluster_id, again.directory_id) == identity
    again.close(NOW)
    properties = storage.read("meta.properties")
    assert properties is not None
    assert properties.startswith(b"version=1\ncluster.id=")


def test_a_directory_of_another_node_or_cluster_is_refused(storage: Storage, open_manager: OpenManager) -> None:
    open_manager(storage).close(NOW)
    with pytest.raises(StorageError, match="belongs to node 1"):
        LogManager(storage, node_id=2).open(NOW)
    with pytest.raises(StorageError, match="belongs to cluster"):
        LogManager(storage, cluster_id="another").open(NOW)
    open_manager(storage).close(NOW)  # the refused ones left no lock behind


def test_partitions_are_found_again_after_a_clean_stop(
    storage: Storage, open_manager: OpenManager, make_batch: MakeBatch
) -> None:
    manager = open_manager(storage)
    for topic, partition, count in [("orders", 0, 3), ("orders", 1, 0), ("with-dash.and_dot", 12, 5)]:
        log = manager.create(topic, partition, TOPIC_ID, NOW)
        for _ in range(count):
            log.append(make_batch(2), now_ms=NOW)
    manager.close(NOW)
    assert storage.read(".kafka_cleanshutdown") == b'{"version": 0, "brokerEpoch": -1}'
    assert storage.read("recovery-point-offset-checkpoint") == (
        b"0\n3\norders 0 6\norders 1 0\nwith-dash.and_dot 12 10\n"
    )
    again = open_manager(storage)
    assert storage.read(".kafka_cleanshutdown") is None
    assert {tp: (log.end_offset, log.recovery_point, log.topic_id) for tp, log in again.logs.items()} == {
        TopicPartition("orders", 0): (6, 6, TOPIC_ID),
        TopicPartition("orders", 1): (0, 0, TOPIC_ID),
        TopicPartition("with-dash.and_dot", 12): (10, 10, TOPIC_ID),
    }


def test_a_partition_exists_once(storage: Storage, open_manager: OpenManager) -> None:
    manager = open_manager(storage)
    manager.create("orders", 0, TOPIC_ID, NOW)
    with pytest.raises(InvalidArgument, match="already exists"):
        manager.create("orders", 0, TOPIC_ID, NOW)


def test_the_topic_id_is_registered_before_the_first_append_and_flushed_with_it(
    storage: Storage, open_manager: OpenManager, make_batch: MakeBatch
) -> None:
    log = open_manager(storage).create("orders", 0, TOPIC_ID, NOW)
    metadata = "orders-0/partition.metadata"
    assert log.metadata_to_sync == metadata
    log.note_registered()
    assert log.metadata_to_sync is None
    log.append(make_batch(1), now_ms=NOW)
    work = log.prepare_flush(NOW)
    assert work is not None
    assert repr(work) == "<Work flush orders[0] up to 1>"
    assert metadata in work.paths


def test_a_deleted_partition_frees_its_name_at_once_and_its_files_later(
    storage: Storage, open_manager: OpenManager, make_batch: MakeBatch
) -> None:
    manager = open_manager(storage, file_delete_delay_ms=1000)
    topic = "t" * 249
    manager.create(topic, 0, TOPIC_ID, NOW).append(make_batch(1), now_ms=NOW)
    manager.delete(topic, 0, NOW)
    assert manager.get(topic, 0) is None
    [deleting] = [name for name in storage.list("") if name.endswith("-delete")]
    assert len(deleting) <= 255
    assert manager.create(topic, 0, TOPIC_ID, NOW).end_offset == 0
    assert manager.deletions_due(NOW + 999) is None
    manager.close(NOW)
    # a restart forgets the delay, not the deletion
    again = open_manager(storage)
    assert set(again.logs) == {TopicPartition(topic, 0)}
    work = again.deletions_due(NOW)
    assert work is not None
    work.do()
    assert deleting not in storage.list("")
    with pytest.raises(KeyError):
        again.delete("nothing", 0, NOW)


def test_an_incomplete_partition_is_removed(storage: Storage, open_manager: OpenManager) -> None:
    open_manager(storage).close(NOW)
    storage.make_directory("orders-0")
    manager = open_manager(storage)
    assert not manager.logs
    assert not storage.is_directory("orders-0")


def test_data_without_a_topic_id_is_not_touched(
    storage: Storage, open_manager: OpenManager, make_batch: MakeBatch
) -> None:
    manager = open_manager(storage)
    manager.create("orders", 0, TOPIC_ID, NOW).append(make_batch(1), now_ms=NOW)
    manager.close(NOW)
    storage.delete("orders-0/partition.metadata")
    with pytest.raises(StorageError, match=r"orders-0 has data, but no readable partition\.metadata"):
        open_manager(storage)
    assert storage.size("orders-0/00000000000000000000.log") > 0


def test_other_files_and_directories_are_left_alone(storage: Storage, open_manager: OpenManager) -> None:
    open_manager(storage).close(NOW)
    storage.write("notes-1", b"mine")
    storage.make_directory("lost+found")
    manager = open_manager(storage)
    assert not manager.logs
    assert storage.read("notes-1") == b"mine"
    assert storage.is_directory("lost+found")


def test_flushes_come_due_by_time_and_after_a_roll(
    storage: Storage, open_manager: OpenManager, make_batch: MakeBatch
) -> None:
    manager = open_manager(storage, flush_ms=1000)
    log = manager.create("orders", 0, TOPIC_ID, NOW)
    log.append(make_batch(1), now_ms=NOW)
    assert manager.flush_due(NOW + 999) == []
    [work] = manager.flush_due(NOW + 1000)
    work.do()
    assert (log.recovery_point, manager.flush_due(NOW + 5000)) == (1, [])
    log.append(make_batch(1), now_ms=NOW)
    log.roll(NOW)
    [work] = manager.flush_due(NOW + 1001)
    work.do()
    assert log.recovery_point == 2


def test_a_full_disk_at_close_leaves_no_clean_mark_and_loses_nothing(
    open_manager: OpenManager, make_batch: MakeBatch
) -> None:
    storage = MemoryStorage()
    manager = open_manager(storage)
    log = manager.create("orders", 0, TOPIC_ID, NOW)
    for _ in range(200):
        log.append(make_batch(1, value=bytes(100)), now_ms=NOW)
    storage.capacity = 0
    with pytest.raises(StorageError):
        manager.close(NOW)
    storage.capacity = None
    assert storage.read(".kafka_cleanshutdown") is None
    again = open_manager(storage).get("orders", 0)
    assert again is not None
    assert again.end_offset == 200


def test_a_second_manager_on_the_same_directory_is_refused(tmp_path: Path, open_manager: OpenManager) -> None:
    open_manager(DiskStorage(tmp_path))
    with pytest.raises(StorageError, match="another broker"):
        open_manager(DiskStorage(tmp_path))


def test_idle_producers_are_forgotten_everywhere(
    storage: Storage, open_manager: OpenManager, make_batch: MakeBatch
) -> None:
    manager = open_manager(storage)
    log = manager.create("orders", 0, TOPIC_ID, NOW)
    log.append(make_batch(1, producer_id=7, epoch=0, sequence=0), now_ms=NOW)
    assert manager.expire_producers(NOW + 24 * 3600 * 1000 - 1) == 0
    assert manager.expire_producers(NOW + 24 * 3600 * 1000) == 1
    manager.release_idle()


def test_the_repr_of_a_manager_shows_its_contents(open_manager: OpenManager) -> None:
    manager = open_manager(MemoryStorage())
    assert repr(manager) == "<LogManager <MemoryStorage 1 files>, 0 logs>"
    manager.close(NOW)
    assert repr(manager).endswith("0 logs, closed>")
    manager.close(NOW)


def test_topic_configs_override_the_logs_settings() -> None:
    config = LogConfig().override({"segment.bytes": "1000", "cleanup.policy": "compact", "max.message.bytes": "5"})
    assert (config.segment_bytes, config.cleanup_policy, config.deletes) == (1000, "compact", False)
    assert LogConfig().override({}).deletes
    for wrong in ({"segment.bytes": "many"}, {"segment.bytes": "0"}, {"flush.messages": "0"}):
        with pytest.raises(ConfigurationError, match=next(iter(wrong))):
            LogConfig().override(wrong)


def test_a_checkpoint_that_was_overtaken_writes_nothing(
    storage: Storage, open_manager: OpenManager, make_batch: MakeBatch
) -> None:
    manager = open_manager(storage)
    log = manager.create("orders", 0, TOPIC_ID, NOW)
    late = manager.prepare_checkpoint()
    log.append(make_batch(3), now_ms=NOW)
    log.delete_records(2)
    manager.checkpoint()
    late.do()
    assert storage.read("log-start-offset-checkpoint") == b"0\n1\norders 0 2\n"


def test_an_unclean_start_begins_an_epoch_that_no_lost_record_had(make_batch: MakeBatch) -> None:
    """Otherwise a consumer of lost records could not detect that their offsets were reused."""
    storage = MemoryStorage()
    rng = random.Random(1)
    epochs: list[int] = []
    for _ in range(3):
        manager = LogManager(storage, rng=rng)
        manager.open(NOW)
        log = manager.get("orders", 0) or manager.create("orders", 0, TOPIC_ID, NOW)
        log.append(make_batch(1), now_ms=NOW, leader_epoch=manager.leader_epoch)
        if not epochs:
            log.note_registered()
            flush(log, NOW)
        epochs.append(manager.leader_epoch)
        manager.abandon()
        for file in storage.files.values():  # the power fails: of every file only what was flushed is left
            del file.data[file.synced :]
        storage.unlock()
    assert epochs == [0, 1, 2]


def test_a_clean_start_keeps_the_epoch(storage: Storage, open_manager: OpenManager, make_batch: MakeBatch) -> None:
    manager = open_manager(storage)
    manager.create("orders", 0, TOPIC_ID, NOW).append(make_batch(1), now_ms=NOW, leader_epoch=0)
    manager.abandon()
    manager = open_manager(storage)
    assert manager.leader_epoch == 1
    manager.close(NOW)
    assert open_manager(storage).leader_epoch == 1


def test_a_log_that_never_had_a_record_may_lose_its_metadata_in_a_power_failure() -> None:
    storage = MemoryStorage()
    manager = LogManager(storage, rng=random.Random(1))
    manager.open(NOW)
    manager.create("orders", 0, TOPIC_ID, NOW)
    manager.abandon()
    storage.unlock()
    del storage.files["orders-0/partition.metadata"].data[5:]  # torn
    again = LogManager(storage, rng=random.Random(1))
    again.open(NOW)
    assert again.get("orders", 0) is None
    assert again.create("orders", 0, TOPIC_ID, NOW).end_offset == 0
    again.close(NOW)


def test_an_empty_log_of_an_earlier_run_has_its_metadata_flushed_with_its_first_append(
    make_batch: MakeBatch,
) -> None:
    """The run that made it was killed, the next one appends and flushes, then the power fails."""
    storage = MemoryStorage()
    manager = LogManager(storage, rng=random.Random(1))
    manager.open(NOW)
    manager.create("orders", 0, TOPIC_ID, NOW)
    manager.abandon()
    storage.unlock()
    manager = LogManager(storage, rng=random.Random(1))
    manager.open(NOW)
    log = manager.logs[TopicPartition("orders", 0)]
    log.note_registered()
    log.append(make_batch(3), now_ms=NOW)
    flush(log, NOW)
    manager.abandon()
    for file in storage.files.values():
        del file.data[file.synced :]
    storage.unlock()
    again = LogManager(storage, rng=random.Random(1))
    again.open(NOW)
    assert again.logs[TopicPartition("orders", 0)].end_offset == 3
    again.close(NOW)
