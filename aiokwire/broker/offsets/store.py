"""Committed offsets by group, and those that wait for the end of their transaction.

A commit is logged before it takes effect. An offset committed in a transaction is staged under its
producer id; the marker in the partition of `__consumer_offsets` applies or drops it, unless there
is a later commit. Handlers check with the group coordinator whether a client may commit.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from aiokwire.broker.configs import BrokerConfigs
from aiokwire.broker.internal_topic import InternalTopic
from aiokwire.broker.offsets.records import (
    KEY_STARTS,
    CommittedOffset,
    OffsetKey,
    decode_latest,
    encode_key,
    encode_value,
)
from aiokwire.broker.topic_registry import TopicRegistry
from aiokwire.clock import wall_ms
from aiokwire.errors import StorageError
from aiokwire.records import Record, RecordBatch
from aiokwire.types import TopicPartition

OFFSETS_TOPIC = "__consumer_offsets"

Staged = dict[OffsetKey, CommittedOffset]
A = TypeVar("A")


class OffsetStore:
    """The committed offsets of every group."""

    def __init__(self, topics: TopicRegistry, configs: BrokerConfigs) -> None:
        # The group coordinator keeps its groups in the same topic.
        self.log: InternalTopic = InternalTopic(
            topics,
            OFFSETS_TOPIC,
            configs.integer("offsets.topic.num.partitions"),
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(configs.integer("offsets.topic.segment.bytes")),
            },
        )
        self._committed: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        # The offsets of open transactions, by partition of the log and producer id.
        self._staged: dict[tuple[int, int], Staged] = {}

    def __repr__(self) -> str:
        return f"<OffsetStore of {len(self._committed)} groups, {len(self._staged)} open transactions>"

    def load(self, others: Callable[[RecordBatch], None]) -> None:
        """Read the committed offsets; `others` reads the other records of the topic.

        Only each key's last record is decoded: most records are commits that later ones replaced.

        Raises: StorageError, CorruptRecord.
        """
        with _no_garbage_collection():
            self._load(others)

    def _load(self, others: Callable[[RecordBatch], None]) -> None:
        latest: dict[bytes, Record] = {}
        staged: dict[int, dict[bytes, Record]] = {}  # by producer id
        index = -1
        for partition, batch in self.log.replay():
            if partition != index:
                self._put(index, latest, staged)
                latest, staged, index = {}, {}, partition
            if batch.is_control:
                others(batch)
                if batch.control_type in {0, 1}:
                    _complete(latest, staged.pop(batch.producer_id, {}), commit=batch.control_type == 1)
            elif not _collect(batch, staged.setdefault(batch.producer_id, {}) if batch.is_transactional else latest):
                others(batch)
        self._put(index, latest, staged)

    def _put(self, partition: int, latest: dict[bytes, Record], staged: dict[int, dict[bytes, Record]]) -> None:
        """Apply the records of a partition of the log.

        Raises: CorruptRecord.
        """
        for group_id, tp, committed in decode_latest(latest.values()):
            self._committed.setdefault(group_id, {})[tp] = committed
        for producer_id, records in staged.items():
            self._staged[partition, producer_id] = {
                OffsetKey(group_id, tp): committed for group_id, tp, committed in decode_latest(records.values())
            }

    # --- read ---------------------------------------------------------------------------------------------------------

    def groups(self) -> Iterator[str]:
        """Yield the groups that have committed offsets, or may have once a transaction ends."""
        yield from (group_id for group_id, committed in self._committed.items() if committed)
        yield from (key.group_id for staged in self._staged.values() for key in staged)

    def of_group(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        """Return the committed offsets of a group."""
        return self._committed.get(group_id, {})

    def pending(self, group_id: str) -> set[TopicPartition]:
        """Return the partitions whose offset an open transaction may change."""
        partition = self.partition_of(group_id).partition
        return {
            key.tp
            for (index, _), staged in self._staged.items()
            if index == partition
            for key in staged
            if key.group_id == group_id
        }

    def partition_of(self, group_id: str) -> TopicPartition:
        """Return the partition of a group's offsets, which joins transactions that commit some."""
        return TopicPartition(OFFSETS_TOPIC, self.log.partition_of(group_id))

    # --- commit -------------------------------------------------------------------------------------------------------

    def run(
        self, group_id: str, action: Callable[[], A | Awaitable[A]], refused: Callable[[StorageError], A]
    ) -> A | Awaitable[A]:
        """Run `action`, which logs for the group, once the log is ready; flush if configured.

        An action may return an awaitable instead of its response.
        """
        if not self.log.is_ready(group_id):
            return self._run_later(group_id, action, refused)
        try:
            answer = action()
        except StorageError as error:
            return refused(error)
        return self._flush(group_id, answer, refused) if self.log.flush_needed(group_id) else answer

    async def _run_later(
        self, group_id: str, action: Callable[[], A | Awaitable[A]], refused: Callable[[StorageError], A]
    ) -> A:
        try:
            await self.log.prepare(group_id)
        except StorageError as error:
            return refused(error)
        answer = self.run(group_id, action, refused)
        return await answer if isinstance(answer, Awaitable) else answer

    async def _flush(self, group_id: str, answer: A | Awaitable[A], refused: Callable[[StorageError], A]) -> A:
        try:
            await self.log.flush(group_id, wall_ms())
        except StorageError as error:
            return refused(error)
        return await answer if isinstance(answer, Awaitable) else answer

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset], now_ms: int) -> None:
        """Commit offsets of a group. Call it within `run`.

        Raises: StorageError: nothing was committed.
        """
        logged = self._append(group_id, offsets, now_ms)
        self._committed.setdefault(group_id, {}).update(logged)

    def stage(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        now_ms: int,
        *,
        producer_id: int,
        producer_epoch: int,
    ) -> None:
        """Commit offsets of a group when the producer's transaction commits. Call it within `run`.

        Raises: StorageError: nothing was staged. BrokerError: the epoch is out of date.
        """
        logged = self._append(group_id, offsets, now_ms, producer_id=producer_id, producer_epoch=producer_epoch)
        staged = self._staged.setdefault((self.log.partition_of(group_id), producer_id), {})
        staged.update({OffsetKey(group_id, tp): committed for tp, committed in logged.items()})

    def _append(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        now_ms: int,
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> dict[TopicPartition, CommittedOffset]:
        if not offsets:
            return {}
        records = [(encode_key(group_id, tp), encode_value(committed)) for tp, committed in offsets.items()]
        base = self.log.append(group_id, records, now_ms, producer_id=producer_id, producer_epoch=producer_epoch)
        return {
            tp: committed._replace(position=position) for position, (tp, committed) in enumerate(offsets.items(), base)
        }

    def delete(self, group_id: str, partitions: Sequence[TopicPartition], now_ms: int) -> None:
        """Delete offsets of a group. Call it within `run`.

        Raises: StorageError: nothing was deleted.
        """
        known = self._committed.get(group_id, {})
        gone = [tp for tp in partitions if tp in known]
        if gone:
            self.log.append(group_id, [(encode_key(group_id, tp), None) for tp in gone], now_ms)
            for tp in gone:
                del known[tp]
        if not known:
            self._committed.pop(group_id, None)

    def forget_topic(self, name: str, now_ms: int) -> None:
        """Delete the offsets of all groups for a deleted topic.

        Raises: StorageError: some offsets remain.
        """
        for group_id, committed in list(self._committed.items()):
            self.delete(group_id, [tp for tp in committed if tp.topic == name], now_ms)
        for key in [(place, key) for place, staged in self._staged.items() for key in staged if key.tp.topic == name]:
            del self._staged[key[0]][key[1]]

    def on_marker(self, tp: TopicPartition, producer_id: int, commit: bool) -> None:
        """Apply or drop staged offsets when a marker is written; called for every partition."""
        if tp.topic != OFFSETS_TOPIC:
            return
        staged = self._staged.pop((tp.partition, producer_id), {})
        if commit:
            for key, committed in staged.items():
                group = self._committed.setdefault(key.group_id, {})
                if key.tp not in group or group[key.tp].position < committed.position:
                    group[key.tp] = committed


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Create many permanent objects without garbage collections, in half of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _collect(batch: RecordBatch, latest: dict[bytes, Record]) -> bool:
    """Collect the last record of each offset; return False if the batch has other records, too."""
    is_all = True
    for record in batch.records():
        key = record.key
        if key is None or not key.startswith(KEY_STARTS):
            is_all = False
        elif record.value is not None:
            latest[key] = record
        else:
            latest.pop(key, None)
    return is_all


def _complete(latest: dict[bytes, Record], staged: dict[bytes, Record], *, commit: bool) -> None:
    """Apply the offsets of a committed transaction, unless there is a later commit."""
    if commit:
        for key, record in staged.items():
            known = latest.get(key)
            if known is None or known.offset < record.offset:
                latest[key] = record
