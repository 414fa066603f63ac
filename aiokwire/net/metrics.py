"""The counts of a client's connections."""

from __future__ import annotations

from typing import Final

from aiokwire.metrics import NODE, REQUEST, SERVER_ADDRESS, SERVER_PORT, Distribution, Histogram, Labels, Metric, Sample
from aiokwire.net.address import Address

CREATION: Final = Metric(
    "kafka.connection.creation", "counter", "{connection}", "Connections that became ready for requests."
)
FAILURE: Final = Metric(
    "kafka.connection.failure", "counter", "{connection}", "Attempts to connect that failed, by any cause."
)
CLOSE: Final = Metric("kafka.connection.close", "counter", "{connection}", "Ready connections that were closed.")
LOGIN: Final = Metric(
    "kafka.successful.authentication", "counter", "{login}", "Logins by SASL that the broker accepted."
)
LOGIN_FAILURE: Final = Metric(
    "kafka.failed.authentication", "counter", "{login}", "Connections that TLS or SASL refused."
)
RENEWAL: Final = Metric(
    "kafka.successful.reauthentication", "counter", "{login}", "Sessions of open connections that were renewed."
)
RENEWAL_FAILURE: Final = Metric(
    "kafka.failed.reauthentication",
    "counter",
    "{login}",
    "Sessions that could not be renewed; their connection is closed.",
)
OUTGOING: Final = Metric("kafka.outgoing.byte", "counter", "By", "Bytes of requests.")
INCOMING: Final = Metric("kafka.incoming.byte", "counter", "By", "Bytes of responses.")
LATENCY: Final = Metric(
    "kafka.node.request.latency",
    "histogram",
    "s",
    "Time from a request to its response; a fetch waits at the broker for up to `fetch_max_wait_ms`.",
    (REQUEST, NODE, SERVER_ADDRESS, SERVER_PORT),
)
THROTTLE: Final = Metric(
    "kafka.node.request.throttle.time",
    "counter",
    "s",
    "Time for which brokers throttled this client, by the quota of the request's kind.",
    (REQUEST, NODE, SERVER_ADDRESS, SERVER_PORT),
)
NETWORK_METRICS: Final = (
    CREATION,
    FAILURE,
    CLOSE,
    LOGIN,
    LOGIN_FAILURE,
    RENEWAL,
    RENEWAL_FAILURE,
    OUTGOING,
    INCOMING,
    LATENCY,
    THROTTLE,
)

Key = tuple[int | None, str]  # node, request


class NetworkCounts:
    """Counts the work of one client's connections, which call it on the client's loop.

    The connection for heartbeats, which belongs to another thread, is not counted here.
    """

    def __init__(self) -> None:
        self._connected = 0
        self._failed = 0
        self._closed = 0
        self._logged_in = 0
        self._refused = 0
        self._renewed = 0
        self._not_renewed = 0
        self._sent = 0  # bytes
        self._received = 0
        self._latency: dict[Key, Histogram] = {}
        self._throttled: dict[Key, float] = {}  # seconds

    def connected(self) -> None:
        """A connection is ready."""
        self._connected += 1

    def failed(self, *, refused: bool) -> None:
        """An attempt to connect failed; `refused`: by TLS or SASL."""
        self._failed += 1
        self._refused += refused

    def closed(self) -> None:
        """A ready connection was closed, by either side."""
        self._closed += 1

    def logged_in(self) -> None:
        """The broker accepted a login."""
        self._logged_in += 1

    def renewed(self, *, accepted: bool) -> None:
        """A login on an open connection ended."""
        self._renewed += accepted
        self._not_renewed += not accepted

    def sent(self, size: int) -> None:
        """A request of `size` bytes was written."""
        self._sent += size

    def answered(self, node_id: int | None, api: str, size: int, elapsed: float) -> None:
        """A response of `size` bytes arrived `elapsed` seconds after its request."""
        self._received += size
        histogram = self._latency.get((node_id, api))
        if histogram is None:
            histogram = self._latency[node_id, api] = LATENCY.new_histogram()
        histogram.observe(elapsed)

    def throttled(self, node_id: int | None, api: str, seconds: float) -> None:
        """The broker throttles this client for `seconds` because of a request."""
        key = (node_id, api)
        self._throttled[key] = self._throttled.get(key, 0.0) + seconds

    def latencies(self, api: str) -> dict[int | None, Distribution]:
        """Return the latency of a kind of request (`ProduceRequest`), by node."""
        return {node_id: one.read() for (node_id, name), one in list(self._latency.items()) if name == api}

    def samples(self, labels: Labels, addresses: dict[int, Address]) -> list[Sample]:
        """Return the metrics of this module; from any thread. `addresses` of the nodes."""
        found = [
            CREATION.sample(self._connected, labels),
            FAILURE.sample(self._failed, labels),
            CLOSE.sample(self._closed, labels),
            LOGIN.sample(self._logged_in, labels),
            LOGIN_FAILURE.sample(self._refused, labels),
            RENEWAL.sample(self._renewed, labels),
            RENEWAL_FAILURE.sample(self._not_renewed, labels),
            OUTGOING.sample(self._sent, labels),
            INCOMING.sample(self._received, labels),
        ]
        for (node_id, api), histogram in list(self._latency.items()):
            found.append(LATENCY.sample(histogram.read(), labels, name_of(api), *place_of(node_id, addresses)))
        for (node_id, api), seconds in list(self._throttled.items()):
            found.append(THROTTLE.sample(seconds, labels, name_of(api), *place_of(node_id, addresses)))
        return found


def name_of(api: str) -> str:
    """Return the name of a kind of request: "Produce"."""
    return api.removesuffix("Request")


def place_of(node_id: int | None, addresses: dict[int, Address]) -> tuple[str, str, str]:
    """Return the values of `NODE`, `SERVER_ADDRESS` and `SERVER_PORT`.

    A connection to a bootstrap address belongs to no node until the metadata names it.
    """
    if node_id is None:
        return "bootstrap", "", ""
    address = addresses.get(node_id)
    return (str(node_id), "", "") if address is None else (str(node_id), address.host, str(address.port))
