"""Accepts orders over HTTP. The order and its record are stored in one transaction.

uvicorn service:app --workers 2
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession
from tables import BROKERS, Invoice, Order, create_tables, new_engine, outbox

from aiokwire.outbox import OutboxRelay
from aiokwire.web import Services, install

engine = new_engine()


@asynccontextmanager
async def database() -> AsyncIterator[None]:
    await create_tables(engine)
    yield
    await engine.dispose()


services = Services(database=database, relay=lambda: OutboxRelay(outbox, engine, BROKERS, stalled_after_ms=5_000))
app = FastAPI(lifespan=services.lifespan)
install(app, services)


async def new_session() -> AsyncIterator[AsyncSession]:
    async with AsyncSession(engine) as session:
        yield session


Session = Annotated[AsyncSession, Depends(new_session)]


class NewOrder(BaseModel):
    customer: str
    amount: float


class Placed(BaseModel):
    id: int
    customer: str
    amount: float


@app.post("/orders", status_code=201)
async def place(new: NewOrder, session: Session) -> Placed:
    order = Order(customer=new.customer, amount=new.amount)
    session.add(order)
    await session.flush()
    placed = Placed(id=order.id, customer=order.customer, amount=order.amount)
    await outbox.add(session, "orders", placed.model_dump_json().encode(), key=order.customer.encode())
    await session.commit()
    return placed


@app.get("/orders/{number}/invoice")
async def invoice(number: int, session: Session) -> dict[str, float]:
    found = await session.get(Invoice, number)
    if found is None:
        raise HTTPException(404, "not billed yet")
    return {"amount": found.amount}
