"""The topics that the clients read: written by a peer, with keys in turn."""

from __future__ import annotations

import os
import uuid
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

PARTITIONS: Final = 4
_VALUE_SIZE: Final = 100


class Topics:
    """Topics of one broker, by their numbers of records and keys."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._filled: dict[tuple[int, int], str] = {}

    def filled(self, records: int, keys: int) -> str:
        """Return a topic of `records` records with `keys` keys in turn, written on first use."""
        if (records, keys) not in self._filled:
            self._filled[records, keys] = self._fill(records, keys)
        return self._filled[records, keys]

    def _fill(self, records: int, keys: int) -> str:
        name = f"bench-{uuid.uuid4().hex[:12]}"
        self._admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(30)
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 20, "batch.size": 100_000})
        values = [os.urandom(_VALUE_SIZE // 2) + b"x" * (_VALUE_SIZE // 2) for _ in range(100)]
        for number in range(records):
            while True:
                try:
                    producer.produce(name, values[number % len(values)], key=b"%d" % (number % keys))
                    break
                except BufferError:
                    producer.poll(0.1)
        if producer.flush(60):
            raise SystemExit(f"topic {name} could not be filled")
        return name
