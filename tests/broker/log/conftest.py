"""Batches built here byte by byte, independently of the kernel, and both kinds of storage."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crc32c import crc32c

from aiokwire.broker.log import DiskStorage, LogConfig, LogManager, MemoryStorage, PartitionLog, Storage

NOW = 1_700_000_000_000
TOPIC_ID = bytes(range(16))


def _varint(number: int) -> bytes:
    zigzag = (number << 1) ^ (number >> 63)
    out = bytearray()
    while zigzag > 127:
        out.append(zigzag & 127 | 128)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def _field(value: bytes | None) -> bytes:
    return _varint(-1) if value is None else _varint(len(value)) + value


def _make_batch(
    count: int = 1,
    *,
    timestamp: int = NOW,
    step: int = 0,
    value: bytes | None = b"v",
    key: bytes | None = None,
    attributes: int = 0,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
) -> bytearray:
    """A batch at base offset 0; record i has the timestamp `timestamp + i * step`."""
    records = bytearray()
    for i in range(count):
        body = b"\0" + _varint(i * step) + _varint(i) + _field(key) + _field(value) + _varint(0)
        records += _varint(len(body)) + body
    latest = max(timestamp, timestamp + (count - 1) * step)
    tail = struct.pack(
        ">hiqqqhii", attributes, count - 1, timestamp, latest, producer_id, epoch, sequence, count
    ) + bytes(records)
    return bytearray(struct.pack(">qiibI", 0, 9 + len(tail), -1, 2, crc32c(tail)) + tail)


@pytest.fixture(scope="session")
def make_batch() -> Callable[..., bytearray]:
    return _make_batch


@pytest.fixture(scope="session")
def make_marker() -> Callable[..., bytearray]:
    """A control batch that ends a transaction."""

    def make(producer_id: int, epoch: int, *, commit: bool, timestamp: int = NOW) -> bytearray:
        key, value = struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, 3)
        return _make_batch(
            timestamp=timestamp, key=key, value=value, attributes=0x30, producer_id=producer_id, epoch=epoch
        )

    return make


@pytest.fixture(params=["disk", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return DiskStorage(tmp_path / "data") if request.param == "disk" else MemoryStorage()


def _spelled(config: dict[str, int]) -> dict[str, str]:
    return {name.replace("_", "."): str(value) for name, value in config.items()}


@pytest.fixture
def open_manager() -> Iterator[Callable[..., LogManager]]:
    """Opens managers, and abandons those that the test left open."""
    opened: list[LogManager] = []

    def open_(storage: Storage, now_ms: int = NOW, **config: int) -> LogManager:
        manager = LogManager(storage, config=LogConfig().override(_spelled(config)), rng=random.Random(7))
        manager.open(now_ms)
        opened.append(manager)
        return manager

    yield open_
    for manager in opened:
        manager.abandon()


@pytest.fixture
def open_log(storage: Storage, open_manager: Callable[..., LogManager]) -> Callable[..., PartitionLog]:
    """The log of partition orders[0] in the test's storage, made when it does not exist."""

    def open_(now_ms: int = NOW, **config: int) -> PartitionLog:
        manager = open_manager(storage, now_ms, **config)
        return manager.get("orders", 0) or manager.create("orders", 0, TOPIC_ID, now_ms)

    return open_
