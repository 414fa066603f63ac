"""A batch for the application, decoded on demand: to records, values, or Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar, cast

from aiokwire.consumer.deserialization import AnyRecord, CoroutineReturned, Deserialization, Deserialized
from aiokwire.errors import ConfigurationError
from aiokwire.records import Columns, RecordBatch, columns_to_arrow
from aiokwire.types import TimestampType, TopicPartition

if TYPE_CHECKING:
    import pyarrow

MAX_OFFSET: Final = (1 << 63) - 1

K_co = TypeVar("K_co", covariant=True)
V_co = TypeVar("V_co", covariant=True)


class ConsumerRecord(Protocol[K_co, V_co]):
    """A delivered record: a `Record`, or with deserializers a `DeserializedRecord`."""

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
    @property
    def topic_partition(self) -> TopicPartition: ...


class Batch(Generic[K_co, V_co]):
    """Records of one partition written together, from `base_offset` up to before `next_offset`.

    A view that keeps the decompressed bytes alive. Batches of many thousand records are split.
    """

    __slots__ = (
        "_batch",
        "_count",
        "_deserialization",
        "_deserialized",
        "base_offset",
        "next_offset",
        "topic_partition",
    )

    def __init__(
        self,
        batch: RecordBatch,
        topic_partition: TopicPartition,
        base_offset: int,
        next_offset: int,
        deserialization: Deserialization,
        deserialized: Deserialized | None = None,
    ) -> None:
        """`deserialized`: the result, if async deserializers were already awaited."""
        self.topic_partition: TopicPartition = topic_partition
        self.base_offset: int = base_offset
        self.next_offset: int = next_offset
        self._batch = batch
        self._deserialization = deserialization
        self._deserialized = deserialized
        self._count = batch.count if base_offset <= batch.base_offset and batch.count >= 0 else -1

    @property
    def topic(self) -> str:
        return self.topic_partition.topic

    @property
    def partition(self) -> int:
        return self.topic_partition.partition

    @property
    def count(self) -> int:
        """The number of records, including those that `on_deserialization_error` skips."""
        if self._count < 0:
            self._count = len(self._batch.records(self.base_offset))
        return self._count

    def records(self) -> Sequence[ConsumerRecord[K_co, V_co]]:
        """Return the records, deserialized if the consumer has deserializers. Async deserializers
        were awaited before the batch was delivered.

        Raises: CorruptRecord: the bytes are corrupt; DeserializationError: a deserializer raised;
        ConfigurationError: a deserializer that is not declared `async def` returned a coroutine.
        """
        if not self._deserialization.is_needed:
            return cast("Sequence[ConsumerRecord[K_co, V_co]]", self._batch.records(self.base_offset))
        return cast("Sequence[ConsumerRecord[K_co, V_co]]", self._deserialize())

    def values(self) -> Sequence[V_co | None]:
        """Return only the values, without record objects unless values are deserialized.

        Raises: as `records`.
        """
        if not self._deserialization.has_value:
            return cast("Sequence[V_co | None]", self._batch.values(self.base_offset))
        return [record.value for record in self.records()]

    def _deserialize(self) -> list[AnyRecord]:
        done = self._deserialized
        if done is None:
            try:
                done = self._deserialization.apply(self._batch.records(self.base_offset))
            except CoroutineReturned:
                raise ConfigurationError(
                    "a deserializer returned a coroutine: declare it with `async def`, so that batches() can await it"
                ) from None
        if done.failure is not None:
            raise done.failure
        return done.records

    def to_arrow(self) -> pyarrow.RecordBatch:
        """Return columns: topic, partition, offset, timestamp, timestamp_type, key, value, headers.

        Keys and values are raw bytes: deserializers are not applied. Needs the extra `arrow`.
        """
        columns = Columns()
        # Only a batch that was cut at a deserialization failure has records from `next_offset` on.
        end = self.next_offset if self.next_offset <= self._batch.last_offset else MAX_OFFSET
        self._batch.add_to(columns, self.base_offset, end)
        return columns_to_arrow(columns)

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"<Batch {self.topic_partition} {self.base_offset}..{self.next_offset}>"
