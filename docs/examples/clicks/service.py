"""Accepts clicks over HTTP without waiting for Kafka; answers 503 while its buffer is full.

uvicorn service:app
"""

from __future__ import annotations

import os

from litestar import Litestar, post

import aiokwire
from aiokwire.web import Services
from aiokwire.web.litestar import KafkaPlugin, KafkaProducer

services = Services(
    producer=lambda: aiokwire.Producer(
        os.environ.get("BROKERS", "localhost:9092"), linger_ms=5, buffer_memory=8 * 1024 * 1024
    )
)


@post("/clicks/{page:str}", status_code=202)
async def click(page: str, producer: KafkaProducer) -> None:
    producer.submit_nowait("clicks", b"1", key=page.encode())


app = Litestar([click], plugins=[KafkaPlugin(services)])
