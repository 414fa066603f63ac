"""The counts of a broker's requests and connections, and its metrics."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from aiokwire.error_codes import ErrorCode
from aiokwire.metrics import DESTINATION, ERROR_TYPE, PARTITION, REQUEST, Metric, Sample
from aiokwire.protocol import ApiKey, Response

if TYPE_CHECKING:
    from aiokwire.broker.state import BrokerState

STATE: Final = "kafka.group.state"

REQUESTS: Final = Metric(
    "kafka.network.request", "counter", "{request}", "Requests that the broker has received.", (REQUEST,)
)
ERRORS: Final = Metric(
    "kafka.network.error",
    "counter",
    "{error}",
    "Error codes in responses: of the request, and of the topics, partitions and groups in it.",
    (REQUEST, ERROR_TYPE),
)
BYTES_IN: Final = Metric("kafka.server.bytes.in", "counter", "By", "Bytes of requests.", (REQUEST,))
BYTES_OUT: Final = Metric("kafka.server.bytes.out", "counter", "By", "Bytes of responses.", (REQUEST,))
CONNECTIONS: Final = Metric("kafka.server.connection.count", "gauge", "{connection}", "Connections of clients.")
CREATION: Final = Metric(
    "kafka.server.connection.creation", "counter", "{connection}", "Connections that the broker has accepted."
)
TOPICS: Final = Metric("kafka.server.topic.count", "gauge", "{topic}", "Topics, internal ones included.")
LOG_SIZE: Final = Metric(
    "kafka.log.size", "gauge", "By", "Bytes of the records of a partition.", (DESTINATION, PARTITION)
)
LOG_START: Final = Metric(
    "kafka.log.start.offset", "gauge", "{offset}", "Offset of the first record that is kept.", (DESTINATION, PARTITION)
)
LOG_END: Final = Metric(
    "kafka.log.end.offset",
    "gauge",
    "{offset}",
    "Offset of the next record: its rate is that of produced records.",
    (DESTINATION, PARTITION),
)
GROUPS: Final = Metric("kafka.group.count", "gauge", "{group}", "Groups by their state.", (STATE,))
METRICS: Final = (
    REQUESTS,
    ERRORS,
    BYTES_IN,
    BYTES_OUT,
    CONNECTIONS,
    CREATION,
    TOPICS,
    LOG_SIZE,
    LOG_START,
    LOG_END,
    GROUPS,
)

# The APIs that fail by partition: where their topics are, and the partitions of these. A fetch also fails as a whole.
BY_PARTITION: Final[dict[int, tuple[attrgetter[Any], attrgetter[Any]]]] = {
    ApiKey.PRODUCE: (attrgetter("responses"), attrgetter("partition_responses")),
    ApiKey.FETCH: (attrgetter("responses"), attrgetter("partitions")),
    ApiKey.LIST_OFFSETS: (attrgetter("topics"), attrgetter("partitions")),
    ApiKey.OFFSET_COMMIT: (attrgetter("topics"), attrgetter("partitions")),
    ApiKey.TXN_OFFSET_COMMIT: (attrgetter("topics"), attrgetter("partitions")),
}


class _Requests:
    """The counts of one API."""

    __slots__ = ("bytes_in", "bytes_out", "count", "errors")

    def __init__(self) -> None:
        self.count = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.errors: dict[int, int] = {}  # by their code

    def failed(self, code: int) -> None:
        """A response has an error code."""
        self.errors[code] = self.errors.get(code, 0) + 1


class BrokerCounts:
    """Counts requests and responses of the connections of all nodes, which call it on the loop."""

    def __init__(self) -> None:
        self._requests: dict[int, _Requests] = {}  # by API
        self._opened = 0
        self._closed = 0

    def opened(self) -> None:
        """A connection was accepted."""
        self._opened += 1

    def closed(self) -> None:
        """An accepted connection was closed."""
        self._closed += 1

    def received(self, api: int, size: int) -> None:
        """A request of `size` bytes arrived."""
        requests = self._requests.get(api) or self._add(api)
        requests.count += 1
        requests.bytes_in += size

    def answered(self, api: int, response: Response, size: int) -> None:
        """A response of `size` bytes was written."""
        requests = self._requests.get(api) or self._add(api)
        requests.bytes_out += size
        by_partition = BY_PARTITION.get(api)
        if by_partition is None or api == ApiKey.FETCH:
            for code in response.error_codes():
                if code:
                    requests.failed(code)
        if by_partition is not None:
            topics, partitions = by_partition
            for topic in topics(response):
                for partition in partitions(topic):
                    if partition.error_code:
                        requests.failed(partition.error_code)

    def _add(self, api: int) -> _Requests:
        requests = self._requests[api] = _Requests()
        return requests

    def samples(self) -> list[Sample]:
        """Return the metrics that are counted; from any thread."""
        found = [CONNECTIONS.sample(self._opened - self._closed, {}), CREATION.sample(self._opened, {})]
        for api, requests in list(self._requests.items()):
            name = "".join(word.capitalize() for word in ApiKey(api).name.split("_"))
            found.append(REQUESTS.sample(requests.count, {}, name))
            found.append(BYTES_IN.sample(requests.bytes_in, {}, name))
            found.append(BYTES_OUT.sample(requests.bytes_out, {}, name))
            for code, count in list(requests.errors.items()):
                found.append(ERRORS.sample(count, {}, name, ErrorCode.of(code).name))
        return found


def samples_of(state: BrokerState) -> list[Sample]:
    """Return the metrics of a broker; from any thread."""
    topics = list(state.topics)
    found = [*state.counts.samples(), TOPICS.sample(len(topics), {})]
    for topic in topics:
        for partition in list(topic.partitions):
            place = (topic.name, str(partition.index))
            found.append(LOG_SIZE.sample(partition.log.size, {}, *place))
            found.append(LOG_START.sample(partition.log.log_start_offset, {}, *place))
            found.append(LOG_END.sample(partition.log.end_offset, {}, *place))
    by_state: dict[str, int] = {}
    for name in state.groups.states():
        by_state[name] = by_state.get(name, 0) + 1
    found += [GROUPS.sample(count, {}, name) for name, count in by_state.items()]
    return found if state.client_metrics is None else found + state.client_metrics.samples()
