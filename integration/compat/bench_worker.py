"""One measurement of `bench`: `python -m integration.compat.bench_worker CLIENT KIND ADDRESS TOPIC
RECORDS`."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

import uvloop

VALUE: Final = b"x" * 100
# Records whose acknowledgements are awaited together.
CHUNK: Final = 10_000

Measure = Callable[[str, str, int], Coroutine[Any, Any, tuple[float, float]]]


def cpu() -> float:
    """Return the CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def produce(address: str, topic: str, records: int) -> tuple[float, float]:
    """Send records as a program written for aiokafka does: keep the futures, and await them."""
    from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]

    async with AIOKafkaProducer(bootstrap_servers=address, linger_ms=5, max_batch_size=524_288) as producer:
        await producer.send_and_wait(topic, VALUE)
        began, used = time.perf_counter(), cpu()
        for _ in range(records // CHUNK):
            futures = [await producer.send(topic, VALUE) for _ in range(CHUNK)]
            for future in futures:
                await future
        return time.perf_counter() - began, cpu() - used


async def produce_own(address: str, topic: str, records: int) -> tuple[float, float]:
    """The same with our own interface and the same options."""
    from aiokwire import Producer

    async with Producer(address, acks=1, linger_ms=5, batch_size=524_288) as producer:
        await producer.send(topic, VALUE)
        began, used = time.perf_counter(), cpu()
        for _ in range(records // CHUNK):
            deliveries = [await producer.submit(topic, VALUE) for _ in range(CHUNK)]
            for delivery in deliveries:
                await delivery
        return time.perf_counter() - began, cpu() - used


async def getmany(address: str, topic: str, records: int) -> tuple[float, float]:
    """Read lists by partition."""
    from aiokafka import AIOKafkaConsumer

    async with AIOKafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
        await consumer.getone()
        began, used, seen = time.perf_counter(), cpu(), 0
        while seen < records // 2:
            for found in (await consumer.getmany(timeout_ms=1000)).values():
                for record in found:
                    assert record.value is not None
                seen += len(found)
        return _scaled(began, used, seen, records)


async def getmany_own(address: str, topic: str, records: int) -> tuple[float, float]:
    """The same with our own interface."""
    from aiokwire import Consumer

    consumer: Consumer[Any, Any] = Consumer(
        topic, bootstrap_servers=address, auto_offset_reset="earliest", isolation_level="read_uncommitted"
    )
    async with consumer:
        await consumer.getone()
        began, used, seen = time.perf_counter(), cpu(), 0
        while seen < records // 2:
            for found in (await consumer.getmany(1_000_000, 1.0, by_partition=True)).values():
                for record in found:
                    assert record.value is not None
                seen += len(found)
        return _scaled(began, used, seen, records)


async def iterate(address: str, topic: str, records: int) -> tuple[float, float]:
    """Read one record after the other."""
    from aiokafka import AIOKafkaConsumer

    async with AIOKafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
        await consumer.getone()
        return await _iterated(consumer, records)


async def iterate_own(address: str, topic: str, records: int) -> tuple[float, float]:
    """The same with our own interface."""
    from aiokwire import Consumer

    consumer: Consumer[Any, Any] = Consumer(
        topic, bootstrap_servers=address, auto_offset_reset="earliest", isolation_level="read_uncommitted"
    )
    async with consumer:
        await consumer.getone()
        return await _iterated(consumer, records)


async def _iterated(consumer: Any, records: int) -> tuple[float, float]:
    began, used, seen = time.perf_counter(), cpu(), 0
    async for record in consumer:
        assert record.value is not None
        seen += 1
        if seen >= records // 2:
            break
    return _scaled(began, used, seen, records)


def _scaled(began: float, used: float, seen: int, records: int) -> tuple[float, float]:
    factor = records / seen
    return (time.perf_counter() - began) * factor, (cpu() - used) * factor


def main() -> None:
    """Measure once, and print the result."""
    client, kind, address, topic, count = sys.argv[1:]
    records = int(count)
    if client == "compat":
        from aiokwire.compat.aiokafka.replace import replace_aiokafka

        replace_aiokafka()
    measures: dict[str, tuple[Measure, Measure]] = {
        "produce": (produce, produce_own),
        "getmany": (getmany, getmany_own),
        "iterate": (iterate, iterate_own),
    }
    measure = measures[kind][client == "aiokwire"]
    seconds, used = uvloop.run(measure(address, topic, records))
    print(json.dumps({"rate": records / seconds, "cpu": used / records * 1_000_000}))


if __name__ == "__main__":
    main()
