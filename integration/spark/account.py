"""The committed rows of a topic, and the check that each row is stored once."""

from __future__ import annotations

import collections
import uuid
from collections.abc import Iterable
from typing import Any

import confluent_kafka

from aiokwire import Consumer
from aiokwire.threads import run_in_thread
from aiokwire.types import TopicPartition

_SECONDS = 60.0


class NotExactlyOnce(AssertionError):
    """A row is missing or stored twice, or a batch has rows of several attempts."""


async def values_of(servers: str, topic: str, partitions: int) -> list[str]:
    """Return the values that our read_committed consumer reads."""
    options: dict[str, Any] = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    async with Consumer(topic, bootstrap_servers=servers, **options) as consumer:
        places = [TopicPartition(topic, number) for number in range(partitions)]
        ends = await consumer.end_offsets(places)
        found: list[str] = []
        while [place for place in places if await consumer.position(place) < ends[place]]:
            found += [(record.value or b"").decode() for record in await consumer.getmany(timeout=0.05)]
        return found


async def values_by_librdkafka(servers: str, topic: str, partitions: int) -> list[str]:
    """Return the values that confluent-kafka's read_committed consumer reads."""
    return await run_in_thread(_values_by_another, servers, topic, partitions)


def _values_by_another(servers: str, topic: str, partitions: int) -> list[str]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": uuid.uuid4().hex,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)])
        found: list[str] = []
        ended: set[int] = set()
        while len(ended) < partitions:
            message = consumer.poll(_SECONDS)
            if message is None:
                raise NotExactlyOnce(f"{topic} was not read to its end within {_SECONDS} s: a transaction is open")
            error = message.error()
            if error is None:
                value = message.value()
                assert isinstance(value, bytes)
                found.append(value.decode())
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                ended.add(message.partition() or 0)
            else:
                raise NotExactlyOnce(f"reading {topic}: {error}")
        return found
    finally:
        consumer.close()


def check_rows(values: Iterable[str], *, batches: int, tasks: int, rows: int) -> None:
    """Check rows of the form `batch task number attempt`.

    Raises: NotExactlyOnce: names the first wrong row.
    """
    counts: collections.Counter[tuple[int, int, int]] = collections.Counter()
    attempts: dict[int, set[str]] = collections.defaultdict(set)
    for value in values:
        *place, attempt = value.split()
        batch_id, task, number = map(int, place)
        counts[batch_id, task, number] += 1
        attempts[batch_id].add(attempt)
    for batch_id in range(batches):
        for task in range(tasks):
            for number in range(rows):
                if (times := counts.pop((batch_id, task, number), 0)) != 1:
                    raise NotExactlyOnce(f"row {number} of task {task} in batch {batch_id} is stored {times} times")
        if len(attempts[batch_id]) != 1:
            raise NotExactlyOnce(f"batch {batch_id} has rows of {len(attempts[batch_id])} attempts")
    if counts:
        raise NotExactlyOnce(f"{len(counts)} rows that no task wrote")


def check_copies(values: Iterable[str], wanted: Iterable[str]) -> None:
    """Check that each wanted row is stored once.

    Raises: NotExactlyOnce: rows are missing, or stored more than once.
    """
    found, expected = collections.Counter(values), collections.Counter(wanted)
    if found != expected:
        missing, extra = expected - found, found - expected
        raise NotExactlyOnce(
            f"{missing.total()} rows are missing {sorted(missing)[:3]}, {extra.total()} too many {sorted(extra)[:3]}"
        )
