"""Which client does how much of which task: enough for a few seconds each, so that slow ones do not stretch a run."""

from __future__ import annotations

from dataclasses import dataclass

CLIENTS = ("aiokwire", "aiokafka", "confluent", "confluent-aio", "kafka-python")
BASELINE = "aiokafka"
FILLER = "confluent"  # writes what the consumers read: by a peer, so that nobody reads batches made to its own measure

_COUNTS = {
    "produce": {
        "aiokwire": 4_000_000,
        "aiokafka": 500_000,
        "confluent": 1_500_000,
        "confluent-aio": 250_000,
        "kafka-python": 150_000,
    },
    "consume": {
        "aiokwire": 4_000_000,
        "aiokafka": 1_500_000,
        "confluent": 1_000_000,
        "confluent-aio": 600_000,
        "kafka-python": 400_000,
    },
    "iterate": {"aiokwire": 4_000_000, "aiokafka": 400_000},
}
_SENDS = {
    1: {"aiokwire": 5_000, "aiokafka": 5_000, "confluent-aio": 2, "kafka-python": 1_000},
    200: {"aiokwire": 600_000, "aiokafka": 200_000, "confluent-aio": 800},
    5_000: {"aiokwire": 600_000, "aiokafka": 200_000, "confluent-aio": 40_000},
}
FILL = max(*_COUNTS["consume"].values(), *_COUNTS["iterate"].values())


@dataclass(frozen=True, slots=True)
class Row:
    """One table of the report: a task with so many concurrent tasks, and how many records each client gets."""

    name: str
    task: str
    tasks: int
    counts: dict[str, int]


def rows(groups: list[str], clients: list[str], scale: float) -> list[Row]:
    """The rows of these groups (produce, consume, send), limited to these clients; `scale` multiplies their counts."""
    chosen: list[Row] = []
    if "produce" in groups:
        chosen.append(Row("produce", "produce", 1, _COUNTS["produce"]))
    if "consume" in groups:
        chosen.append(Row("consume, in lists", "consume", 1, _COUNTS["consume"]))
        chosen.append(Row("consume, async for", "iterate", 1, _COUNTS["iterate"]))
    if "send" in groups:
        chosen += [Row(f"awaited sends, {tasks:,} tasks", "send", tasks, counts) for tasks, counts in _SENDS.items()]
    return [
        Row(
            row.name,
            row.task,
            row.tasks,
            {client: max(row.tasks, int(n * scale)) for client, n in row.counts.items() if client in clients},
        )
        for row in chosen
    ]


def order(clients: list[str], turn: int) -> list[str]:
    """Who comes when in one repetition: each repetition begins with another client, every second one runs backwards."""
    if not clients:
        return []
    shift = turn % len(clients)
    turned = clients[shift:] + clients[:shift]
    return turned[::-1] if turn % 2 else turned
