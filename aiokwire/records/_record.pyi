from typing import Generic, TypeVar

from aiokwire.types import Headers, TimestampType, TopicPartition

FAULTS: tuple[str, ...]

_K = TypeVar("_K")
_V = TypeVar("_V")

class Record:
    """One record as it was read: immutable, with plain bytes.

    `timestamp` is in milliseconds since the epoch, -1 when the broker kept none; `leader_epoch` is -1 when unknown.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int = -1,
        key: bytes | None = None,
        value: bytes | None = None,
        headers: Headers = (),
        *,
        timestamp_type: TimestampType = ...,
        leader_epoch: int = -1,
    ) -> None: ...
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
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def topic_partition(self) -> TopicPartition: ...
    @property
    def checksum(self) -> None:
        """None: checksums are those of batches. For programs written for aiokafka."""

    @property
    def serialized_key_size(self) -> int:
        """The bytes of the key; -1 for a null."""

    @property
    def serialized_value_size(self) -> int:
        """The bytes of the value; -1 for a null."""

    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class DeserializedRecord(Generic[_K, _V]):
    """A record whose key and value went through deserializers."""

    def __init__(self, record: Record, key: _K, value: _V) -> None: ...
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
    def key(self) -> _K: ...
    @property
    def value(self) -> _V: ...
    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def topic_partition(self) -> TopicPartition: ...
    @property
    def checksum(self) -> None:
        """None: checksums are those of batches. For programs written for aiokafka."""

    @property
    def serialized_key_size(self) -> int:
        """The bytes of the key; -1 for a null."""

    @property
    def serialized_value_size(self) -> int:
        """The bytes of the value; -1 for a null."""

    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
