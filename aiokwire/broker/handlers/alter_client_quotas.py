"""AlterClientQuotas: v0-1

Sets and removes quotas; each entity succeeds or fails by itself.

Version notes:
- an ip must be an address: Kafka resolves names, too
"""

from __future__ import annotations

from collections import Counter

from aiokwire.broker.dispatch import Call
from aiokwire.broker.security import entity_of
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, StorageError
from aiokwire.protocol.messages import alter_client_quotas as messages


async def handle(request: messages.AlterClientQuotasRequest, call: Call) -> messages.AlterClientQuotasResponse:
    """Respond once the quotas are stored."""
    entries = [_alter(call, wanted, validate_only=request.validate_only) for wanted in request.entries]
    if not request.validate_only and any(entry.error_code == ErrorCode.NONE for entry in entries):
        try:
            await call.state.quotas.save()
        except StorageError as error:
            entries = [_result(wanted, ErrorCode.KAFKA_STORAGE_ERROR, str(error)) for wanted in request.entries]
    return messages.AlterClientQuotasResponse(entries=entries)


def refuse(
    request: messages.AlterClientQuotasRequest, version: int, code: ErrorCode
) -> messages.AlterClientQuotasResponse:
    """Return an error for each entity."""
    return messages.AlterClientQuotasResponse(entries=[_result(wanted, code, None) for wanted in request.entries])


def _alter(
    call: Call, wanted: messages.AlterClientQuotasRequestEntryData, *, validate_only: bool
) -> messages.AlterClientQuotasResponseEntryData:
    try:
        entity = entity_of((part.entity_type, part.entity_name) for part in wanted.entity)
        repeated = [key for key, times in Counter(op.key for op in wanted.ops).items() if times > 1]
        if repeated:
            raise BrokerError(f"{repeated[0]} is named twice for one entity", code=ErrorCode.INVALID_REQUEST)
        changes = {op.key: None if op.remove else op.value for op in wanted.ops}
        call.state.quotas.alter(entity, changes, validate_only=validate_only)
    except BrokerError as error:
        return _result(wanted, error.code, str(error))
    return _result(wanted, ErrorCode.NONE, None)


def _result(
    wanted: messages.AlterClientQuotasRequestEntryData, code: ErrorCode, message: str | None
) -> messages.AlterClientQuotasResponseEntryData:
    return messages.AlterClientQuotasResponseEntryData(
        error_code=code,
        error_message=message,
        entity=[
            messages.EntityData(entity_type=part.entity_type, entity_name=part.entity_name) for part in wanted.entity
        ],
    )
