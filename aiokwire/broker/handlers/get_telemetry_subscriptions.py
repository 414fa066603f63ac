"""GetTelemetrySubscriptions: v0

The metrics that the broker requests of a client (KIP-714), by the subscriptions that match it.
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers._shared import telemetry_client
from aiokwire.clock import loop_time
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError
from aiokwire.protocol.messages import get_telemetry_subscriptions as messages
from aiokwire.types import Compression

# In the order of preference, as Kafka has it.
ACCEPTED = (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)


def handle(
    request: messages.GetTelemetrySubscriptionsRequest, call: Call
) -> messages.GetTelemetrySubscriptionsResponse:
    """Respond at once."""
    receiver = call.state.client_metrics
    if receiver is None:
        return messages.GetTelemetrySubscriptionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    instance = receiver.instance(request.client_instance_id, telemetry_client(call, receiver))
    try:
        receiver.check_request(instance, loop_time())
    except BrokerError as error:
        return messages.GetTelemetrySubscriptionsResponse(error_code=error.code)
    return messages.GetTelemetrySubscriptionsResponse(
        client_instance_id=instance.id,
        subscription_id=instance.subscription.number,
        accepted_compression_types=list(ACCEPTED),
        push_interval_ms=instance.subscription.interval_ms,
        telemetry_max_bytes=receiver.max_bytes,
        delta_temporality=True,
        requested_metrics=list(instance.subscription.requested),
    )
