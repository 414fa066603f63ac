"""Options of a consumer, by Kafka's own names in snake_case."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable
from typing import Any, Final

from aiokwire.cluster import ClientConfig
from aiokwire.config import INT32_MAX, require_bool, require_int, require_number, require_type
from aiokwire.consumer.reset_policy import ResetTarget, parse_reset
from aiokwire.errors import ConfigurationError
from aiokwire.types import IsolationLevel, OffsetReset

# What a fetch response may have beside its records.
ENVELOPE_BYTES: Final = 64 * 1024

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
    `group_id`: whose committed offsets say where assigned partitions begin, and take what is committed. The consumer
        does not join the group.
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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.group_id is not None:
            require_type("group_id", self.group_id, str, "a string")
            if not self.group_id:
                raise ConfigurationError("group_id must not be empty; leave it out, or name the group")
        for name, parse in (("auto_offset_reset", parse_reset), ("isolation_level", IsolationLevel.parse)):
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

    @property
    def reset(self) -> ResetTarget:
        """What `auto_offset_reset` means."""
        return parse_reset(self.auto_offset_reset)

    @property
    def isolation(self) -> IsolationLevel:
        return IsolationLevel.parse(self.isolation_level)
