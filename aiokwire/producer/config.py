"""The producer's options, with Kafka's names; checked when a producer is created."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from aiokwire.backoff import Backoff
from aiokwire.cluster import ClientConfig, ClientOptions
from aiokwire.config import INT32_MAX, documents_options, require_bool, require_int, require_number, require_type
from aiokwire.errors import ConfigurationError, InvalidArgument
from aiokwire.producer.partitioner import Partitioner, parse_partitioner
from aiokwire.records import check_level
from aiokwire.types import Acks, Compression, Headers, K, V

T = TypeVar("T")

Serialized = bytes | bytearray | memoryview | None
# Returns the bytes of an object, or an awaitable of them. With three required arguments it also receives the topic and
# the record's headers.
Serializer = (
    Callable[[T], Serialized | Awaitable[Serialized]] | Callable[[T, str, Headers], Serialized | Awaitable[Serialized]]
)

# A request with batches of many partitions ends here, well below what brokers accept.
MAX_REQUEST_BYTES = 100 * 1024 * 1024
# The first pause in seconds (unless retry_backoff_ms is shorter) before a request of a transaction is retried: the
# coordinator completes a transaction within milliseconds, and the next one waits for that.
FIRST_TRANSACTIONAL_PAUSE = 0.005


@documents_options()
@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class ProducerConfig(ClientConfig, Generic[K, V]):
    """Every option of a producer; times in milliseconds, sizes in bytes.

    Raises: ConfigurationError: an option is out of its range, or contradicts another one.
    """

    acks: Acks | int | str = Acks.ALL
    """Which replicas must have a record before it is delivered: 0 none, 1 the leader, "all" every in-sync replica."""
    linger_ms: float = 5.0
    """How long a batch waits for more records. An awaited `send` does not wait it out when its broker is idle."""
    batch_size: int = 1_000_012
    """The largest batch, uncompressed. Memory grows with the records, so that a small batch takes little."""
    max_request_size: int = 1024 * 1024
    """The largest record, uncompressed: key, value and headers together."""
    buffer_memory: int = 32 * 1024 * 1024
    """The most bytes of records that the producer holds, those in flight included."""
    delivery_timeout_ms: float = 120_000.0
    """One deadline from the call to the acknowledgement of its record: the wait for room, metadata, linger and retries
    together."""
    allow_auto_create_topics: bool = True
    """Whether sending to an unknown topic may create it; the broker decides (`auto.create.topics.enable`). Brokers
    before 0.11 create it regardless of this option."""
    unknown_topic_timeout_ms: float = 10_000
    """How long brokers may report that a topic does not exist before records for it fail."""
    max_in_flight_requests_per_connection: int = 5
    """The most Produce requests in flight to one broker."""
    enable_idempotence: bool | None = None
    """Whether retries cause no duplicates, and order is kept with several batches in flight. None: if acks="all", at
    most five requests are in flight, and the broker supports it; True: fail if the broker does not."""
    transactional_id: str | None = None
    """Makes the producer transactional: records are sent within `producer.transaction()`. The id names the instance
    across restarts: a producer that starts with it fences the previous one, and ends the transaction that one left
    open."""
    transaction_timeout_ms: int = 60_000
    """How long a transaction may be open before the coordinator aborts it; also the limit of each delivery in it."""
    compression_type: Compression | str | int = Compression.NONE
    """The codec of batches: none, gzip, snappy, lz4 or zstd."""
    compression_level: int | None = None
    """The codec's level; None: the codec's default. snappy has no levels."""
    partitioner: Partitioner | str = "default"
    """Chooses the partition of a record that names none: "default" (murmur2 of the key as in Java; without a key,
    sticky, spread by load), "round_robin", one of librdkafka's ("consistent_random", its default, "consistent",
    "murmur2", "murmur2_random", "fnv1a", "fnv1a_random"; what they place at random is sticky here), or an object or
    function `(topic, key, value, partitions) -> int`."""
    key_serializer: Serializer[K] | None = None
    """Converts each key to bytes: a function of `(key)` or `(key, topic, headers)`, sync or async; without it, keys are
    bytes."""
    value_serializer: Serializer[V] | None = None
    """Converts each value to bytes, in the same way; without it, values are bytes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "acks", _parse_acks(self.acks))
        object.__setattr__(self, "compression_type", _parse_compression(self.compression_type))
        object.__setattr__(self, "partitioner", parse_partitioner(self.partitioner))
        require_number("linger_ms", self.linger_ms, minimum=0)
        require_int("batch_size", self.batch_size, minimum=0, maximum=INT32_MAX)
        require_int("max_request_size", self.max_request_size, minimum=1, maximum=INT32_MAX - 1024)
        require_int("buffer_memory", self.buffer_memory, minimum=1)
        require_number("delivery_timeout_ms", self.delivery_timeout_ms, minimum=1)
        require_number("unknown_topic_timeout_ms", self.unknown_topic_timeout_ms, minimum=0)
        require_int("max_in_flight_requests_per_connection", self.max_in_flight_requests_per_connection, minimum=1)
        if self.enable_idempotence is not None:
            require_bool("enable_idempotence", self.enable_idempotence)
        for name in ("key_serializer", "value_serializer"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise ConfigurationError(
                    f"{name} must be a function from an object to bytes, not {getattr(self, name)!r}"
                )
        self._check_transactional()
        self._check_compression_level()
        self._check_contradictions()

    def _check_transactional(self) -> None:
        require_int("transaction_timeout_ms", self.transaction_timeout_ms, minimum=1, maximum=INT32_MAX)
        if self.transactional_id is None:
            return
        require_type("transactional_id", self.transactional_id, str, "a str or None")
        if not self.transactional_id:
            raise ConfigurationError(
                "transactional_id must not be empty; leave it out for a producer without transactions"
            )
        if self.enable_idempotence is False:
            raise ConfigurationError("transactional_id needs idempotence: leave out enable_idempotence=False")
        self._check_idempotent("transactional_id")
        if self.transaction_timeout_ms <= self.linger_ms:
            raise ConfigurationError(
                f"transaction_timeout_ms ({self.transaction_timeout_ms}) must be longer than linger_ms "
                f"({self.linger_ms})"
            )

    def _check_compression_level(self) -> None:
        if self.compression_level is not None:
            require_type("compression_level", self.compression_level, int, "an int or None")
        try:
            check_level(int(self.codec), self.compression_level)
        except InvalidArgument as error:
            raise ConfigurationError(f"compression_level: {error}") from None

    def _check_contradictions(self) -> None:
        if self.buffer_memory < self.max_request_size + 1024:
            raise ConfigurationError(
                f"buffer_memory ({self.buffer_memory}) must hold at least one record of max_request_size "
                f"({self.max_request_size}) and 1 KiB"
            )
        if self.delivery_timeout_ms <= self.linger_ms:
            raise ConfigurationError(
                f"delivery_timeout_ms ({self.delivery_timeout_ms}) must be longer than linger_ms ({self.linger_ms})"
            )
        if self.enable_idempotence:
            self._check_idempotent("enable_idempotence=True")

    def _check_idempotent(self, option: str) -> None:
        if self.acks is not Acks.ALL:
            raise ConfigurationError(f'{option} needs acks="all"')
        if self.max_in_flight_requests_per_connection > 5:
            raise ConfigurationError(
                f"{option} allows at most 5 max_in_flight_requests_per_connection: a broker remembers the last "
                "five batches of a producer"
            )

    # --- for the other modules: seconds, parsed choices -------------------------------------------------------------

    @property
    def codec(self) -> Compression:
        """The codec, parsed."""
        return Compression.parse(self.compression_type)

    @property
    def acknowledgements(self) -> Acks:
        """`acks`, parsed."""
        return _parse_acks(self.acks)

    @property
    def linger(self) -> float:
        """Seconds that a batch waits for more records."""
        return self.linger_ms / 1000

    @property
    def delivery_timeout(self) -> float:
        """Seconds until an accepted record fails; at most `transaction_timeout` in transactions."""
        if self.transactional_id is not None:
            return min(self.delivery_timeout_ms, self.transaction_timeout_ms) / 1000
        return self.delivery_timeout_ms / 1000

    @property
    def delivery_timeout_option(self) -> str:
        """The option that `delivery_timeout` comes from, with its value, for messages."""
        if self.delivery_timeout * 1000 < self.delivery_timeout_ms:
            return f"transaction_timeout_ms={self.transaction_timeout_ms:g}"
        return f"delivery_timeout_ms={self.delivery_timeout_ms:g}"

    @property
    def unknown_topic_timeout(self) -> float:
        """Seconds until records for a topic that does not exist fail."""
        return self.unknown_topic_timeout_ms / 1000

    @property
    def transaction_timeout(self) -> float:
        """Seconds that a transaction may be open."""
        return self.transaction_timeout_ms / 1000

    @property
    def wants_idempotence(self) -> bool:
        """Whether the producer requests a producer id."""
        if self.enable_idempotence is None:
            return self.acks is Acks.ALL and self.max_in_flight_requests_per_connection <= 5
        return self.enable_idempotence

    def new_retry_backoff(self, rng: random.Random) -> Backoff:
        """Return pauses between attempts of a batch, or a transaction request (starts quickly)."""
        initial, longest = self.retry_backoff_ms / 1000, self.retry_backoff_max_ms / 1000
        if self.transactional_id is not None:
            initial = min(initial, FIRST_TRANSACTIONAL_PAUSE)
        return Backoff(initial, longest, rng=rng)


def _parse_acks(given: object) -> Acks:
    try:
        return Acks.parse({"-1": -1, "0": 0, "1": 1}.get(given, given) if isinstance(given, str) else given)
    except ConfigurationError:
        raise ConfigurationError(f'acks must be 0, 1 or "all", not {given!r}') from None


def _parse_compression(given: object) -> Compression:
    try:
        return Compression.parse(given)
    except ConfigurationError as error:
        raise ConfigurationError(f"compression_type {error}") from None


class ProducerOptions(ClientOptions, total=False):
    """Keyword options of a producer except its serializers, for type checkers (PEP 692)."""

    acks: Acks | int | str
    linger_ms: float
    batch_size: int
    max_request_size: int
    buffer_memory: int
    delivery_timeout_ms: float
    unknown_topic_timeout_ms: float
    max_in_flight_requests_per_connection: int
    enable_idempotence: bool | None
    transactional_id: str | None
    transaction_timeout_ms: int
    compression_type: Compression | str | int
    compression_level: int | None
    partitioner: Partitioner | str
