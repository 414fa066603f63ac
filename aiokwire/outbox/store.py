"""The statements of a relay: the next rows in order, and their results."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from aiokwire.outbox.table import OUTBOX_ID, decode_headers

# The backlog is counted up to this number, so that measuring it takes milliseconds.
COUNTED: Final = 100_000
# Rows that one statement deletes from those whose retention has ended.
PRUNED: Final = 5_000


class OutboxRow(NamedTuple):
    """A record that was not sent yet."""

    id: int
    uid: str
    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: str | None
    created_ms: int

    def all_headers(self) -> list[tuple[str, bytes | None]]:
        """Return its headers, with its id."""
        return [*decode_headers(self.headers), (OUTBOX_ID, self.uid.encode())]


class Backlog(NamedTuple):
    """The waiting rows: their number up to `COUNTED`, and the time of the oldest."""

    waiting: int
    oldest_ms: int | None
    rejected: int


class OutboxStore:
    """Statements on the table of an outbox; each runs in its own transaction."""

    def __init__(self, table: sa.Table) -> None:
        self._table = table
        self._unsent = table.c.sent_ms.is_(None) & table.c.error.is_(None)

    async def read(
        self, connection: AsyncConnection, limit: int, max_bytes: int, without: Collection[str]
    ) -> list[OutboxRow]:
        """Return the next rows, in order: at least one, at most `limit`, together `max_bytes`.

        `without`: topics to leave out.
        """
        columns = [self._table.c[name] for name in OutboxRow._fields]
        chosen = sa.select(self._table.c.id, self._table.c.size).where(self._unsent)
        if without:
            chosen = chosen.where(self._table.c.topic.not_in(without))
        some = chosen.order_by(self._table.c.id).limit(limit).subquery()
        total = sa.func.sum(some.c.size).over(order_by=some.c.id)
        summed = sa.select(some.c.id, some.c.size, total.label("total")).subquery()
        fitting = sa.select(summed.c.id).where(
            (summed.c.total <= max_bytes) | (summed.c.total == summed.c.size)  # the first one always
        )
        query = sa.select(*columns).where(self._table.c.id.in_(fitting)).order_by(self._table.c.id)
        return [OutboxRow(*row) for row in await connection.execute(query)]

    async def finish(self, connection: AsyncConnection, ids: Collection[int], sent_ms: int | None) -> None:
        """Delete sent rows, or mark them with the time when they were sent."""
        chosen = self._table.c.id.in_(ids)
        if sent_ms is None:
            await connection.execute(self._table.delete().where(chosen))
        else:
            await connection.execute(self._table.update().where(chosen).values(sent_ms=sent_ms))

    async def reject(self, connection: AsyncConnection, row_id: int, error: str) -> None:
        """Keep a row that Kafka rejected, with the reason; it is not read again."""
        await connection.execute(self._table.update().where(self._table.c.id == row_id).values(error=error))

    async def prune(self, connection: AsyncConnection, before_ms: int) -> int:
        """Delete up to `PRUNED` rows that were sent before a time; return their number."""
        old = sa.select(self._table.c.id).where(self._table.c.sent_ms < before_ms).limit(PRUNED)
        done: Any = await connection.execute(self._table.delete().where(self._table.c.id.in_(old)))
        return int(done.rowcount)

    async def backlog(self, connection: AsyncConnection) -> Backlog:
        """Measure what waits."""
        first = sa.select(self._table.c.id).where(self._unsent).limit(COUNTED).subquery()
        rejected = sa.select(self._table.c.id).where(self._table.c.error.is_not(None)).limit(COUNTED).subquery()
        oldest = sa.select(self._table.c.created_ms).where(self._unsent).order_by(self._table.c.id).limit(1)
        query = sa.select(
            sa.select(sa.func.count()).select_from(first).scalar_subquery(),
            oldest.scalar_subquery(),
            sa.select(sa.func.count()).select_from(rejected).scalar_subquery(),
        )
        return Backlog(*(await connection.execute(query)).one())
