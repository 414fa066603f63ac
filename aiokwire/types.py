"""Values that cross the public interface, and the choices that options take."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from aiokwire._text import printable
from aiokwire.errors import ConfigurationError

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # Keys and values are bytes where no serializer or deserializer says otherwise.
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
    """Where an acknowledged record lies.

    `offset` is -1 when the producer asked for no acknowledgement (acks=0). `timestamp` is in
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
    """A subscription by pattern that the group's coordinator matches (KIP-848): a regular expression in RE2's syntax,
    for whole names of topics."""

    pattern: str


class OffsetAndMetadata(NamedTuple):
    """A committed position: the offset of the next record to read, and the committer's note."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class Watermarks(NamedTuple):
    """The ends of a partition's log: the offset of its first record, and its high watermark, up to which it is
    replicated. `high - low` is an upper bound of the number of records."""

    low: int
    high: int


class GroupMetadata(NamedTuple):
    """Who commits offsets in a transaction: a member of a group in its generation, so that one which lost its
    partitions is refused; without generation and member, anyone who knows the group's name."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class TransactionalReader(Protocol):
    """What `producer.transaction(reader)` needs of a reader whose progress is part of the transaction; `Consumer` is
    one. All of it works at once, without waiting."""

    def group_metadata(self) -> GroupMetadata:
        """For which group the offsets are committed, and as which member."""

    def positions(self) -> Mapping[TopicPartition, OffsetAndMetadata | None]:
        """Where it stands in each partition that it reads; None where that is not known yet."""

    def rewind(self, positions: Mapping[TopicPartition, OffsetAndMetadata | None], /) -> None:
        """Go back there, for None to where the partition began; leave out partitions that are not read any more."""

    def resume_from_committed(self, positions: Mapping[TopicPartition, OffsetAndMetadata | None], /) -> None:
        """In these partitions, go on where the group stands, as soon as no open transaction can change that."""


class OffsetAndTimestamp(NamedTuple):
    """The answer to a look-up by time: the first record at or after the time asked for."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


class _Choice(enum.Enum):
    """An option's value, given as the member, its value, or its name in any case."""

    @classmethod
    def parse(cls, given: object) -> Self:
        """The member that `given` means.

        Raises: ConfigurationError: naming the choices.
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
    """Who must have a batch before its producer is told so."""

    NONE = 0
    LEADER = 1
    ALL = -1


class IsolationLevel(int, _Choice):
    """Whether records of open and aborted transactions are read; the values are those on the wire."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class OffsetReset(str, _Choice):
    """Where a consumer without a position, or with one out of range, starts."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NEAREST = "nearest"  # whichever end of the log is closer; without a position, the earliest
    NONE = "none"  # nowhere: an error


class GroupProtocol(str, _Choice):
    """How members of a group come to know who reads what: among themselves, or from the coordinator (KIP-848)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    AUTO = "auto"  # the second where the broker serves it, else the first


class TimestampType(int, _Choice):
    """Who set a record's timestamp; the values are those of the batch's attribute bit."""

    NONE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1
