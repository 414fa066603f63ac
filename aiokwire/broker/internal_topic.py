"""A topic in which a coordinator keeps its state as records by key, in Kafka's own formats.

Created at first use, so that a broker without groups and transactions has none. Used by the
coordinators of transactions and groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import anyio

from aiokwire.broker.topic_registry import TopicRegistry
from aiokwire.broker.topics import Partition, Topic
from aiokwire.errors import StorageError
from aiokwire.records import BatchBuilder, RecordBatch, read_batches

_CHUNK = 1 << 20  # bytes of one read while loading
_LARGEST = 2**31 - 1


def java_hash(text: str) -> int:
    """Return Java's String.hashCode: over UTF-16 units, 32 bits, signed."""
    units = memoryview(text.encode("utf-16-be", "surrogatepass")).cast("B")
    value = 0
    for index in range(0, len(units), 2):
        value = (value * 31 + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


class InternalTopic:
    """One of the broker's own topics."""

    def __init__(self, topics: TopicRegistry, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        self.name = name
        self._topics = topics
        self._partitions = partitions  # of a new topic
        self._configs = dict(configs)
        self._preparing: anyio.Lock | None = None  # created at first use: it belongs to a running loop

    def __repr__(self) -> str:
        return f"<InternalTopic {self.name}{'' if self._topic else ', not created yet'}>"

    @property
    def _topic(self) -> Topic | None:
        return self._topics.get(self.name)

    def partition_of(self, key: str) -> int:
        """Return the partition of a group or transactional id."""
        topic = self._topic
        value = java_hash(key)
        # Java: Utils.abs, which returns 0 for the one number without a positive counterpart
        return (0 if value == -(2**31) else abs(value)) % (self._partitions if topic is None else len(topic.partitions))

    def _partition(self, key: str) -> Partition:
        partition = self._topics.partition(self.name, self.partition_of(key))
        if partition is None:
            raise StorageError(f"{self.name} does not exist yet: the state of {key!r} cannot be stored")
        return partition

    # --- before and after an append -----------------------------------------------------------------------------------

    def is_ready(self, key: str) -> bool:
        """Return whether `append` may be called for the key."""
        return self._topic is not None and self._partition(key).log.metadata_to_sync is None

    async def prepare(self, key: str) -> None:
        """Create the topic, and store the topic id of the key's partition, unless that was done.

        Raises: StorageError.
        """
        if self._preparing is None:
            self._preparing = anyio.Lock()
        async with self._preparing:
            if self._topic is None:
                self._topics.create_internal(self.name, self._partitions, self._configs)
            if not self.is_ready(key):
                await self._topics.save()

    def flush_needed(self, key: str) -> bool:
        """Return whether flush.messages requires a flush before the response."""
        return self._topic is not None and self._partition(key).log.flush_needed

    async def flush(self, key: str, now_ms: int) -> None:
        """Flush the records appended for the key.

        Raises: StorageError.
        """
        log = self._partition(key).log
        await log.flush_upto(log.end_offset, lambda: now_ms)

    # --- records ------------------------------------------------------------------------------------------------------

    def append(
        self,
        key: str,
        records: Sequence[tuple[bytes, bytes | None]],
        now_ms: int,
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> int:
        """Append records to the partition of `key`, within a transaction if a producer is named.

        Return the offset of the first. Raises: StorageError: nothing was appended. BrokerError: the
        producer's epoch is out of date.
        """
        builder = BatchBuilder(2, _LARGEST)
        for name, value in records:
            builder.append(now_ms, name, value)
        data = bytearray(
            builder.seal(producer_id=producer_id, producer_epoch=producer_epoch, transactional=producer_id >= 0)
        )
        partition = self._partition(key)
        info = partition.log.append(data, now_ms=now_ms, leader_epoch=partition.leader_epoch, from_client=False)
        partition.appended(len(data))
        return info.base_offset

    def replay(self, only: int | None = None) -> Iterator[tuple[int, RecordBatch]]:
        """Yield every batch with its partition, in order, or those of `only` one partition.

        Raises: StorageError, CorruptRecord.
        """
        topic = self._topic
        if topic is None:
            return
        if "cleanup.policy" not in topic.configs:
            # Adopted without configs: with the defaults, retention would delete its records.
            self._topics.set_configs(topic, {**self._configs, **topic.configs})
        for partition in topic.partitions if only is None else [topic.partitions[only]]:
            offset = partition.log.log_start_offset
            while data := partition.log.read(offset, _CHUNK).data:
                for batch in read_batches(data, self.name, partition.index):
                    yield partition.index, batch
                    offset = batch.next_offset
