"""Values of the public interface, and the choices of options."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from aiokwire._text import printable
from aiokwire.errors import ConfigurationError

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # Keys and values are bytes without a serializer or deserializer.
    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

Headers = Sequence[tuple[str, bytes | None]]


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{printable(self.topic)}[{self.partition}]"


class RecordMetadata(NamedTuple):
    """The position of an acknowledged record.

    `offset` is -1 if the producer requests no acknowledgement (acks=0). `timestamp` is in
    milliseconds since the epoch: the record's own, or the broker's for topics with log-append time.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class BrokerPattern(NamedTuple):
    """A subscription by a pattern that the group's coordinator matches (KIP-848): a regular
    expression in RE2's syntax, for whole topic names."""

    pattern: str


class OffsetAndMetadata(NamedTuple):
    """A committed offset: that of the next record to read, and the committer's metadata."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class Watermarks(NamedTuple):
    """The ends of a partition's log: the offset of its first record, and its high watermark, up to
    which it is replicated. `high - low` is an upper bound of the number of records."""

    low: int
    high: int


class LogEnds(NamedTuple):
    """The offsets of a partition's log in the last fetch response, -1 while they are unknown.

    `fetched_at` is the wall clock then, in milliseconds since the epoch.
    """

    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    fetched_at: int


class GroupMetadata(NamedTuple):
    """The committer of a transaction's offsets: a member in its generation, so that one that lost
    its partitions is refused; without member and generation, any client of the group's id."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class TransactionalReader(Protocol):
    """The methods of a reader whose positions `producer.transaction(reader)` commits; implemented
    by `Consumer`. None of them waits."""

    def group_metadata(self) -> GroupMetadata:
        """Return the group and the member for which the offsets are committed."""

    def positions(self) -> Mapping[TopicPartition, OffsetAndMetadata | None]:
        """Return the position of each assigned partition; None while it is unknown."""

    def rewind(self, positions: Mapping[TopicPartition, OffsetAndMetadata | None], /) -> None:
        """Return to these positions (None: the partition's first); ignore unassigned partitions."""

    def resume_from_committed(self, positions: Mapping[TopicPartition, OffsetAndMetadata | None], /) -> None:
        """Continue partitions at committed offsets, once no open transaction can change them."""


class OffsetAndTimestamp(NamedTuple):
    """The result of a lookup by time: the first record at or after the time."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


class _Choice(enum.Enum):
    """The choices of an option: accepts a member, its value, or its name in any case."""

    @classmethod
    def parse(cls, given: object) -> Self:
        """Return the member for `given`.

        Raises: ConfigurationError: no member has this name; lists the choices.
        """
        if isinstance(given, cls):
            return given
        for member in cls:
            if isinstance(given, str):
                found = given == str(member.value) or given.lower().replace("-", "_") == member.name.lower()
            else:
                found = type(given) is int and given == member.value  # not a bool: `acks=True` is a mistake
            if found:
                return member
        choices = ", ".join(member.name.lower() for member in cls)
        raise ConfigurationError(f"must be one of {choices}, not {given!r}")


class Compression(int, _Choice):
    """The codec of a record batch; the values are those of the batch's attribute bits."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class Acks(int, _Choice):
    """The replicas that must have stored a batch before it is acknowledged."""

    NONE = 0
    LEADER = 1
    ALL = -1


class IsolationLevel(int, _Choice):
    """Whether records of open and aborted transactions are read; values as on the wire."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class OffsetReset(str, _Choice):
    """The start of a consumer without a position, or with one out of range."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NEAREST = "nearest"  # the closer end of the log; without a position, the earliest offset
    NONE = "none"  # an error is raised


class GroupProtocol(str, _Choice):
    """Whether a group's members assign partitions themselves, or the coordinator (KIP-848)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    AUTO = "auto"  # CONSUMER if the broker supports it, else CLASSIC


class Order(str, _Choice):
    """Which records wait for each other in a worker."""

    PARTITION = "partition"  # those of one partition
    KEY = "key"  # those with the same key in one partition; records without a key do not wait
    NONE = "none"


class Guarantee(str, _Choice):
    """How many times a record takes effect when a worker or broker fails."""

    AT_LEAST_ONCE = "at-least-once"  # committed after its handler has finished
    AT_MOST_ONCE = "at-most-once"  # committed before its handler starts
    EXACTLY_ONCE = "exactly-once"  # what handlers send and the offsets are one transaction


class TimestampType(int, _Choice):
    """The origin of a record's timestamp; the values are those of the batch's attribute bit."""

    NONE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1
