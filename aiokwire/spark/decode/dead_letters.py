"""Undecodable records, sent unchanged to a dead-letter topic by the task that read them.

Used by the readers. They are acknowledged before the rows of their batch are passed to Spark, so
that a finished task has lost none. A repeated task sends its records again: their headers name the
original offsets, which identifies duplicates.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import pyarrow as pa

from aiokwire.cluster import ClientConfig
from aiokwire.consumer import ConsumerConfig
from aiokwire.errors import KafkaError
from aiokwire.producer import Producer, ProducerConfig
from aiokwire.spark.decode.decoding import Fault, Rejected
from aiokwire.spark.session import Session

HEADERS: Final = "aiokwire.dead."  # topic, partition, offset, side (key or value), error
MOST_OF_AN_ERROR: Final = 1000
CLOSE_TIMEOUT: Final = 5.0

_HEADERS_TYPE: Final = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))


class DeadLettersFailed(KafkaError):
    """Undecodable records could not be sent to the dead-letter topic."""


class DeadLetters:
    """Sends the undecodable records of one task; connects for the first of them."""

    def __init__(self, session: Session, config: ConsumerConfig, topic: str) -> None:
        self._session = session
        self._config = producer_config(config)
        self._topic = topic
        self._producer: Producer[Any, Any] | None = None

    def send(self, raw: pa.RecordBatch, rejected: Rejected) -> None:
        """Send the rejected rows of a batch, and wait until they are acknowledged.

        Raises: DeadLettersFailed: not all were acknowledged.
        """
        if rejected:
            try:
                self._session.wait(self._deliver(letters(raw, rejected)))
            except KafkaError as error:
                row = min(rejected)
                topic, partition, offset = (raw.column(name)[row].as_py() for name in ("topic", "partition", "offset"))
                raise DeadLettersFailed(
                    f"{len(rejected)} undecodable record(s) of {topic}, the first in [{partition}] at offset {offset}, "
                    f"could not be sent to deadLetterTopic {self._topic!r}: {error}"
                ) from error

    async def _deliver(self, batch: pa.RecordBatch) -> None:
        if self._producer is None:
            producer: Producer[Any, Any] = Producer(config=self._config)
            await producer.start()
            self._producer = producer
        (await self._producer.send_arrow(self._topic, batch)).raise_for_errors()

    def close(self) -> None:
        """Close the producer; `send` has waited for every acknowledgement."""
        producer, self._producer = self._producer, None
        if producer is not None:
            self._session.wait(producer.close(timeout=CLOSE_TIMEOUT))


def producer_config(config: ConsumerConfig) -> ProducerConfig:
    """Return the config of an idempotent producer with the reader's cluster and timeouts."""
    shared = {field.name: getattr(config, field.name) for field in dataclasses.fields(ClientConfig) if field.init}
    timeout_ms = max(config.default_api_timeout_ms, config.request_timeout_ms)
    return ProducerConfig(**shared, linger_ms=0, delivery_timeout_ms=timeout_ms)


def letters(raw: pa.RecordBatch, rejected: Rejected) -> pa.RecordBatch:
    """Return the rejected rows unchanged, with headers that give the reason and the offset."""
    rows = sorted(rejected)
    chosen = raw.take(pa.array(rows, pa.int64()))
    headers = [
        [*(original or ()), *_reason_headers(place, rejected[row])]
        for row, original, place in zip(
            rows,
            chosen.column("headers").to_pylist(),
            chosen.select(["topic", "partition", "offset"]).to_pylist(),
            strict=True,
        )
    ]
    columns = {name: chosen.column(name) for name in ("key", "value", "timestamp")}
    return pa.RecordBatch.from_pydict(columns | {"headers": pa.array(headers, _HEADERS_TYPE)})


def _reason_headers(place: dict[str, Any], fault: Fault) -> list[dict[str, Any]]:
    values = {**place, "side": fault.side, "error": fault.reason[:MOST_OF_AN_ERROR]}
    return [{"name": HEADERS + name, "value": str(value).encode(errors="replace")} for name, value in values.items()]
