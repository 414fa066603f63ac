"""The topics of the Spark benchmark, filled by librdkafka for a fair comparison."""

from __future__ import annotations

import datetime
import decimal
import io
import random
import secrets
from typing import Any, Final

import fastavro
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

PARTITIONS: Final = 4
_VALUES: Final = 1_000
_HEADERS: Final[list[tuple[str, str | bytes | None]]] = [("trace", b"0123456789abcdef"), ("kind", b"order")]
_BATCH_BYTES: Final = 36_000  # about 330 records of 100 bytes, as in the lab's topic

# The topics that differ from uncompressed batches of 100-byte values, half of each random.
KINDS: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "lz4": {"codec": "lz4"},
    "small": {"most": 10},
    "headers": {"headers": True},
    "random": {"size": 1024, "random": 1.0, "share": 4},
    "zstd": {"codec": "zstd"},
    "avro": {"avro": True},
}
ORDER: Final = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID", "SENT"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "quantity", "type": "int"},
        {"name": "weight", "type": ["null", "double"]},
        {"name": "note", "type": ["null", "string"]},
    ],
}
"""The schema of records of the topic `avro`: flat, as most schemas are."""


def values(size: int, random_part: float) -> list[bytes]:
    """Return different values with an incompressible last part; the same in each run."""
    noise = random.Random(5)
    part = int(size * random_part)
    text = (b"order-%d " % size) * size
    return [text[: size - part] + noise.randbytes(part) for _ in range(_VALUES)]


def orders() -> list[bytes]:
    """Return different records of `ORDER`; the same in each run."""
    noise = random.Random(5)
    schema = fastavro.parse_schema(ORDER)
    found = []
    for number in range(_VALUES):
        out = io.BytesIO()
        order = {
            "id": 10**9 + number,
            "customer": f"customer-{noise.randrange(10**6)}",
            "state": ("NEW", "PAID", "SENT")[number % 3],
            "at": datetime.datetime.fromtimestamp(1_700_000_000 + number, datetime.UTC),
            "price": decimal.Decimal(noise.randrange(10**6)) / 100,
            "quantity": noise.randrange(100),
            "weight": noise.random() if number % 2 else None,
            "note": f"note {noise.randrange(10**9)}" if number % 3 else None,
        }
        fastavro.schemaless_writer(out, schema, order)
        found.append(out.getvalue())
    return found


class Topics:
    """Topics of one run on one broker; created on first use, deleted at the end."""

    def __init__(self, bootstrap: str, records: int) -> None:
        self.bootstrap = bootstrap
        self.records = records
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._run = secrets.token_hex(2)
        self._made: dict[str, tuple[str, int]] = {}
        self._number = 0

    def filled(self, kind: str) -> tuple[str, int]:
        """Return the name of a filled topic of that kind, and its number of records."""
        if kind not in self._made:
            how = KINDS[kind]
            count = self.records // how.get("share", 1)
            name = self.create(kind)
            self._fill(name, count, how)
            self._made[kind] = name, count
        return self._made[kind]

    def create(self, kind: str) -> str:
        """Create an empty topic."""
        self._number += 1
        name = f"{kind}-{self._run}-{self._number}"
        self._admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(30)
        return name

    def delete(self, name: str) -> None:
        """Delete a topic and free its disk space."""
        self._admin.delete_topics([name])[name].result(30)

    def close(self) -> None:
        """Delete the filled topics."""
        for name, _ in self._made.values():
            self.delete(name)

    def _fill(self, name: str, count: int, how: dict[str, Any]) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "compression.type": how.get("codec", "none"),
                "batch.num.messages": how.get("most", 10_000),
                "batch.size": max(_BATCH_BYTES, how.get("size", 0) + 1_000),
                "linger.ms": 20,
                "queue.buffering.max.messages": 500_000,
                "log_level": 0,
            }
        )
        contents = orders() if how.get("avro") else values(how.get("size", 100), how.get("random", 0.5))
        headers = _HEADERS if how.get("headers") else None
        for number in range(count):
            value, partition = contents[number % _VALUES], number % PARTITIONS
            while True:
                try:
                    producer.produce(name, value, partition=partition, headers=headers)
                    break
                except BufferError:
                    producer.poll(0.05)
        left = producer.flush(120)
        if left:
            raise SystemExit(f"the topic {name} could not be filled: {left} records were not delivered")
