"""The settings of one partition's log: Kafka's topic configs in snake_case."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

from aiokwire.errors import ConfigurationError

NEVER = 2**63 - 1
DAY_MS = 24 * 60 * 60 * 1000


@dataclasses.dataclass(frozen=True, slots=True)
class LogConfig:
    """Settings of rolls, flushes, deletion. Times in milliseconds, sizes in bytes; -1: none."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    flush_messages: int = NEVER
    flush_ms: int = NEVER
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    cleanup_policy: str = "delete"

    def __post_init__(self) -> None:
        if self.segment_bytes < 1 or self.segment_bytes > 2**31 - 1:
            raise ConfigurationError(f"segment.bytes must be from 1 to {2**31 - 1}, not {self.segment_bytes}")
        if self.flush_messages < 1:
            raise ConfigurationError(f"flush.messages must be at least 1, not {self.flush_messages}")

    def override(self, configs: Mapping[str, str]) -> Self:
        """Return this config with topic configs in Kafka's spelling; ignores those of other parts.

        Raises: ConfigurationError: a value is not a number, or out of range.
        """
        changes: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            name = field.name.replace("_", ".")
            given = configs.get(name)
            if given is None:
                continue
            try:
                changes[field.name] = given if field.name == "cleanup_policy" else int(given)
            except ValueError as error:
                raise ConfigurationError(f"{name} must be a whole number, not {given!r}") from error
        return dataclasses.replace(self, **changes) if changes else self

    @property
    def deletes(self) -> bool:
        """Whether retention by time and size applies."""
        return "delete" in self.cleanup_policy
