"""Counts the clicks of each page, exactly once: counts and offsets are one transaction.

aiokwire run views:worker
"""

from __future__ import annotations

import os

from sqlalchemy import BigInteger, create_engine
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

import aiokwire

FILE = os.environ.get("DATABASE_FILE", "clicks.db")
engine = create_async_engine(f"sqlite+aiosqlite:///{FILE}")
worker = aiokwire.Worker(
    os.environ.get("BROKERS", "localhost:9092"),
    group_id="views",
    order="partition",
    session_timeout_ms=6_000,  # the partitions of a killed process are read by others after this time
    heartbeat_interval_ms=2_000,
    retry=aiokwire.RetryPolicy(attempts=50, backoff=0.05, backoff_max=1.0),  # another process writes
)


class Base(DeclarativeBase):
    pass


class Views(Base):
    __tablename__ = "views"

    page: Mapped[str] = mapped_column(primary_key=True)
    count: Mapped[int]


class Progress(Base):
    """The last offset of each partition that is counted."""

    __tablename__ = "progress"

    partition: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    counted: Mapped[int] = mapped_column(BigInteger)


Base.metadata.create_all(create_engine(f"sqlite:///{FILE}"))


@worker.handler("clicks")
async def count(record: aiokwire.ConsumerRecord[bytes, bytes]) -> None:
    page = (record.key or b"").decode()
    async with AsyncSession(engine) as session, session.begin():
        moved = insert(Progress).values(partition=record.partition, counted=record.offset)
        moved = moved.on_conflict_do_update(
            index_elements=["partition"], set_={"counted": record.offset}, where=Progress.counted < record.offset
        )
        if (await session.execute(moved.returning(Progress.counted))).first() is None:
            return  # it was counted before
        views = insert(Views).values(page=page, count=1)
        await session.execute(views.on_conflict_do_update(index_elements=["page"], set_={"count": Views.count + 1}))
