"""The log of the embedded broker: partitions on disk (or in memory) in Kafka's own format.

Synchronous code that runs on the loop and returns at once. Operations that wait for the medium
(fsync, deletion, checkpoints) return a `Work`: `run()` only touches files and may run in a thread,
`finish()` follows on the loop. `now_ms` is the wall clock. The `..._due` methods run periodically.

    manager = LogManager(DiskStorage(path))             # or MemoryStorage()
    manager.open(now_ms)                                # locks; loads or repairs every partition
    log = manager.create("orders", 0, topic_id, now_ms) # takes appends after log.note_registered()
    log.append(batches, now_ms=now_ms)                  # verified batches (format 2); sets offsets
    log.read(offset, max_bytes).data                    # up to the high watermark or LSO (`upto`)
    manager.retention_due(now_ms)                       # with flush_due, deletions_due, checkpoints
    manager.close(now_ms)                               # flushes everything and marks a clean stop

Files: `manager` (a data directory) has many `log` (a partition), each a list of `segment` with
`index`; `batches` reads headers, `lookup` searches timestamps, `producers` and `epochs` are further
state of a log, `recovery` opens a log, `retention` selects segments to remove, `work` brings logs
to the medium, `checkpoints` writes the text files, only `storage` and `memory_storage` touch files.
"""

from aiokwire.broker.log.batches import unsigned_varint
from aiokwire.broker.log.checkpoints import decode_id, encode_id, new_id
from aiokwire.broker.log.config import LogConfig
from aiokwire.broker.log.epochs import EpochEnd
from aiokwire.broker.log.index import AbortedTransaction
from aiokwire.broker.log.log import AppendInfo, PartitionLog
from aiokwire.broker.log.lookup import Candidate
from aiokwire.broker.log.manager import LogManager
from aiokwire.broker.log.memory_storage import MemoryStorage
from aiokwire.broker.log.producers import ProducerState, ProducerStates
from aiokwire.broker.log.segment import ReadResult
from aiokwire.broker.log.storage import DiskStorage, Storage, write_atomically
from aiokwire.broker.log.work import Work

__all__ = [
    "AbortedTransaction",
    "AppendInfo",
    "Candidate",
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
    "unsigned_varint",
    "write_atomically",
]
