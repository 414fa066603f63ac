"""The consumer's side of an outbox: a table of records that were handled, to drop repeated ones."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

from aiokwire.clock import wall_ms
from aiokwire.errors import ConfigurationError
from aiokwire.outbox.table import Transaction, outbox_id

TABLE: Final = "aiokwire_inbox"


class Inbox:
    """Ids of records that a service has handled, stored with the effect of handling them.

        @worker.handler("orders")
        async def bill(order: Order, record: ConsumerRecord) -> None:
            async with sessions.begin() as session:
                if await inbox.is_first(session, record):
                    session.add(Invoice(order))

    Several services that share a database need a table each, or a `consumer` each.
    """

    def __init__(self, metadata: sa.MetaData | None = None, *, table: str = TABLE, consumer: str = "") -> None:
        """`consumer`: whose ids these are, such as the group's name."""
        self._consumer = consumer
        self.table: sa.Table = sa.Table(
            table,
            metadata if metadata is not None else sa.MetaData(),
            sa.Column("consumer", sa.String(255), primary_key=True),
            sa.Column("uid", sa.String(255), primary_key=True),
            sa.Column("handled_ms", sa.BigInteger, nullable=False, index=True),
        )

    async def create_table(self, engine: AsyncEngine) -> None:
        """Create the table if it does not exist."""
        async with engine.begin() as connection:
            await connection.run_sync(self.table.create, checkfirst=True)

    async def is_first(self, transaction: Transaction, record: Any) -> bool:
        """Note the id of a record in the open transaction; return False if it was noted before.

        A record without an id of an outbox is known by its topic, partition and offset. Another
        transaction that handles the same record at this moment is waited for.

        Raises: ConfigurationError: the database is neither PostgreSQL nor SQLite.
        """
        found = outbox_id(record) or f"{record.topic}:{record.partition}:{record.offset}"
        connection = await transaction.connection() if isinstance(transaction, AsyncSession) else transaction
        dialect = connection.dialect.name
        if dialect not in ("postgresql", "sqlite"):
            raise ConfigurationError(f"an inbox needs PostgreSQL or SQLite, not {dialect}")
        insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
        row = {"consumer": self._consumer, "uid": found, "handled_ms": wall_ms()}
        done: Any = await connection.execute(insert(self.table).values(row).on_conflict_do_nothing())
        return bool(done.rowcount)

    async def prune(self, transaction: Transaction, *, older_than: float) -> int:
        """Delete ids that were noted more than `older_than` seconds ago; return their number."""
        before = wall_ms() - int(older_than * 1000)
        own = (self.table.c.consumer == self._consumer) & (self.table.c.handled_ms < before)
        done: Any = await transaction.execute(self.table.delete().where(own))
        return int(done.rowcount)
