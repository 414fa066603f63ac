"""PushTelemetry: v0

Metrics of a client (KIP-714): the broker keeps its last values and exports them with its own.
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers._shared import telemetry_client
from aiokwire.clock import loop_time, wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, CorruptRecord
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import push_telemetry as messages
from aiokwire.threads import run_in_thread


async def handle(request: messages.PushTelemetryRequest, call: Call) -> messages.PushTelemetryResponse:
    """Respond once the metrics are decoded, which happens in a thread."""
    receiver = call.state.client_metrics
    if receiver is None:
        return messages.PushTelemetryResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if request.client_instance_id == ZERO_UUID:
        return messages.PushTelemetryResponse(error_code=ErrorCode.INVALID_REQUEST)
    instance = receiver.instance(request.client_instance_id, telemetry_client(call, receiver))
    try:
        receiver.check_push(instance, request, loop_time())
        if request.metrics:
            values = await run_in_thread(receiver.decode, bytes(request.metrics), request.compression_type)
            receiver.store(instance, values, wall_ms())
    except BrokerError as error:
        return messages.PushTelemetryResponse(error_code=error.code)
    except CorruptRecord:
        return messages.PushTelemetryResponse(error_code=ErrorCode.INVALID_RECORD)
    return messages.PushTelemetryResponse()
