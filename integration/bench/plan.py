"""The number of records for each client and task: enough for a few seconds each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

CLIENTS = ("aiokwire", "aiokafka", "confluent", "confluent-aio", "kafka-python", "franz-go", "java")
SUBJECT = "aiokwire"
BEFORE = "before"  # aiokwire of another checkout
BASELINE = "aiokafka"
FILLER = "confluent"  # writes the consumers' topic: a peer, so that aiokwire does not read its own batches


@dataclass(frozen=True, slots=True)
class Row:
    """One table of the report: its task, and each client's number of records.

    `name` and `group` choose it.
    """

    name: str
    group: str
    title: str
    task: str
    counts: dict[str, int]
    tasks: int = 1
    value_size: int = 100
    compression: str = "none"


_PRODUCE = {
    "aiokwire": 4_000_000,
    "aiokafka": 500_000,
    "confluent": 1_500_000,
    "confluent-aio": 250_000,
    "kafka-python": 150_000,
    "franz-go": 4_000_000,
    "java": 4_000_000,
}
_PRODUCE_1K = {
    "aiokwire": 800_000,
    "aiokafka": 200_000,
    "confluent": 600_000,
    "confluent-aio": 150_000,
    "kafka-python": 100_000,
    "franz-go": 800_000,
    "java": 800_000,
}
_CONSUME = {
    "aiokwire": 4_000_000,
    "aiokafka": 1_500_000,
    "confluent": 1_000_000,
    "confluent-aio": 600_000,
    "kafka-python": 400_000,
    "franz-go": 4_000_000,
    "java": 4_000_000,
}
_CONSUME_1K = {name: count // 4 for name, count in _CONSUME.items()}
_ITERATE = {"aiokwire": 4_000_000, "aiokafka": 400_000}
_ARROW = {"aiokwire": 8_000_000}
_SEND = {"aiokwire": 5_000, "aiokafka": 5_000, "confluent-aio": 2, "kafka-python": 1_000, "franz-go": 5_000}
_SEND_200 = {"aiokwire": 600_000, "aiokafka": 200_000, "confluent-aio": 800, "franz-go": 300_000}
_SEND_5000 = {"aiokwire": 600_000, "aiokafka": 200_000, "confluent-aio": 40_000, "franz-go": 300_000}

ROWS = (
    Row("produce", "produce", "produce, 100 B", "produce", _PRODUCE),
    Row("produce-lz4", "produce-lz4", "produce, 100 B, lz4", "produce", _PRODUCE, compression="lz4"),
    Row("produce-1k", "produce-1k", "produce, 1 KiB", "produce", _PRODUCE_1K, value_size=1024),
    Row("consume-lists", "consume", "consume, in lists", "consume", _CONSUME),
    Row("consume-1k", "consume-1k", "consume, 1 KiB, in lists", "consume", _CONSUME_1K, value_size=1024),
    Row("consume-for", "consume", "consume, async for", "iterate", _ITERATE),
    Row(
        "consume-arrow",
        "consume",
        "consume, Arrow batches (the topic twice, from its beginning)",
        "arrow",
        _ARROW,
    ),
    Row("consume-getarrow", "consume", "consume, getarrow (the same records)", "getarrow", _ARROW),
    Row("send-1", "send", "awaited sends, 1 task", "send", _SEND),
    Row("send-200", "send", "awaited sends, 200 tasks", "send", _SEND_200, tasks=200),
    Row("send-5000", "send", "awaited sends, 5,000 tasks", "send", _SEND_5000, tasks=5_000),
)
FILL = max(*_CONSUME.values(), *_ITERATE.values())
NAMES = tuple(dict.fromkeys(name for row in ROWS for name in (row.group, row.name)))


def rows(names: Sequence[str], clients: Sequence[str], scale: float) -> list[Row]:
    """Return the rows of these names or groups, for these clients only.

    `scale` multiplies their counts.
    """
    chosen = [row for row in ROWS if row.name in names or row.group in names]
    return [
        replace(row, counts={name: max(row.tasks, int(n * scale)) for name, n in row.counts.items() if name in clients})
        for row in chosen
        if not row.counts.keys().isdisjoint(clients)
    ]


def with_before(row: Row) -> Row:
    """Add aiokwire of the other checkout to a row, with the same number of records."""
    return replace(row, counts={**row.counts, BEFORE: row.counts[SUBJECT]}) if SUBJECT in row.counts else row


def with_pythons(row: Row, names: Sequence[str]) -> Row:
    """Add aiokwire on other interpreters to a row, with the same number of records."""
    return (
        replace(row, counts={**row.counts, **dict.fromkeys(names, row.counts[SUBJECT])})
        if SUBJECT in row.counts
        else row
    )


def with_protocols(row: Row, protocols: Sequence[str]) -> Row:
    """Add each client once more for each security protocol, as "client+PROTOCOL"."""
    return replace(
        row, counts={name + end: n for name, n in row.counts.items() for end in ("", *(f"+{one}" for one in protocols))}
    )


def baseline(clients: Sequence[str]) -> str:
    """Return the default client to compare with: aiokafka, or else the first peer."""
    peers = [client for client in clients if client != SUBJECT]
    return BASELINE if BASELINE in peers or not peers else peers[0]


def order(clients: list[str], turn: int) -> list[str]:
    """Return the order of clients in a repetition.

    Each repetition starts with another client, and every second one is reversed.
    """
    if not clients:
        return []
    shift = turn % len(clients)
    turned = clients[shift:] + clients[:shift]
    return turned[::-1] if turn % 2 else turned
