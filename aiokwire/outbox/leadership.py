"""One relay at a time: PostgreSQL's advisory lock, or a row with a lease in any other database."""

from __future__ import annotations

import contextlib
import hashlib
import uuid
from typing import Any, Final, Protocol

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from aiokwire.clock import wall_ms

# A lease ends this long (ms) after it was renewed last, by the clock of the machine.
LEASE_MS: Final = 15_000
# The interval (seconds) at which it is renewed while deliveries are awaited.
RENEWAL: Final = 5.0


class Leadership(Protocol):
    """Decides which of several relays of one table sends."""

    async def acquire(self, connection: AsyncConnection) -> bool:
        """Take the lead, or keep it; return whether this relay has it."""

    async def release(self, connection: AsyncConnection) -> None:
        """Let another relay lead at once."""


class AdvisoryLock:
    """PostgreSQL releases it when the session ends, however the process or its machine ends."""

    def __init__(self, name: str) -> None:
        self._key = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), signed=True)
        self._held_by: AsyncConnection | None = None

    async def acquire(self, connection: AsyncConnection) -> bool:
        """See `Leadership`."""
        if self._held_by is not connection:
            found = await connection.scalar(sa.select(sa.func.pg_try_advisory_lock(self._key)))
            self._held_by = connection if found else None
        return self._held_by is not None

    async def release(self, connection: AsyncConnection) -> None:
        """See `Leadership`."""
        self._held_by = None
        await connection.invalidate()  # with its session also LISTEN ends


class LeaseRow:
    """A row with an owner, and the time until which it leads."""

    def __init__(self, table: sa.Table) -> None:
        """`table`: as `new_lease_table` defines it; created when it is missing."""
        self._table = table
        self._owner = uuid.uuid4().hex
        self._is_created = False

    async def acquire(self, connection: AsyncConnection) -> bool:
        """See `Leadership`."""
        if not self._is_created:
            await connection.run_sync(self._table.create, checkfirst=True)
            self._is_created = True
        now = wall_ms()
        mine = {"owner": self._owner, "until_ms": now + LEASE_MS}
        free = (self._table.c.owner == self._owner) | (self._table.c.until_ms < now)
        done: Any = await connection.execute(self._table.update().where(free).values(mine))
        if done.rowcount:
            return True
        with contextlib.suppress(IntegrityError):  # there is a row: another one leads
            await connection.execute(self._table.insert().values(id=1, **mine))
            return True
        return False

    async def release(self, connection: AsyncConnection) -> None:
        """See `Leadership`."""
        await connection.execute(self._table.update().where(self._table.c.owner == self._owner).values(until_ms=0))


def new_lease_table(outbox: sa.Table) -> sa.Table:
    """Return the definition of the table with the lease of an outbox's relay."""
    return sa.Table(
        f"{outbox.name}_lease",
        sa.MetaData(),
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("owner", sa.String(32), nullable=False),
        sa.Column("until_ms", sa.BigInteger, nullable=False),
        schema=outbox.schema,
    )


def leadership_for(dialect: str, outbox: sa.Table) -> Leadership:
    """Return what decides about the relays of a table."""
    return AdvisoryLock(outbox.fullname) if dialect == "postgresql" else LeaseRow(new_lease_table(outbox))
