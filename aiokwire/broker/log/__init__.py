"""The log of the embedded broker: partitions on disk (or in memory) in Kafka's own format.

Used by the broker's server and handlers. All of it is plain synchronous code that is called on the loop; what may take
long (fsync, deleting files, checkpoints) comes as a `Work`: `run()` touches files only and may go to a thread,
`finish()` is called on the loop afterwards. No wall clock: `now_ms` is an argument.

    manager = LogManager(DiskStorage(path) or MemoryStorage(), config=LogConfig(), rng=random.Random())
    manager.open(now_ms)            -> None: locks, reads meta.properties, loads or recovers every partition log
    manager.cluster_id, .directory_id: str (22 characters), .node_id: int
    manager.logs                    -> Mapping[TopicPartition, PartitionLog]
    manager.get(topic, partition)   -> PartitionLog | None
    manager.create(topic, partition, topic_id: bytes, now_ms, config=None) -> PartitionLog
    manager.delete(topic, partition, now_ms) -> None        (its files go by `deletions_due`)
    manager.apply_retention(now_ms) -> int                  (files that went)
    manager.flush_due(now_ms)       -> list[Work]           (flush.ms, rolled segments); work.do(): both halves
    manager.deletions_due(now_ms)   -> Work | None          (file.delete.delay.ms is over)
    manager.prepare_checkpoint()    -> Work;   manager.checkpoint() does it at once
    manager.expire_producers(now_ms), manager.release_idle()
    manager.close(now_ms)           -> None: flush all, snapshots, checkpoints, clean marker, unlock (slow: in a thread)

    log.topic, log.partition, log.topic_id: bytes, log.config: LogConfig (assign a new one at will)
    log.append(data, *, now_ms, leader_epoch=0, headers=None, log_append_time=None, from_client=True) -> AppendInfo
        data: writable buffer of whole, verified v2 batches, patched in place; headers: its scan_batches(), if at hand;
        log_append_time: the timestamp for message.timestamp.type=LogAppendTime. Checks producer ids and sequences.
        AppendInfo(base_offset, last_offset, log_append_time (-1), log_start_offset, is_duplicate)
        raises BrokerError with its code (sequences, epochs, RECORD_LIST_TOO_LARGE) or StorageError (disk full)
    log.read(offset, max_bytes, *, min_one=True, upto=None) -> ReadResult(data: bytes, upper_bound: int)
        raises OffsetOutOfRange; upto: log.last_stable_offset for read_committed; whole batch when offset is inside it
    log.aborted_transactions(offset, upper_bound) -> list[AbortedTransaction(producer_id, first_offset, ...)]
    log.log_start_offset, .end_offset, .high_watermark, .last_stable_offset, .recovery_point, .size
    log.offset_for_timestamp(timestamp) -> OffsetAndTimestamp | None
    log.max_timestamp_offset()      -> OffsetAndTimestamp | None
    log.leader_epochs.end_offset_for(epoch, log.end_offset) -> (epoch, end_offset), .latest -> int
    log.delete_records(offset)      -> int new log start (-1 means up to the high watermark); raises OffsetOutOfRange
    log.truncate_to(offset)         -> None
    log.flush_needed: bool          (flush.messages reached: flush before the produce is answered)
    log.prepare_flush(now_ms)       -> Work | None;  log.flush(now_ms) does it at once
    log.metadata_work()             -> Work | None: fsync of partition.metadata, before the first append of a new log
    log.producers                   -> ProducerStates (DescribeProducers)

    LogConfig(segment_bytes=2**30, segment_ms=..., ...): fields are Kafka's topic configs in snake_case;
    config.override({"segment.bytes": "1048576", ...}) -> LogConfig (names that the log does not know are left alone)
    write_atomically(storage, path, data): temporary file, fsync, rename, fsync of the directory: for topics.json
"""

from aiokwire.broker.log.checkpoints import decode_id, encode_id, new_id
from aiokwire.broker.log.config import LogConfig
from aiokwire.broker.log.epochs import EpochEnd
from aiokwire.broker.log.index import AbortedTransaction
from aiokwire.broker.log.log import AppendInfo, PartitionLog
from aiokwire.broker.log.manager import LogManager
from aiokwire.broker.log.producers import ProducerState, ProducerStates
from aiokwire.broker.log.segment import ReadResult
from aiokwire.broker.log.storage import DiskStorage, MemoryStorage, Storage, write_atomically
from aiokwire.broker.log.work import Work

__all__ = [
    "AbortedTransaction",
    "AppendInfo",
    "DiskStorage",
    "EpochEnd",
    "LogConfig",
    "LogManager",
    "MemoryStorage",
    "PartitionLog",
    "ProducerState",
    "ProducerStates",
    "ReadResult",
    "Storage",
    "Work",
    "decode_id",
    "encode_id",
    "new_id",
    "write_atomically",
]
