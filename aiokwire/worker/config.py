"""Options of a worker: its own, and those of its consumer and its producer."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import math
import random
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from aiokwire.cluster import ClientConfig
from aiokwire.config import INT32_MAX, documents_options, require_int, require_number, require_type
from aiokwire.consumer import ConsumerConfig, ConsumerOptions
from aiokwire.errors import ConfigurationError
from aiokwire.producer import ProducerConfig, ProducerOptions
from aiokwire.types import Guarantee, OffsetReset, Order
from aiokwire.worker.dead_letters import DEFAULT_TOPIC, checked_template
from aiokwire.worker.offset_metadata import MAX_LENGTH
from aiokwire.worker.outcomes import RetryPolicy
from aiokwire.worker.rate_limit import RateLimit
from aiokwire.worker.retry_topics import DEFAULT_RETRY_TOPIC, checked_retry_template

C = TypeVar("C", bound=ClientConfig)

# The time between two commits (ms) without `commit_interval_ms`. Results of a transaction are visible at its end.
COMMIT_INTERVAL_MS: Final = 1_000
TRANSACTION_INTERVAL_MS: Final = 100
# Time for the rebalance listener besides `revoke_timeout_ms`: a commit, and the lookup of offsets.
LISTENER_EXTRA_MS: Final = 30_000

_REFUSED: Final = {
    "key_deserializer": "annotate the handler's argument, or pass key_deserializer= to worker.handler()",
    "value_deserializer": "annotate the handler's argument, or pass value_deserializer= to worker.handler()",
    "key_serializer": "context.send takes bytes",
    "value_serializer": "context.send takes bytes",
}


@documents_options()
@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class WorkerConfig(ConsumerConfig[bytes, bytes], ProducerConfig[bytes, bytes]):
    """Every option of a worker; times in milliseconds, sizes in bytes.

    Raises: ConfigurationError: an option is out of its range, or contradicts another one.
    """

    order: str | Order = "key"
    """Which records wait for each other: "partition": those of one partition; "key": those with the same key in one
    partition, where records without a key do not wait; "none". A record that is retried keeps its place."""
    concurrency: int = 64
    """The most handlers that run at a time."""
    delivery: str | Guarantee = "at-least-once"
    """"at-least-once": a record's offset is committed after its handler has finished, or its dead letter was
    acknowledged. "at-most-once": it is committed before its handler starts. "exactly-once": what handlers send through
    their context and the offsets are one transaction."""
    retry: RetryPolicy | None = None
    """The retry policy of handlers without their own. None: `RetryPolicy()`; with
    delivery="at-most-once" the same with one attempt."""
    handler_timeout_ms: float = 300_000
    """How long one attempt may take where `worker.handler()` has no `timeout`; after it the handler is cancelled and
    has failed. 0: without a limit."""
    dead_letter_topic: str = DEFAULT_TOPIC
    """The topic of records that no handler could process; `{topic}` stands for the record's, `{group}` for the
    group."""
    retry_topic: str = DEFAULT_RETRY_TOPIC
    """The topics in which records wait for `RetryPolicy(delays=...)`; `{delay}` stands for the seconds."""
    rate_limit: RateLimit | None = None
    """The calls of all handlers together that may start per second: `RateLimit(100)`. None: without a limit."""
    max_in_flight_records: int = 10_000
    """The most records that are fetched and not finished. Each assigned partition has an equal share; a partition that
    has used three quarters of its share is not read until half of it is finished, while the others continue."""
    max_in_flight_bytes: int = 64 * 1024 * 1024
    """The same for the bytes of their keys and values; records that arrive in one fetch may exceed it."""
    commit_interval_ms: float | None = None
    """The time between two commits, or the longest time that a transaction is open. None: 1,000; with
    delivery="exactly-once" 100."""
    revoke_timeout_ms: float = 20_000
    """How long handlers of revoked partitions may continue before they are cancelled. The rebalance waits for them."""
    shutdown_timeout_ms: float = 20_000
    """How long running handlers may continue after the worker was asked to stop, before they are cancelled. The last
    commit, leaving the group and open deliveries take milliseconds, but up to 20 seconds more while brokers do not
    respond: keep the sum below the grace period of the supervisor."""
    offset_metadata_max_bytes: int = MAX_LENGTH
    """The longest metadata of a commit, which names the records that are finished beyond the committed offset: at most
    the broker's `offset.metadata.max.bytes`. 0: none is written, and a restart handles those records again."""
    auto_offset_reset: str | int | datetime.datetime | datetime.timedelta | OffsetReset = "earliest"
    """As for a consumer, with another default: a new worker handles the existing records."""
    enable_auto_commit: bool | str = False
    """The worker commits by itself; cannot be True."""
    allow_auto_create_topics: bool = True
    """Whether sending to an unknown topic, such as a dead-letter or retry topic, may create it; the broker decides."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, kind in (("order", Order), ("delivery", Guarantee)):
            try:
                kind.parse(getattr(self, name))
            except ConfigurationError as error:
                raise ConfigurationError(f"{name} {error}") from None
        if self.group_id is None:
            raise ConfigurationError("a worker commits offsets for a group: pass group_id=")
        self._check_refused()
        self._check_bounds()
        self._check_guarantee()
        checked_template(self.dead_letter_topic, self.group_id)
        checked_retry_template(self.retry_topic)

    def _check_refused(self) -> None:
        for name, advice in _REFUSED.items():
            if getattr(self, name) is not None:
                raise ConfigurationError(f"{name} is not an option of a worker: {advice}")
        if self.enable_auto_commit is not False:
            raise ConfigurationError(
                "enable_auto_commit must be False: the worker commits a record when its handler has finished; "
                'delivery="at-most-once" commits before'
            )

    def _check_bounds(self) -> None:
        require_int("concurrency", self.concurrency, minimum=1, maximum=100_000)
        require_int("max_in_flight_records", self.max_in_flight_records, minimum=1)
        require_int("max_in_flight_bytes", self.max_in_flight_bytes, minimum=1)
        require_int("offset_metadata_max_bytes", self.offset_metadata_max_bytes, minimum=0)
        if self.commit_interval_ms is not None:
            require_number("commit_interval_ms", self.commit_interval_ms, minimum=1, maximum=INT32_MAX)
        for name in ("handler_timeout_ms", "revoke_timeout_ms", "shutdown_timeout_ms"):
            require_number(name, getattr(self, name), minimum=0, maximum=INT32_MAX)
        if self.retry is not None:
            require_type("retry", self.retry, RetryPolicy, "a RetryPolicy")
        if self.rate_limit is not None:
            require_type("rate_limit", self.rate_limit, RateLimit, "a RateLimit")

    def _check_guarantee(self) -> None:
        if self.guarantee is not Guarantee.EXACTLY_ONCE and self.transactional_id is not None:
            raise ConfigurationError('transactional_id needs delivery="exactly-once"')
        if self.guarantee is Guarantee.AT_MOST_ONCE and self.retry is not None:
            check_single_attempt("retry", self.retry)
        if self.guarantee is Guarantee.EXACTLY_ONCE and self.commit_interval * 1000 >= self.transaction_timeout_ms:
            raise ConfigurationError(
                f"commit_interval_ms ({self.commit_interval * 1000:g}) must be less than transaction_timeout_ms "
                f"({self.transaction_timeout_ms})"
            )

    def _warn_of_clear_text(self, hosts: Sequence[str]) -> None:
        """Leave the warning to the configs of the consumer and the producer."""

    # --- parsed, in seconds -------------------------------------------------------------------------------------------

    @property
    def guarantee(self) -> Guarantee:
        """`delivery`, parsed."""
        return Guarantee.parse(self.delivery)

    @property
    def group(self) -> str:
        """`group_id`, which a worker always has."""
        assert self.group_id is not None
        return self.group_id

    @functools.cached_property
    def retry_policy(self) -> RetryPolicy:
        """`retry`, or its default."""
        if self.retry is not None:
            return self.retry
        return RetryPolicy(attempts=1) if self.guarantee is Guarantee.AT_MOST_ONCE else RetryPolicy()

    @property
    def handler_timeout(self) -> float:
        """In seconds; infinite without a limit."""
        return self.handler_timeout_ms / 1000 if self.handler_timeout_ms else math.inf

    @property
    def commit_interval(self) -> float:
        """In seconds."""
        if self.commit_interval_ms is not None:
            return self.commit_interval_ms / 1000
        is_transactional = self.guarantee is Guarantee.EXACTLY_ONCE
        return (TRANSACTION_INTERVAL_MS if is_transactional else COMMIT_INTERVAL_MS) / 1000

    @property
    def revoke_timeout(self) -> float:
        """In seconds."""
        return self.revoke_timeout_ms / 1000

    @property
    def shutdown_timeout(self) -> float:
        """In seconds."""
        return self.shutdown_timeout_ms / 1000

    # --- the configs of the clients -----------------------------------------------------------------------------------

    def new_consumer_config(self) -> ConsumerConfig[bytes, bytes]:
        """Return the config of the worker's consumer."""
        return self._part(
            ConsumerConfig,
            allow_auto_create_topics=False,
            rebalance_listener_timeout_ms=max(
                self.rebalance_listener_timeout_ms, self.revoke_timeout_ms + LISTENER_EXTRA_MS
            ),
        )

    def new_producer_config(self, rng: random.Random) -> ProducerConfig[bytes, bytes]:
        """Return the config of the worker's producer. Without `transactional_id` each worker has
        its own, derived from the group's: the static member's, or a random one."""
        transactional_id = self.transactional_id
        if self.guarantee is Guarantee.EXACTLY_ONCE and transactional_id is None:
            transactional_id = f"{self.group}-{self.group_instance_id or f'{rng.getrandbits(64):016x}'}"
        return self._part(ProducerConfig, transactional_id=transactional_id)

    def _part(self, kind: type[C], **changes: Any) -> C:
        fields = [field.name for field in dataclasses.fields(kind) if field.init]
        return kind(**{**{name: getattr(self, name) for name in fields}, **changes})


def check_single_attempt(who: str, policy: RetryPolicy) -> None:
    """Raise ConfigurationError if a policy, which delivery="at-most-once" has, repeats calls."""
    if policy.attempts > 1:
        raise ConfigurationError(
            f'delivery="at-most-once" calls a handler once: {who} has {policy.attempts} attempts; pass '
            "RetryPolicy(attempts=1)"
        )
    if policy.delays:
        raise ConfigurationError(
            f'delivery="at-most-once" calls a handler once: {who} has delays; pass RetryPolicy(attempts=1) without'
        )


class WorkerOptions(ConsumerOptions, ProducerOptions, total=False):
    """Keyword options of a worker for type checkers (PEP 692); defaults: see `WorkerConfig`."""

    order: str | Order
    concurrency: int
    delivery: str | Guarantee
    retry: RetryPolicy | None
    handler_timeout_ms: float
    dead_letter_topic: str
    retry_topic: str
    rate_limit: RateLimit | None
    max_in_flight_records: int
    max_in_flight_bytes: int
    commit_interval_ms: float | None
    revoke_timeout_ms: float
    shutdown_timeout_ms: float
    offset_metadata_max_bytes: int
