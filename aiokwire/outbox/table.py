"""The table of an outbox, and adding a record to it within a transaction of the service."""

from __future__ import annotations

import base64
import json
import uuid
from typing import Any, Final, Protocol, TypeAlias

from aiokwire.clock import wall_ms
from aiokwire.errors import InvalidArgument
from aiokwire.types import Headers

try:
    import sqlalchemy as sa
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession
except ImportError as _error:
    raise ImportError("aiokwire.outbox needs SQLAlchemy: pip install 'aiokwire[outbox]'") from _error

# The header that names a record of an outbox, the same whenever it is sent.
OUTBOX_ID: Final = "aiokwire-outbox-id"
TABLE: Final = "aiokwire_outbox"

Transaction: TypeAlias = AsyncSession | AsyncConnection


class _WithHeaders(Protocol):
    @property
    def headers(self) -> Any: ...


def outbox_id(record: _WithHeaders) -> str | None:
    """Return the id of a record that comes from an outbox; None for any other."""
    for name, value in record.headers or ():
        if name == OUTBOX_ID and value is not None:
            return bytes(value).decode("ascii", "replace")
    return None


def new_table(metadata: sa.MetaData, name: str, schema: str | None) -> sa.Table:
    """Return the definition of the table of an outbox."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    table = sa.Table(
        name,
        metadata,
        sa.Column("id", number, primary_key=True, autoincrement=True),
        sa.Column("uid", sa.String(32), nullable=False),
        sa.Column("topic", sa.String(249), nullable=False),
        sa.Column("partition", sa.Integer),
        sa.Column("key", sa.LargeBinary),
        sa.Column("value", sa.LargeBinary),
        sa.Column("headers", sa.Text),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("sent_ms", sa.BigInteger),
        sa.Column("error", sa.Text),
        schema=schema,
        sqlite_autoincrement=True,  # an id is never used twice
    )
    unsent = table.c.sent_ms.is_(None) & table.c.error.is_(None)
    sent, rejected = table.c.sent_ms.is_not(None), table.c.error.is_not(None)
    sa.Index(f"ix_{name}_unsent", table.c.id, postgresql_where=unsent, sqlite_where=unsent)
    sa.Index(f"ix_{name}_sent", table.c.sent_ms, postgresql_where=sent, sqlite_where=sent)
    sa.Index(f"ix_{name}_rejected", table.c.id, postgresql_where=rejected, sqlite_where=rejected)
    return table


class Outbox:
    """Records that become visible in Kafka if, and only if, a transaction is committed.

        outbox = Outbox(Base.metadata)

        async with sessions.begin() as session:
            session.add(order)
            await outbox.add(session, "orders", order.to_json(), key=order.id.bytes)

    `OutboxRelay` sends them, at least once, those with the same key in order.
    """

    def __init__(
        self, metadata: sa.MetaData | None = None, *, table: str = TABLE, schema: str | None = None, notify: bool = True
    ) -> None:
        """Define the table.

        Args:
            metadata: where the service defines its tables, so that its migrations see this one.
            table: its name.
            schema: its schema in PostgreSQL.
            notify: whether a commit wakes the relay by NOTIFY, where the database is PostgreSQL.
        """
        self.table: sa.Table = new_table(metadata if metadata is not None else sa.MetaData(), table, schema)
        self.notify = notify

    @property
    def name(self) -> str:
        """The name of the table, with its schema; also of PostgreSQL's channel."""
        return self.table.fullname

    async def create_table(self, engine: AsyncEngine) -> None:
        """Create the table if it does not exist."""
        async with engine.begin() as connection:
            await connection.run_sync(self.table.create, checkfirst=True)

    async def add(
        self,
        transaction: Transaction,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers | None = None,
    ) -> str:
        """Add a record to the open transaction of a session or connection; return its id.

        Pending changes of a session are written first. So two transactions that change the same
        row, and add a record with the same key, have their records in the order of their commits.

        Args:
            transaction: an `AsyncSession` or `AsyncConnection`.
            topic, value, key, partition, headers: of the record.
            timestamp: in milliseconds; by default now.

        Raises: InvalidArgument: a value has the wrong type.
        """
        row = _new_row(topic, value, key, partition, timestamp, headers)
        if isinstance(transaction, AsyncSession):
            await transaction.flush()
            connection = await transaction.connection()
        else:
            connection = transaction
        statement = self.table.insert().values(row)
        if self.notify and connection.dialect.name == "postgresql":
            await connection.execute(statement.returning(sa.func.pg_notify(self.name, "")))
        else:
            await connection.execute(statement)
        return str(row["uid"])


def _new_row(
    topic: str,
    value: bytes | None,
    key: bytes | None,
    partition: int | None,
    timestamp: int | None,
    headers: Headers | None,
) -> dict[str, Any]:
    for name, given in (("value", value), ("key", key)):
        if given is not None and not isinstance(given, (bytes, bytearray, memoryview)):
            raise InvalidArgument(f"{name} must be bytes or None, not {type(given).__name__}: encode it first")
    if not isinstance(topic, str) or not topic:
        raise InvalidArgument(f"topic must be a name, not {topic!r}")
    encoded = encode_headers(headers)
    size = len(value or b"") + len(key or b"") + len(encoded or "")
    return {
        "uid": uuid.uuid4().hex,
        "topic": topic,
        "partition": partition,
        "key": None if key is None else bytes(key),
        "value": None if value is None else bytes(value),
        "headers": encoded,
        "size": size,
        "created_ms": wall_ms() if timestamp is None else timestamp,
    }


def encode_headers(headers: Headers | None) -> str | None:
    """Return headers as a JSON list of names and base64, None without any."""
    if not headers:
        return None
    pairs = headers.items() if hasattr(headers, "items") else headers
    return json.dumps([[name, None if value is None else base64.b64encode(value).decode()] for name, value in pairs])


def decode_headers(text: str | None) -> list[tuple[str, bytes | None]]:
    """Return what `encode_headers` has encoded."""
    return [(name, None if value is None else base64.b64decode(value)) for name, value in json.loads(text or "[]")]
