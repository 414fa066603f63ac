"""A record that arrives again has no second effect."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

from aiokwire.outbox import OUTBOX_ID, Inbox
from aiokwire.types import TopicPartition


class Arrived:
    """A record as a handler receives it."""

    def __init__(self, offset: int, uid: bytes | None = None) -> None:
        self.topic, self.partition, self.offset = TopicPartition("orders", 0).topic, 0, offset
        self.headers = [] if uid is None else [(OUTBOX_ID, uid)]


async def test_a_repeated_record_is_noticed_and_a_rollback_forgets_it(engine: AsyncEngine) -> None:
    inbox, other = Inbox(consumer="billing"), Inbox(consumer="shipping")
    await inbox.create_table(engine)
    async with AsyncSession(engine) as session:
        assert await inbox.is_first(session, Arrived(1, b"x"))
        await session.rollback()
        assert await inbox.is_first(session, Arrived(1, b"x"))
        assert not await inbox.is_first(session, Arrived(7, b"x")), "sent again by the relay"
        assert await other.is_first(session, Arrived(1, b"x"))
        assert await inbox.is_first(session, Arrived(2)), "not from an outbox: known by its offset"
        assert not await inbox.is_first(session, Arrived(2))
        await session.commit()
    async with engine.begin() as connection:
        assert await inbox.prune(connection, older_than=3600) == 0
        await connection.execute(inbox.table.update().values(handled_ms=1))
        assert await inbox.prune(connection, older_than=3600) == 2
        assert await connection.scalar(sa.select(sa.func.count()).select_from(inbox.table)) == 1
