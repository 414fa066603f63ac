"""Metrics that clients push (KIP-714): subscriptions, the clients, and their last values.

A subscription is a config resource of type CLIENT_METRICS. It selects clients by `match`, and
requests `metrics` by prefixes of their names every `interval.ms`. What clients push is untrusted:
its size is bounded, invalid names are dropped, and idle clients are forgotten.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from aiokwire import otlp
from aiokwire.broker.configs import BrokerConfigs, client_metrics_keys
from aiokwire.broker.patterns import Budget, InvalidPattern, Pattern
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, ConfigurationError
from aiokwire.metrics import Distribution, Kind, Sample
from aiokwire.protocol import ZERO_UUID, uuid_text
from aiokwire.protocol.messages.push_telemetry import PushTelemetryRequest
from aiokwire.records import crc32c, decompress
from aiokwire.types import Compression

EVERYTHING: Final = "*"
MATCHED: Final = (
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
    "client_instance_id",
)
MAX_CLIENTS: Final = 10_000  # that are remembered; also the maximum of remembered connections
MAX_VALUES: Final = 200_000  # of all clients
IDLE_SECONDS: Final = 60.0  # at least, after which a client is forgotten
EXPANSION: Final = 4  # the factor of `telemetry.max.bytes` that a push may decompress to
RESERVED: Final = ("kafka", "messaging")  # prefixes of the broker's own names

Key = tuple[str, tuple[tuple[str, str], ...]]


class PushingClient(NamedTuple):
    """The properties by which subscriptions select clients."""

    client_id: str
    software_name: str
    software_version: str
    address: str
    port: str


class Subscription(NamedTuple):
    """The metrics that are requested of one client."""

    number: int
    requested: tuple[str, ...]
    interval_ms: int


@dataclasses.dataclass(slots=True)
class ClientInstance:
    """One client: its properties, and the values that it has pushed."""

    id: bytes
    client: PushingClient
    subscription: Subscription
    version: int  # of the subscriptions that it was matched with
    values: dict[Key, Sample] = dataclasses.field(default_factory=dict)
    received_ms: int = 0  # when the last push arrived, by the wall clock; 0: none
    is_terminated: bool = False
    asked_at: float | None = None  # the loop's time
    pushed_at: float | None = None
    last_error: ErrorCode = ErrorCode.NONE
    seen_ms: int = 0

    @property
    def id_text(self) -> str:
        """The id, as Kafka writes it."""
        return uuid_text(self.id)

    def seen(self, now_ms: int) -> None:
        """The client has sent a request."""
        self.seen_ms = now_ms

    def continues(self, before: ClientInstance) -> None:
        """Take over the values of the client's previous instance that are still requested."""
        self.received_ms, self.is_terminated = before.received_ms, before.is_terminated
        requested = self.subscription.requested
        is_everything = EVERYTHING in requested
        self.values = {key: one for key, one in before.values.items() if is_everything or key[0].startswith(requested)}

    def asked(self, now: float) -> None:
        """The client has requested its subscription."""
        self.asked_at, self.last_error = now, ErrorCode.NONE

    def pushed(self, now: float | None, code: ErrorCode, *, is_last: bool) -> None:
        """The client has pushed; `now` is None if it did so too early."""
        self.pushed_at = self.pushed_at if now is None else now
        self.last_error = code
        self.is_terminated = self.is_terminated or is_last

    def keep(self, values: dict[Key, Sample], now_ms: int) -> None:
        """Keep these values, received now."""
        self.values, self.received_ms = values, now_ms

    def samples(self) -> list[Sample]:
        """Return the last values, with the labels of the client."""
        labels = {"client_id": self.client.client_id, "client_instance_id": self.id_text}
        return [one._replace(labels={**one.labels, **labels}) for one in list(self.values.values())]

    def is_due(self, now: float, *, push: bool) -> bool:
        """Return whether the interval since the last request has passed. The first push after the
        subscription was requested may arrive at once."""
        if push and self.asked_at is not None and (self.pushed_at is None or self.asked_at > self.pushed_at):
            return True
        last = max((one for one in (self.asked_at, self.pushed_at) if one is not None), default=None)
        return last is None or now - last >= self.subscription.interval_ms / 1000


def check_subscription(configs: Mapping[str, str]) -> None:
    """Check the patterns of a subscription.

    Raises: ConfigurationError: one is malformed.
    """
    for name, text in _patterns(configs):
        if name not in MATCHED:
            raise ConfigurationError(f"Illegal client matching pattern: {name}: must be one of {', '.join(MATCHED)}")
        try:
            Pattern(text)
        except InvalidPattern as error:
            raise ConfigurationError(f"Illegal client matching pattern: {name}={text}: {error}") from None


def _patterns(configs: Mapping[str, str]) -> list[tuple[str, str]]:
    found = []
    for item in _list(configs, "match"):
        name, equals, text = item.partition("=")
        if not equals or not text.strip():
            raise ConfigurationError(f"Illegal client matching pattern: {item}: write NAME=PATTERN")
        found.append((name.strip(), text.strip()))
    return found


def _list(configs: Mapping[str, str], name: str) -> list[str]:
    return [item.strip() for item in configs.get(name, "").split(",") if item.strip()]


def is_matched(configs: Mapping[str, str], client: PushingClient, id_text: str) -> bool:
    """Return whether a subscription selects a client: all its patterns match whole values."""
    known = dict(zip(MATCHED, (*client, id_text), strict=True))
    try:
        budget = Budget()
        return all(Pattern(text, budget).fullmatch(known[name]) for name, text in _patterns(configs))
    except InvalidPattern:
        return False  # too expensive for this client


def subscription_of(
    subscriptions: Iterable[Mapping[str, str]], client: PushingClient, instance_id: bytes
) -> Subscription:
    """Return the metrics that all subscriptions that select a client request of it."""
    id_text = uuid_text(instance_id)
    requested: set[str] = set()
    interval = default = int(client_metrics_keys()["interval.ms"].default or 0)
    for configs in subscriptions:
        if is_matched(configs, client, id_text):
            requested.update(_list(configs, "metrics"))
            interval = min(interval, int(configs.get("interval.ms", default)))
    wanted = (EVERYTHING,) if EVERYTHING in requested else tuple(sorted(requested))
    number = crc32c(f"{wanted}{interval}".encode()) ^ crc32c(instance_id)
    return Subscription(number - (1 << 32) if number >= 1 << 31 else number, wanted, interval)


class ClientMetrics:
    """Receives the metrics of clients. Requests call it on the loop; any thread may read it."""

    def __init__(self, configs: BrokerConfigs, rng: random.Random) -> None:
        self._configs = configs
        self._rng = rng
        self._version = 1
        self._instances: dict[bytes, ClientInstance] = {}  # in the order in which they were last seen
        self._held = 0  # values of all instances
        self._software: dict[int, tuple[str, str]] = {}  # by connection

    @property
    def max_bytes(self) -> int:
        """The largest push that is accepted, compressed."""
        return self._configs.integer("telemetry.max.bytes")

    def subscriptions_changed(self) -> None:
        """Match every client again, at its next request."""
        self._version += 1

    def note_software(self, connection_id: int, name: str, version: str) -> None:
        """Remember the software of the client of a connection."""
        self._software[connection_id] = (name, version)
        if len(self._software) > MAX_CLIENTS:
            del self._software[next(iter(self._software))]

    def software_of(self, connection_id: int) -> tuple[str, str]:
        """Return the name and version of the client of a connection; empty if it gave none."""
        return self._software.get(connection_id, ("", ""))

    # --- requests -----------------------------------------------------------------------------------------------------

    def instance(self, instance_id: bytes, client: PushingClient) -> ClientInstance:
        """Return the client of that id, or a new one, with a new id instead of the zero id."""
        while instance_id == ZERO_UUID:
            instance_id = self._rng.randbytes(16)
        found = self._instances.pop(instance_id, None)
        if found is None or found.version != self._version:
            subscription = subscription_of(self._configs.client_metrics.values(), client, instance_id)
            found = self._matched_again(found, ClientInstance(instance_id, client, subscription, self._version))
        now = wall_ms()
        found.seen(now)
        self._instances[instance_id] = found
        self._forget_idle(now)
        return found

    def _matched_again(self, before: ClientInstance | None, now: ClientInstance) -> ClientInstance:
        """Return a client with its new subscription, and the values that it still requests."""
        if before is not None:
            now.continues(before)
            self._held += len(now.values) - len(before.values)
        return now

    def _forget_idle(self, now_ms: int) -> None:
        """Forget idle clients, and those beyond a bound: the ones seen longest ago."""
        while len(self._instances) > 1:
            key, one = next(iter(self._instances.items()))
            if not (is_idle(one, now_ms) or len(self._instances) > MAX_CLIENTS or self._held > MAX_VALUES):
                return
            self._held -= len(one.values)
            del self._instances[key]

    def check_request(self, instance: ClientInstance, now: float) -> None:
        """Check that a client may request its subscription now.

        Raises: BrokerError: its requests are too frequent.
        """
        retried = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if not instance.is_due(now, push=False) and instance.last_error not in retried:
            raise BrokerError(
                "the client requested its subscription again before the push interval had passed",
                code=ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            )
        instance.asked(now)

    def check_push(self, instance: ClientInstance, request: PushTelemetryRequest, now: float) -> None:
        """Check a push before its metrics are read.

        Raises: BrokerError: the push is rejected.
        """
        is_early = instance.is_terminated or (not instance.is_due(now, push=True) and not request.terminating)
        code = self._fault_of(instance, request, is_early=is_early)
        instance.pushed(None if is_early else now, code, is_last=request.terminating)
        if code is not ErrorCode.NONE:
            raise BrokerError("the broker rejected the push", code=code)

    def _fault_of(self, instance: ClientInstance, request: PushTelemetryRequest, *, is_early: bool) -> ErrorCode:
        if is_early:
            return ErrorCode.INVALID_REQUEST if instance.is_terminated else ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if request.subscription_id != instance.subscription.number:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if request.compression_type not in set(Compression):
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        return ErrorCode.TELEMETRY_TOO_LARGE if len(request.metrics) > self.max_bytes else ErrorCode.NONE

    def decode(self, metrics: bytes, compression: int) -> list[otlp.Pushed]:
        """Return the values in a push. Slow: call it in a thread.

        Raises: CorruptRecord: they are malformed, or decompress to more than four times the limit.
        """
        data = decompress(compression, metrics, EXPANSION * self.max_bytes) if compression else metrics
        return otlp.decode(data)

    def store(self, instance: ClientInstance, pushed: Iterable[otlp.Pushed], now_ms: int) -> None:
        """Keep the values of a client; counts since its last push are added up."""
        fresh: dict[Key, Sample] = {}
        for sample, is_delta in pushed:
            if not sample.metric.name.startswith(RESERVED):
                key = (sample.metric.name, tuple(sorted(sample.labels.items())))
                before = fresh.get(key) or instance.values.get(key)
                fresh[key] = _sum(before, sample) if is_delta and before is not None else sample
        kept = {**instance.values, **fresh}
        if len(kept) > otlp.MAX_POINTS:  # labels that change: only the last push counts
            kept = fresh
        if self._instances.get(instance.id) is instance:
            self._held += len(kept) - len(instance.values)
        instance.keep(kept, now_ms)

    # --- values -------------------------------------------------------------------------------------------------------

    def instances(self) -> list[ClientInstance]:
        """Return the clients that are not idle."""
        now = wall_ms()
        return [one for one in list(self._instances.values()) if not is_idle(one, now)]

    def samples(self) -> list[Sample]:
        """Return the last values of all clients; of each metric, those of its first kind."""
        kinds: dict[str, Kind] = {}
        return [
            sample
            for one in self.instances()
            for sample in one.samples()
            if kinds.setdefault(sample.metric.name.removesuffix(".total"), sample.metric.kind) == sample.metric.kind
        ]


def is_idle(instance: ClientInstance, now_ms: int) -> bool:
    """Return whether a client has sent nothing for three intervals, and a minute at least."""
    return now_ms - instance.seen_ms > max(1000 * IDLE_SECONDS, 3 * instance.subscription.interval_ms)


def _sum(before: Sample, now: Sample) -> Sample:
    """Return a counter or histogram with the counts since then."""
    if isinstance(before.value, Distribution) and isinstance(now.value, Distribution):
        if before.value.bounds != now.value.bounds:
            return now
        return now._replace(value=before.value.plus(now.value))
    if isinstance(before.value, Distribution) or isinstance(now.value, Distribution):
        return now
    return now._replace(value=before.value + now.value)
