"""The transactional outbox: records are stored with the business data, and sent afterwards.

table       the table, and `Outbox.add`       relay       sends its rows to Kafka
sending     its loop                          store       its statements
leadership  one relay at a time               health      backlog, age, and what fails
inbox       drops records that were handled

Needs SQLAlchemy 2 with a driver for asyncio: pip install 'aiokwire[outbox]' asyncpg
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiokwire._lazy import lazy_names

if TYPE_CHECKING:
    from aiokwire.outbox.health import OutboxHealth as OutboxHealth
    from aiokwire.outbox.inbox import Inbox as Inbox
    from aiokwire.outbox.relay import OutboxRelay as OutboxRelay
    from aiokwire.outbox.table import OUTBOX_ID as OUTBOX_ID, Outbox as Outbox, outbox_id as outbox_id
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "outbox.health": "OutboxHealth",
            "outbox.inbox": "Inbox",
            "outbox.relay": "OutboxRelay",
            "outbox.table": "OUTBOX_ID Outbox outbox_id",
        },
    )
