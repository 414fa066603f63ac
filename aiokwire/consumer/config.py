"""Options of a consumer, by Kafka's own names in snake_case."""

from __future__ import annotations

import dataclasses
import datetime
import functools
from collections.abc import Sequence
from typing import Final, Generic

from aiokwire.cluster import ClientConfig, ClientOptions
from aiokwire.config import (
    INT32_MAX,
    documents_options,
    parse_bool,
    require_bool,
    require_int,
    require_number,
    require_type,
)
from aiokwire.consumer.deserialization import (
    RAISE,
    Deserialization,
    Deserializer,
    ErrorPolicy,
    require_error_policy,
)
from aiokwire.consumer.reset_policy import ResetTarget, parse_reset
from aiokwire.errors import ConfigurationError
from aiokwire.group import ASSIGNORS, Assignor, MemberOptions, Strategy, auto_assignors
from aiokwire.types import GroupProtocol, IsolationLevel, K, OffsetReset, V

# The most bytes of a fetch response besides its records.
ENVELOPE_BYTES: Final = 64 * 1024

# The default of `partition_assignment_strategy`.
AUTO: Final = "auto"

# A choice of `enable_auto_commit`.
ACKED: Final = "acked"


@documents_options()
@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class ConsumerConfig(ClientConfig, Generic[K, V]):
    """Every option of a consumer; times in milliseconds, sizes in bytes.

    Raises: ConfigurationError: an option is out of its range, or contradicts another one.
    """

    auto_offset_reset: str | int | datetime.datetime | datetime.timedelta | OffsetReset = "latest"
    """Where to start without a position, or with one that is no longer in the log: "earliest", "latest", "nearest" (the
    closer end of the log; without a position the earliest), "none" (an error), a point in time (an aware datetime, or
    milliseconds since the epoch), or a time span before now ("by_duration:PT1H", or a timedelta)."""
    isolation_level: str | IsolationLevel = "read_committed"
    """"read_committed" leaves out records of aborted and open transactions, "read_uncommitted" does not."""
    fetch_min_bytes: int = 1
    """A broker responds when it has this many bytes, or after `fetch_max_wait_ms`."""
    fetch_max_wait_ms: float = 500
    """How long a broker waits for `fetch_min_bytes`."""
    fetch_max_bytes: int = 50 * 1024 * 1024
    """The largest response to one fetch; a single larger batch is still returned."""
    max_partition_fetch_bytes: int = 1024 * 1024
    """The most of one partition in a response; a single larger batch is still returned."""
    fetch_memory: int = 64 * 1024 * 1024
    """The bytes held for all partitions together, including fetches in flight. A single batch that is larger than its
    share may exceed it."""
    client_rack: str = ""
    """Where this client runs, in the terms of the brokers' `broker.rack`. If brokers have a `replica.selector.class`,
    partitions are fetched from a replica in that rack (KIP-392)."""
    check_crcs: bool = True
    """Whether the checksum of each batch is verified."""
    max_decompressed_bytes: int = 256 * 1024 * 1024
    """The largest size of one batch after decompression."""
    max_poll_records: int = 500
    """The most records that `getmany` returns without `max_records`."""
    key_deserializer: Deserializer[K] | None = None
    """Called with the bytes of each key that is not null; without it, keys are bytes. An `async def` function is
    awaited, for up to 16 records of a batch at a time; the order of the records is kept."""
    value_deserializer: Deserializer[V] | None = None
    """Called with the bytes of each value that is not null, as `key_deserializer`; without it, values are bytes."""
    on_deserialization_error: ErrorPolicy = RAISE
    """What happens when a deserializer raises. "raise": the next read raises `DeserializationError`, and the position
    stays before the record. "skip": the record is left out, counts as processed, and is logged. A function, plain or
    `async def`, receives the raw `Record` and the `DeserializationError`, and returns the record to deliver instead, or
    None to skip it."""
    group_id: str | None = None
    """With topics: the group that shares their partitions, of which this consumer is a member. With partitions: the
    group whose committed offsets are the start, and to which `commit` writes."""
    group_instance_id: str | None = None
    """Makes this a static member, which keeps its partitions if it rejoins within the session timeout (KIP-345)."""
    group_protocol: str | GroupProtocol = "classic"
    """"classic": the members assign partitions among themselves; "consumer": the coordinator does (KIP-848, Kafka
    4.0), and a rebalance does not stop partitions that stay; "auto": "consumer" if the broker supports it, else
    "classic". With "consumer" the broker's configuration sets the session timeout and the heartbeat interval."""
    group_remote_assignor: str | None = None
    """With `group_protocol="consumer"`, the coordinator's assignor ("uniform", "range"); None: its default."""
    partition_assignment_strategy: str | Assignor | Sequence[str | Assignor] = AUTO
    """With `group_protocol="classic"`. "auto": cooperative-sticky, with which members keep their partitions during a
    rebalance; "range" or "roundrobin" while the group has members of other clients that support nothing else. Or names
    of assignors ("range", "roundrobin", "sticky", "cooperative-sticky") or objects of their shape: the group uses one
    that all members support, and members keep their partitions only if all assignors in the list are cooperative."""
    session_timeout_ms: float = 45_000
    """After this time without a heartbeat the coordinator removes a member from its group."""
    heartbeat_interval_ms: float = 3_000
    """The time between two heartbeats."""
    max_poll_interval_ms: float = 300_000
    """The longest time between two requests of the application for records; after it the member leaves its group
    until the next one. Also how long a rebalance waits for this member, without `rebalance_timeout_ms`."""
    rebalance_timeout_ms: float | None = None
    """How long a rebalance waits for this member to rejoin; None: `max_poll_interval_ms`."""
    enable_auto_commit: bool | str = True
    """True: a member commits the records that the application has finished: those received before the record, list or
    batch that it is processing, and those passed to `ack`. "acked": only those passed to `ack`. False: nothing."""
    auto_commit_interval_ms: float = 5_000
    """The time between two automatic commits; partitions are also committed when they are revoked, and at the end."""
    rebalance_listener_timeout_ms: float = 60_000
    """How long a method of the rebalance listener may take."""
    stalled_after_ms: float = 30_000
    """A partition without progress for this long, although it has data or should have, is reported as stalled in the
    log, in `Consumer.health` and as an event."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.enable_auto_commit, str):
            object.__setattr__(self, "enable_auto_commit", parse_bool(self.enable_auto_commit))
        self._check_group()
        for name, parsed in (
            ("auto_offset_reset", "reset"),
            ("isolation_level", "isolation"),
            ("group_protocol", "protocol"),
        ):
            try:
                getattr(self, parsed)
            except ConfigurationError as error:
                raise ConfigurationError(f"{name} {error}") from None
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
        require_error_policy(self.on_deserialization_error)

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
            "stalled_after_ms",
        ):
            require_number(name, getattr(self, name), minimum=1, maximum=INT32_MAX)
        if self.rebalance_timeout_ms is not None:
            require_number("rebalance_timeout_ms", self.rebalance_timeout_ms, minimum=1, maximum=INT32_MAX)
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigurationError(
                f"heartbeat_interval_ms={self.heartbeat_interval_ms} must be less than "
                f"session_timeout_ms={self.session_timeout_ms}, preferably at most a third of it"
            )
        if self.enable_auto_commit not in (True, False, ACKED):
            raise ConfigurationError(
                f"enable_auto_commit must be True, False or {ACKED!r}, not {self.enable_auto_commit!r}"
            )
        new_strategy(self.partition_assignment_strategy)

    # Parsed once, by `__post_init__`; the options keep the user's values.

    @property
    def auto_commit_interval(self) -> float:
        """`auto_commit_interval_ms` in seconds."""
        return self.auto_commit_interval_ms / 1000

    @property
    def fetch_max_wait(self) -> float:
        """`fetch_max_wait_ms` in seconds."""
        return self.fetch_max_wait_ms / 1000

    @property
    def rebalance_listener_timeout(self) -> float:
        """`rebalance_listener_timeout_ms` in seconds."""
        return self.rebalance_listener_timeout_ms / 1000

    @property
    def stalled_after(self) -> float:
        """`stalled_after_ms` in seconds."""
        return self.stalled_after_ms / 1000

    @functools.cached_property
    def reset(self) -> ResetTarget:
        """`auto_offset_reset`, parsed."""
        return parse_reset(self.auto_offset_reset)

    @functools.cached_property
    def isolation(self) -> IsolationLevel:
        """`isolation_level`, parsed."""
        return IsolationLevel.parse(self.isolation_level)

    @functools.cached_property
    def protocol(self) -> GroupProtocol:
        """`group_protocol`, parsed."""
        return GroupProtocol.parse(self.group_protocol)

    def new_deserialization(self) -> Deserialization:
        """Create the object that applies the deserializers."""
        return Deserialization(self.key_deserializer, self.value_deserializer, self.on_deserialization_error)

    def new_member_options(self) -> MemberOptions:
        """Create the options of a group member.

        Raises: ConfigurationError: `group_id` is not set.
        """
        if self.group_id is None:
            raise ConfigurationError("a member of a group needs a group_id")
        return MemberOptions(
            group_id=self.group_id,
            strategy=new_strategy(self.partition_assignment_strategy),
            instance_id=self.group_instance_id,
            rack_id=self.client_rack or None,
            session_timeout=self.session_timeout_ms / 1000,
            heartbeat_interval=self.heartbeat_interval_ms / 1000,
            max_poll_interval=self.max_poll_interval_ms / 1000,
            rebalance_timeout=(self.rebalance_timeout_ms or self.max_poll_interval_ms) / 1000,
            remote_assignor=self.group_remote_assignor,
        )


def new_strategy(given: str | Assignor | Sequence[str | Assignor]) -> Strategy:
    """Parse `partition_assignment_strategy`.

    Raises: ConfigurationError: as `new_assignors`.
    """
    if isinstance(given, str) and given.lower() == AUTO:
        return Strategy(auto_assignors(), is_auto=True)
    return Strategy(new_assignors(given))


def new_assignors(given: str | Assignor | Sequence[str | Assignor]) -> tuple[Assignor, ...]:
    """Return an assignor for each name; objects are used as given.

    Raises: ConfigurationError: an unknown or repeated name, another kind of object, or no assignor.
    """
    chosen: list[Assignor] = []
    for each in [given] if isinstance(given, str) or not isinstance(given, Sequence) else given:
        if isinstance(each, str):
            factory = ASSIGNORS.get(each.lower().replace("_", "-"))
            if factory is None:
                raise ConfigurationError(
                    f"partition_assignment_strategy: unknown assignor {each!r}; give {AUTO!r} alone, or choose from "
                    f"{', '.join(ASSIGNORS)}"
                )
            chosen.append(factory())
        elif all(hasattr(each, name) for name in ("name", "cooperative", "user_data", "assign", "on_assignment")):
            chosen.append(each)
        else:
            raise ConfigurationError(
                f"partition_assignment_strategy: {each!r} is not an assignor (needs name, cooperative, assign, ...)"
            )
    names = [assignor.name for assignor in chosen]
    if not names or len(set(names)) < len(names):
        raise ConfigurationError(f"partition_assignment_strategy: name each assignor once, at least one, not {names}")
    return tuple(chosen)


class ConsumerOptions(ClientOptions, total=False):
    """Keyword options of a consumer except its deserializers, for type checkers (PEP 692)."""

    auto_offset_reset: str | int | datetime.datetime | datetime.timedelta | OffsetReset
    isolation_level: str | IsolationLevel
    fetch_min_bytes: int
    fetch_max_wait_ms: float
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    fetch_memory: int
    client_rack: str
    check_crcs: bool
    max_decompressed_bytes: int
    max_poll_records: int
    on_deserialization_error: ErrorPolicy
    group_id: str | None
    group_instance_id: str | None
    group_protocol: str | GroupProtocol
    group_remote_assignor: str | None
    partition_assignment_strategy: str | Assignor | Sequence[str | Assignor]
    session_timeout_ms: float
    heartbeat_interval_ms: float
    max_poll_interval_ms: float
    rebalance_timeout_ms: float | None
    enable_auto_commit: bool | str
    auto_commit_interval_ms: float
    rebalance_listener_timeout_ms: float
    stalled_after_ms: float
