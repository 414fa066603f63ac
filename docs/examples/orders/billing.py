"""Writes an invoice for each order, once, also if the record arrives again.

aiokwire run billing:worker --processes 2
"""

from __future__ import annotations

from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession
from tables import BROKERS, Invoice, inbox, new_engine

import aiokwire

engine = new_engine()
worker = aiokwire.Worker(
    BROKERS,
    group_id="billing",
    session_timeout_ms=6_000,  # the partitions of a killed process are read by others after this time
    heartbeat_interval_ms=2_000,
    retry=aiokwire.RetryPolicy(attempts=50, backoff=0.2, backoff_max=5.0),  # the database may restart
)


class Placed(BaseModel):
    id: int
    customer: str
    amount: float


@worker.handler("orders", concurrency=8)
async def bill(order: Placed, record: aiokwire.ConsumerRecord[bytes, bytes]) -> None:
    async with AsyncSession(engine) as session, session.begin():
        if await inbox.is_first(session, record):
            session.add(Invoice(order_id=order.id, amount=order.amount))
