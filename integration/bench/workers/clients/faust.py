"""faust-streaming on uvloop with its defaults: instances of an agent, without an order."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from typing import Any

import faust  # type: ignore[import-not-found]  # of another environment
import uvloop

from integration.bench.workers.meter import Meter, given_job


async def main() -> None:
    job = given_job()
    app = faust.App(
        job.group,
        broker=f"kafka://{job.bootstrap}",
        store="memory://",
        web_enabled=False,
        topic_disable_leader=True,
        consumer_auto_offset_reset="earliest",
        broker_session_timeout=10.0,
        datadir=tempfile.mkdtemp(prefix="aiokwire-faust-"),
    )
    topic = app.topic(job.topic, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")
    handle = Meter(job).handler()

    @app.agent(topic, concurrency=job.concurrency)  # type: ignore[untyped-decorator]
    async def agent(stream: Any) -> None:
        async for event in stream.events():
            await handle(event.message)

    logging.getLogger().setLevel(logging.ERROR)
    worker = faust.Worker(app, loglevel="ERROR", loop=asyncio.get_running_loop(), override_logging=False)
    await worker.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())
