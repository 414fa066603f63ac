"""Options of a consumer, by Kafka's own names in snake_case."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Sequence
from typing import Any, Final

from aiokwire.cluster import ClientConfig
from aiokwire.config import INT32_MAX, require_bool, require_int, require_number, require_type
from aiokwire.consumer.reset_policy import ResetTarget, parse_reset
from aiokwire.errors import ConfigurationError
from aiokwire.group import ASSIGNORS, Assignor
from aiokwire.types import GroupProtocol, IsolationLevel, OffsetReset

# What a fetch response may have beside its records.
ENVELOPE_BYTES: Final = 64 * 1024

# A choice of `enable_auto_commit`.
ACKED: Final = "acked"

Deserializer = Callable[[bytes], Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConsumerConfig(ClientConfig):
    """What a consumer can be told; everything that `ClientConfig` takes, and:

    `auto_offset_reset`: where to start without a position, or with one that the broker no longer has: "earliest",
        "latest", "nearest" (the closer end of the log; without a position the earliest), "none" (an error), a point in
        time (an aware datetime, or milliseconds since the epoch), or so long ago ("by_duration:PT1H", or a timedelta).
    `isolation_level`: "read_committed" leaves out records of aborted and open transactions, "read_uncommitted"
        does not.
    `fetch_min_bytes`, `fetch_max_wait_ms`: a broker answers when it has that many bytes, or after that time.
    `fetch_max_bytes`, `max_partition_fetch_bytes`: bounds of one answer; a larger batch still comes through.
    `fetch_memory`: bytes held for all partitions together, fetches that are on their way counted. One batch that is
        larger than its share may exceed it.
    `client_rack`: where this client runs, as brokers call it (their `broker.rack`). Where the brokers have a
        `replica.selector.class`, partitions are then read from a replica in that rack (KIP-392).
    `check_crcs`: whether the checksum of each batch is verified.
    `max_decompressed_bytes`: the most that one compressed batch may become.
    `max_poll_records`: what `getmany` gives at most when it is not told.
    `group_id`: with topics, the group that shares them out and that this consumer is a member of; with partitions, only
        whose committed offsets say where they begin, and take what is committed.
    `group_instance_id`: makes a static member, which keeps its partitions when it is back within the session timeout.
    `group_protocol`: "classic": members share partitions out among themselves; "consumer": the coordinator does it
        (KIP-848, Kafka 4.0), which stops nobody whose partitions stay; "auto": the second where the broker serves it,
        else the first. With "consumer" the broker's configuration has the session timeout and the heartbeat interval.
    `group_remote_assignor`: the coordinator's assignor ("uniform", "range"), for "consumer"; None: its own choice.
    `partition_assignment_strategy`: for "classic", names of assignors ("range", "roundrobin", "sticky",
        "cooperative-sticky"), or objects of their shape; the group uses the first that all members have. Members keep
        their partitions while the group rebalances when all that they list allow it, as "cooperative-sticky" does.
    `session_timeout_ms`, `heartbeat_interval_ms`: the coordinator takes a member for dead after the one without any
        heartbeat; they are sent that often.
    `max_poll_interval_ms`: the longest time between two records (or lists, or batches) that are asked for; after it
        the member leaves its group until the next is. Also how long a rebalance waits for this member.
    `enable_auto_commit`: True: a member commits on its own what the application has finished: all that it was handed
        before the record, list or batch that it has in hand, and what it told `ack`. "acked": only what it told `ack`.
        False: nothing.
    `auto_commit_interval_ms`: how often; also when partitions are given up, and at the end.
    `rebalance_listener_timeout_ms`: how long a method of the rebalance listener may take.
    `key_deserializer`, `value_deserializer`: called with the bytes of each key and value that is not null.
    """

    auto_offset_reset: str | int | datetime.datetime | datetime.timedelta | OffsetReset = "latest"
    isolation_level: str | IsolationLevel = "read_committed"
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: float = 500
    fetch_max_bytes: int = 50 * 1024 * 1024
    max_partition_fetch_bytes: int = 1024 * 1024
    fetch_memory: int = 64 * 1024 * 1024
    client_rack: str = ""
    check_crcs: bool = True
    max_decompressed_bytes: int = 256 * 1024 * 1024
    max_poll_records: int = 500
    key_deserializer: Deserializer | None = None
    value_deserializer: Deserializer | None = None
    group_id: str | None = None
    group_instance_id: str | None = None
    group_protocol: str | GroupProtocol = "classic"
    group_remote_assignor: str | None = None
    partition_assignment_strategy: str | Assignor | Sequence[str | Assignor] = "cooperative-sticky"
    session_timeout_ms: float = 45_000
    heartbeat_interval_ms: float = 3_000
    max_poll_interval_ms: float = 300_000
    enable_auto_commit: bool | str = True
    auto_commit_interval_ms: float = 5_000
    rebalance_listener_timeout_ms: float = 60_000

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_group()
        for name, parse in (
            ("auto_offset_reset", parse_reset),
            ("isolation_level", IsolationLevel.parse),
            ("group_protocol", GroupProtocol.parse),
        ):
            try:
                parse(getattr(self, name))
            except ConfigurationError as error:
                raise ConfigurationError(f"{name}: {error}") from None
        require_int("fetch_min_bytes", self.fetch_min_bytes, minimum=0, maximum=INT32_MAX)
        require_number("fetch_max_wait_ms", self.fetch_max_wait_ms, minimum=0, maximum=INT32_MAX)
        require_int("fetch_max_bytes", self.fetch_max_bytes, minimum=1, maximum=INT32_MAX)
        require_int("max_partition_fetch_bytes", self.max_partition_fetch_bytes, minimum=1, maximum=INT32_MAX)
        require_int("fetch_memory", self.fetch_memory, minimum=1)
        require_type("client_rack", self.client_rack, str, "a string")
        require_bool("check_crcs", self.check_crcs)
        if self.fetch_max_bytes + ENVELOPE_BYTES > self.receive_message_max_bytes:
            raise ConfigurationError(
                f"fetch_max_bytes={self.fetch_max_bytes} needs receive_message_max_bytes of at least "
                f"{self.fetch_max_bytes + ENVELOPE_BYTES}, not {self.receive_message_max_bytes}"
            )
        require_int("max_decompressed_bytes", self.max_decompressed_bytes, minimum=1)
        require_int("max_poll_records", self.max_poll_records, minimum=1)
        for name in ("key_deserializer", "value_deserializer"):
            given = getattr(self, name)
            if given is not None and not callable(given):
                raise ConfigurationError(f"{name} must be a function of bytes, not {given!r} ({type(given).__name__})")

    def _check_group(self) -> None:
        for name in ("group_id", "group_instance_id", "group_remote_assignor"):
            given = getattr(self, name)
            if given is not None:
                require_type(name, given, str, "a string")
                if not given:
                    raise ConfigurationError(f"{name} must not be empty; leave it out, or give it a value")
        if self.group_instance_id is not None and self.group_id is None:
            raise ConfigurationError("group_instance_id needs a group_id")
        for name in (
            "session_timeout_ms",
            "heartbeat_interval_ms",
            "max_poll_interval_ms",
            "auto_commit_interval_ms",
            "rebalance_listener_timeout_ms",
        ):
            require_number(name, getattr(self, name), minimum=1, maximum=INT32_MAX)
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigurationError(
                f"heartbeat_interval_ms={self.heartbeat_interval_ms} must be less than "
                f"session_timeout_ms={self.session_timeout_ms}, by a factor of three or more"
            )
        if self.enable_auto_commit not in (True, False, ACKED):
            raise ConfigurationError(
                f"enable_auto_commit must be True, False or {ACKED!r}, not {self.enable_auto_commit!r}"
            )
        new_assignors(self.partition_assignment_strategy)

    @property
    def reset(self) -> ResetTarget:
        """What `auto_offset_reset` means."""
        return parse_reset(self.auto_offset_reset)

    @property
    def isolation(self) -> IsolationLevel:
        return IsolationLevel.parse(self.isolation_level)


def new_assignors(given: str | Assignor | Sequence[str | Assignor]) -> tuple[Assignor, ...]:
    """An assignor for each name; objects are taken as they are.

    Raises: ConfigurationError: a name is unknown, an object is no assignor, one comes twice, or there is none.
    """
    chosen: list[Assignor] = []
    for each in [given] if isinstance(given, str) or not isinstance(given, Sequence) else given:
        if isinstance(each, str):
            factory = ASSIGNORS.get(each.lower().replace("_", "-"))
            if factory is None:
                raise ConfigurationError(
                    f"partition_assignment_strategy: there is no {each!r}; choose of {', '.join(ASSIGNORS)}"
                )
            chosen.append(factory())
        elif all(hasattr(each, name) for name in ("name", "cooperative", "user_data", "assign", "on_assignment")):
            chosen.append(each)
        else:
            raise ConfigurationError(f"partition_assignment_strategy: {each!r} is no assignor")
    names = [assignor.name for assignor in chosen]
    if not names or len(set(names)) < len(names):
        raise ConfigurationError(f"partition_assignment_strategy: name each assignor once, at least one, not {names}")
    return tuple(chosen)
