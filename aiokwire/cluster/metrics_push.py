"""Pushes the metrics of a client to a broker that asks for them (KIP-714).

    subscribe -> nothing requested: ask again after the interval
              -> push at the interval, the first time between a half and one and a half of it
    unknown subscription, or a failure -> subscribe again

Without a subscription it sends one request in five minutes; to a broker without KIP-714, none. A
failure never fails the client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from aiokwire import otlp
from aiokwire.clock import loop_time, wall_ms
from aiokwire.cluster.pushed_metrics import Ledger, Push
from aiokwire.cluster.targets import Node
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ClosedError, ConfigurationError, ConnectionFailed, KafkaError, UnsupportedVersion
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.metrics import Sample
from aiokwire.protocol import ZERO_UUID, uuid_text
from aiokwire.protocol.messages import get_telemetry_subscriptions, push_telemetry
from aiokwire.records import compress
from aiokwire.threads import run_in_thread
from aiokwire.types import Compression

if TYPE_CHECKING:
    from aiokwire.cluster.client import Client

logger: FieldLogger = get_logger(__name__)

DEFAULT_INTERVAL: Final = 300.0  # seconds, also the pause after a failure
MIN_INTERVAL: Final = 0.1
LAST_PUSH_SECONDS: Final = 1.0  # for the push when the client is closed
JITTER: Final = (0.5, 1.5)  # of the interval before the first push


class Subscription(NamedTuple):
    """A broker's subscription: the metrics that it requests."""

    number: int
    requested: tuple[str, ...]
    interval: float  # seconds
    codec: Compression
    max_bytes: int
    is_delta: bool


def subscription_of(answer: get_telemetry_subscriptions.GetTelemetrySubscriptionsResponse) -> Subscription:
    """Return the subscription in a response without an error."""
    interval = answer.push_interval_ms / 1000
    return Subscription(
        answer.subscription_id,
        tuple(answer.requested_metrics),
        max(MIN_INTERVAL, interval) if interval > 0 else DEFAULT_INTERVAL,
        preferred_codec(answer.accepted_compression_types),
        answer.telemetry_max_bytes,
        answer.delta_temporality,
    )


def preferred_codec(accepted: Sequence[int]) -> Compression:
    """Return the first accepted codec, which is the one that the broker prefers."""
    known = (Compression(one) for one in accepted if one in set(Compression))
    return next(known, Compression.NONE)


def pause_after(code: int, interval: float) -> float | None:
    """Return the seconds until the next attempt after an error code; None: never again."""
    if code in (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE):
        return 0.0
    if code in (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_RECORD, ErrorCode.UNSUPPORTED_VERSION):
        return None
    return interval


class MetricsPush:
    """The subscription of one client, and its pushes."""

    def __init__(
        self,
        client: Client,
        kind: str,
        measure: Callable[[], list[Sample]],
        resource: Callable[[], Mapping[str, str | None]] = dict,
    ) -> None:
        """`kind`: "producer", "consumer" or "admin". `measure` and `resource` (labels of all
        metrics) may be called from any thread."""
        self._client = client
        self._measure = measure
        self._resource = resource
        self._ledger = Ledger(kind)
        self._instance = ZERO_UUID
        self._node: int | None = None  # of the last request
        self._subscription: Subscription | None = None
        self._is_delta: bool | None = None
        self._interval = DEFAULT_INTERVAL  # of the last subscription
        self._pushed_at = 0.0  # the loop's time
        self._pushed_ms = 0  # the wall clock's
        self._pushing = anyio.Lock()
        self._ended = False

    @property
    def client_instance_id(self) -> str | None:
        """The id of this client that a broker assigned, if any."""
        return None if self._instance == ZERO_UUID else uuid_text(self._instance)

    def start(self) -> None:
        """Begin; it ends with the client."""
        self._pushed_at, self._pushed_ms = loop_time(), wall_ms()
        self._client.spawn(self._run, name="metrics push")

    async def _run(self) -> None:
        pause: float | None = 0.0
        while pause is not None and not self._ended:
            await self._client.pause(pause)
            pause = await self._turn()

    async def _turn(self) -> float | None:
        """Subscribe or push; return the seconds until the next turn, None after the last."""
        try:
            return await (self._subscribe() if self._subscription is None else self._push(self._subscription))
        except (ClosedError, UnsupportedVersion):
            return None
        except ConfigurationError as error:
            logger.info(
                "cannot push the metrics that a broker requests: %s; set enable_metrics_push=False to disable pushing",
                error,
            )
            return None
        except KafkaError as error:
            logger.debug("cannot push metrics: %s; retrying in %.0f s", error, DEFAULT_INTERVAL)
            self._subscription = self._node = None
            return DEFAULT_INTERVAL
        except Exception:
            logger.exception("stopped pushing metrics after an unexpected error; records are not affected")
            self._subscription = None
            return None

    def _target(self) -> Node:
        if self._node is None:
            self._node = self._client.nodes.least_loaded()
        if self._node is None:
            raise ConnectionFailed("no broker is known", stage="resolve")
        return Node(self._node)

    async def _subscribe(self) -> float | None:
        request = get_telemetry_subscriptions.GetTelemetrySubscriptionsRequest(client_instance_id=self._instance)
        answer = await self._client.request(request, to=self._target(), timeout=self._client.config.request_timeout)
        if answer.error_code:
            return pause_after(answer.error_code, self._interval)
        found = subscription_of(answer)
        if found.requested:
            await run_in_thread(otlp.check_installed)  # the first import takes a while
        self._instance, self._interval = answer.client_instance_id, found.interval
        if not found.requested:
            return found.interval
        if self._is_delta not in (None, found.is_delta):
            self._ledger.reset()
        self._subscription, self._is_delta = found, found.is_delta
        logger.info(
            "pushing the metrics %s every %.1f s, as requested by a subscription at the broker",
            ", ".join(found.requested[:5]),
            found.interval,
        )
        return found.interval * self._client.rng.uniform(*JITTER)

    async def _push(self, subscription: Subscription, *, is_last: bool = False) -> float | None:
        async with self._pushing:
            if self._ended and not is_last:
                return None
            at, wall = loop_time(), wall_ms()
            push, payload = await run_in_thread(self._payload, subscription, at - self._pushed_at, wall)
            answer = await self._client.request(
                push_telemetry.PushTelemetryRequest(
                    client_instance_id=self._instance,
                    subscription_id=subscription.number,
                    terminating=is_last,
                    compression_type=subscription.codec,
                    metrics=payload,
                ),
                to=self._target(),
                timeout=self._client.config.request_timeout,
            )
            if not answer.error_code:
                self._ledger.accepted(push)
                self._pushed_at, self._pushed_ms = at, wall
                return subscription.interval
        logger.debug("the broker refused metrics: %s", ErrorCode.of(answer.error_code).name)
        pause = pause_after(answer.error_code, subscription.interval)
        if pause is None or not pause:
            self._subscription = None
        return pause

    def _payload(self, subscription: Subscription, seconds: float, wall: int) -> tuple[Push, bytes]:
        """Return the next push, and its bytes; only the standard metrics if all are too many.
        Called in a thread."""
        push = self._ledger.collect(self._measure(), subscription.requested, seconds, is_delta=subscription.is_delta)
        payload = self._encoded(push.values, subscription, wall)
        if len(payload) > subscription.max_bytes > 0:
            payload = self._encoded(push.standard(), subscription, wall)
        return push, payload

    def _encoded(self, values: list[Sample], subscription: Subscription, wall: int) -> bytes:
        resource = {name: value for name, value in self._resource().items() if value}
        period = otlp.Period(self._pushed_ms * 1_000_000, wall * 1_000_000)
        data = otlp.encode(values, resource, period, is_delta=subscription.is_delta)
        return compress(subscription.codec, data) if subscription.codec else data

    async def terminate(self, timeout: float | None = None) -> None:
        """Push for the last time if a broker requests metrics; `timeout` in seconds, 1 at most."""
        self._ended = True
        subscription, self._subscription = self._subscription, None
        if subscription is None or self._client.closed or self._client.forked:
            return
        seconds = LAST_PUSH_SECONDS if timeout is None else min(timeout, LAST_PUSH_SECONDS)
        with anyio.move_on_after(seconds):
            try:
                await self._push(subscription, is_last=True)
            except Exception as error:
                logger.debug("cannot push the last metrics: %s", error)
