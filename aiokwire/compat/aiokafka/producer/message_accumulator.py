"""`BatchBuilder`: records that are sent together by `AIOKafkaProducer.send_batch`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from aiokwire.clock import wall_ms
from aiokwire.records import estimate_size

__all__ = ["BatchBuilder"]

HEADER_BYTES: Final = 61


class BatchRecord(NamedTuple):
    """A record of a batch, serialized."""

    value: bytes | None
    key: bytes | None
    timestamp: int | None
    headers: Sequence[tuple[str, bytes | None]]


class AppendedMetadata(NamedTuple):
    """The result of `BatchBuilder.append`. There is no checksum of a record: `crc` is None."""

    offset: int
    size: int
    timestamp: int
    crc: None = None


class BatchBuilder:
    """Collects records for one partition, up to `batch_size` bytes before compression; the first
    always fits."""

    def __init__(
        self,
        batch_size: int,
        *,
        key_serializer: Callable[[Any], Any] | None = None,
        value_serializer: Callable[[Any], Any] | None = None,
    ) -> None:
        self._limit = batch_size
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._size = HEADER_BYTES
        self._closed = False
        self.records: list[BatchRecord] = []

    def append(
        self, *, timestamp: int | None, key: Any, value: Any, headers: Sequence[tuple[str, bytes | None]] = ()
    ) -> AppendedMetadata | None:
        """Add a record; return its offset in the batch and its size, None if the batch is full or
        closed.

        `timestamp` is in milliseconds; None: now.

        Raises: TypeError: key or value is not bytes after serialization.
        """
        if self._closed:
            return None
        if self._key_serializer is not None:
            key = self._key_serializer(key)
        if self._value_serializer is not None:
            value = self._value_serializer(value)
        for name, data in (("key", key), ("value", value)):
            if data is not None and not isinstance(data, (bytes, bytearray, memoryview)):
                raise TypeError(f"{name} must be bytes or None, not {type(data).__name__}: pass a {name}_serializer")
        size = estimate_size(key, value, headers)
        if self.records and self._size + size > self._limit:
            self.close()
            return None
        self._size += size
        when = wall_ms() if timestamp is None else timestamp
        self.records.append(BatchRecord(value, key, when, headers))
        return AppendedMetadata(len(self.records) - 1, size, when)

    def close(self) -> None:
        """Accept no more records."""
        self._closed = True

    def closed(self) -> bool:
        """Whether it accepts no more records."""
        return self._closed

    def size(self) -> int:
        """Return an upper bound of its bytes before compression."""
        return self._size

    def record_count(self) -> int:
        """Return the number of records."""
        return len(self.records)
