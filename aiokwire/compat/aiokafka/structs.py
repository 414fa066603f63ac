"""aiokafka's values. `TopicPartition` is ours; records are ours, too, and instances of
`ConsumerRecord`."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from aiokwire.compat.aiokafka.errors import KafkaError
from aiokwire.records import DeserializedRecord, Record
from aiokwire.types import TopicPartition

__all__ = [
    "BrokerMetadata",
    "ConsumerRecord",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "PartitionMetadata",
    "RecordMetadata",
    "TopicPartition",
]

KT = TypeVar("KT")
VT = TypeVar("VT")


class BrokerMetadata(NamedTuple):
    """A broker and its address."""

    nodeId: int | str
    host: str
    port: int
    rack: str | None


class PartitionMetadata(NamedTuple):
    """A partition, its leader and its replicas."""

    topic: str
    partition: int
    leader: int
    replicas: list[int]
    isr: list[int]
    error: KafkaError | None


class OffsetAndMetadata(NamedTuple):
    """A committed offset and the committer's metadata."""

    offset: int
    metadata: str


class OffsetAndTimestamp(NamedTuple):
    """The result of a lookup by time."""

    offset: int
    timestamp: int | None


class RecordMetadata(NamedTuple):
    """The position of an acknowledged record. `timestamp_type` is 1 if the broker set the
    timestamp."""

    topic: str
    partition: int
    topic_partition: TopicPartition
    offset: int
    timestamp: int | None
    timestamp_type: int
    log_start_offset: int | None


@dataclass
class ConsumerRecord(Generic[KT, VT], metaclass=ABCMeta):
    """A record of a consumer. Consumers return `aiokwire.Record`s, which are instances of this
    class and have its attributes; this one is for programs that make records themselves."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: KT | None
    value: VT | None
    checksum: int | None
    serialized_key_size: int
    serialized_value_size: int
    headers: Sequence[tuple[str, bytes]]


ConsumerRecord.register(Record)
ConsumerRecord.register(DeserializedRecord)
