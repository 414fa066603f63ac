"""What the service and the worker store, in one database."""

from __future__ import annotations

import os

from sqlalchemy import ForeignKey
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from aiokwire.outbox import Inbox, Outbox

BROKERS = os.environ.get("BROKERS", "localhost:9092")


class Base(DeclarativeBase):
    """All tables, those of the outbox and the inbox included."""


class Order(Base):
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str]
    amount: Mapped[float]


class Invoice(Base):
    __tablename__ = "invoices"

    order_id: Mapped[int] = mapped_column(ForeignKey("orders.id"), primary_key=True)
    amount: Mapped[float]


outbox = Outbox(Base.metadata)
inbox = Inbox(Base.metadata, consumer="billing")


def new_engine() -> AsyncEngine:
    """Return the engine for `DATABASE`."""
    return create_async_engine(os.environ.get("DATABASE", "sqlite+aiosqlite:///orders.db"), pool_pre_ping=True)


async def create_tables(engine: AsyncEngine) -> None:
    """Create what is missing; a service in production uses migrations."""
    try:
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
    except DBAPIError:  # another process has created some of them meanwhile
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
