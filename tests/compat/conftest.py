"""A broker whose topics have two partitions."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from aiokwire.broker import Broker


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(num_partitions=2) as broker:
        yield broker
