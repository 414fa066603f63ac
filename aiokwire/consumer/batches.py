"""A batch in the user's hands: decoded when asked, to records, to values, or to Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from aiokwire.consumer.config import ConsumerConfig, Deserializer
from aiokwire.consumer.errors import DeserializationError
from aiokwire.records import DeserializedRecord, Record, RecordBatch
from aiokwire.types import TimestampType, TopicPartition

if TYPE_CHECKING:
    import pyarrow

K_co = TypeVar("K_co", covariant=True)
V_co = TypeVar("V_co", covariant=True)


class ConsumerRecord(Protocol[K_co, V_co]):
    """What a consumer hands over: a `Record`, or with deserializers a `DeserializedRecord`."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def timestamp_type(self) -> TimestampType: ...
    @property
    def key(self) -> K_co | None: ...
    @property
    def value(self) -> V_co | None: ...
    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...
    @property
    def leader_epoch(self) -> int: ...


class Batch(Generic[K_co, V_co]):
    """Records of one partition that were written together, from `base_offset` up to, not including, `next_offset`.

    A view of the bytes as they came, already decompressed; it keeps them alive.
    """

    __slots__ = ("_batch", "_config", "_count", "base_offset", "next_offset", "topic_partition")

    def __init__(
        self,
        batch: RecordBatch,
        topic_partition: TopicPartition,
        base_offset: int,
        next_offset: int,
        config: ConsumerConfig,
    ) -> None:
        self.topic_partition = topic_partition
        self.base_offset = base_offset
        self.next_offset = next_offset
        self._batch = batch
        self._config = config
        self._count = batch.count if base_offset <= batch.base_offset and batch.count >= 0 else -1

    @property
    def topic(self) -> str:
        return self.topic_partition.topic

    @property
    def partition(self) -> int:
        return self.topic_partition.partition

    @property
    def count(self) -> int:
        """How many records it has."""
        if self._count < 0:
            self._count = len(self._batch.records(self.base_offset))
        return self._count

    def records(self) -> Sequence[ConsumerRecord[K_co, V_co]]:
        """The records; deserialized when the consumer has deserializers.

        Raises: CorruptRecord: the bytes are damaged; DeserializationError: a deserializer raised.
        """
        raw = self._batch.records(self.base_offset)
        if self._config.key_deserializer is None and self._config.value_deserializer is None:
            return cast("Sequence[ConsumerRecord[K_co, V_co]]", raw)
        done, failure = deserialize(raw, self._config)
        if failure is not None:
            raise failure
        return done

    def values(self) -> Sequence[V_co | None]:
        """The values alone, without record objects when there is no deserializer for them.

        Raises: CorruptRecord: the bytes are damaged; DeserializationError: a deserializer raised.
        """
        if self._config.value_deserializer is None:
            return cast("Sequence[V_co | None]", self._batch.values(self.base_offset))
        return [record.value for record in self.records()]

    def to_arrow(self) -> pyarrow.RecordBatch:
        """The columns topic, partition, offset, timestamp, timestamp_type, key, value and headers, as raw bytes.

        Needs the extra `arrow`. Deserializers are not applied.
        """
        from aiokwire.records import to_arrow

        return to_arrow([self._batch], [self.base_offset])

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"<Batch {self.topic_partition} {self.base_offset}..{self.next_offset}>"


def deserialize(
    records: list[Record], config: ConsumerConfig
) -> tuple[list[DeserializedRecord[Any, Any]], DeserializationError | None]:
    """The records before the first that a deserializer refuses, and the error for that one."""
    done: list[DeserializedRecord[Any, Any]] = []
    for record in records:
        try:
            key = _apply(config.key_deserializer, record.key)
            value = _apply(config.value_deserializer, record.value)
        except Exception as error:  # whatever the user's function raises
            failure = DeserializationError(
                f"{record.topic}[{record.partition}] at offset {record.offset}: the deserializer raised "
                f"{type(error).__name__}: {error}; seek past the record to go on without it",
                record=record,
            )
            failure.__cause__ = error
            return done, failure
        done.append(DeserializedRecord(record, key, value))
    return done, None


def _apply(deserializer: Deserializer[Any] | None, data: bytes | None) -> Any:
    return data if deserializer is None or data is None else deserializer(data)
