"""Producer ids are never reused."""

from __future__ import annotations

import random

import anyio
import pytest

from aiokwire.broker.log import MemoryStorage
from aiokwire.broker.producer_ids import BLOCK, FILE, ProducerIds
from aiokwire.errors import StorageError


async def test_a_crash_never_reuses_an_id() -> None:
    storage = MemoryStorage()
    given: list[int] = []
    for _ in range(4):
        ids = ProducerIds(storage)
        ids.load(0)
        given += [await ids.allocate() for _ in range(3)]
        storage.crash(random.Random(1))
    assert len(set(given)) == len(given)


async def test_many_at_once_share_a_reservation() -> None:
    ids = ProducerIds(MemoryStorage())
    ids.load(0)
    given: list[int] = []

    async def take() -> None:
        given.append(await ids.allocate())

    async with anyio.create_task_group() as tasks:
        for _ in range(BLOCK + 5):
            tasks.start_soon(take)
    assert sorted(given) == list(range(BLOCK + 5))


async def test_ids_begin_above_what_the_logs_know() -> None:
    ids = ProducerIds(MemoryStorage())
    ids.load(5000)
    assert await ids.allocate() == 5000


def test_a_corrupt_file_is_named() -> None:
    storage = MemoryStorage()
    storage.write(FILE, b"many")
    with pytest.raises(StorageError, match=FILE):
        ProducerIds(storage).load(0)
