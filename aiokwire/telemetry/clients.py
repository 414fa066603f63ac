"""The clients whose metrics are exported."""

from __future__ import annotations

from typing import ClassVar, Protocol

from aiokwire.metrics import Metric, Sample, merged


class Measured(Protocol):
    """Has metrics: a producer, consumer, admin client, `Client`, or the embedded broker."""

    METRICS: ClassVar[tuple[Metric, ...]]
    """The metrics that it may have."""

    def metrics(self) -> list[Sample]:
        """Return all metrics now, from any thread."""
        ...


class Clients:
    """Clients that may come and go while they are measured; usable from any thread."""

    def __init__(self, *clients: Measured) -> None:
        self._clients = clients

    def add(self, client: Measured) -> None:
        """Also export the metrics of another client; has no effect if they are exported already."""
        if client not in self._clients:
            self._clients = (*self._clients, client)

    def remove(self, client: Measured) -> None:
        """Stop exporting the metrics of a client. Its counters disappear."""
        self._clients = tuple(one for one in self._clients if one is not client)

    def samples(self) -> list[Sample]:
        """Return the metrics of all clients; those with the same `client_id` are added up."""
        return merged(sample for client in self._clients for sample in client.metrics())

    def definitions(self) -> list[Metric]:
        """Return the metrics that the clients may have, each once."""
        return list({metric.name: metric for client in self._clients for metric in client.METRICS}.values())
