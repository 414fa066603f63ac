"""An embedded broker for each test, and a connection to it."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from aiokwire.broker import Broker
from aiokwire.broker.log import DiskStorage, MemoryStorage, Storage
from tests.broker.raw import RawClient


@pytest.fixture(params=["memory", "disk"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """Both kinds of storage."""
    return MemoryStorage() if request.param == "memory" else DiskStorage(tmp_path / "data")


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    """A broker in memory with a topic "t" of two partitions."""
    async with Broker(topics={"t": 2}, rng=random.Random(7)) as running:
        yield running


@pytest_asyncio.fixture
async def client(broker: Broker) -> AsyncIterator[RawClient]:
    """A connection to `broker`."""
    connected = await RawClient.connect(broker)
    yield connected
    await connected.close()
