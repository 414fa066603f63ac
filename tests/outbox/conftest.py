"""A broker and a SQLite database for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from aiokwire.outbox import Outbox
from aiokwire.testing.plugin import kafka_broker

__all__ = ["kafka_broker"]


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"topics": {"orders": 2, "clicks": 1}, "auto_create_topics": False}


@pytest.fixture
def outbox() -> Outbox:
    return Outbox()


@pytest_asyncio.fixture
async def engine(tmp_path: Path, outbox: Outbox) -> AsyncIterator[AsyncEngine]:
    """A database with the table of the outbox."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'service.db'}")
    await outbox.create_table(engine)
    yield engine
    await engine.dispose()
