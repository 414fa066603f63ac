"""AlterClientQuotas: v0-1

Sets and removes quotas; each entity succeeds or fails by itself.

Version notes:
- an ip must be an address: Kafka resolves names, too
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from aiokwire.broker.dispatch import Call
from aiokwire.broker.security import Entity, entity_of
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, StorageError
from aiokwire.protocol.messages import alter_client_quotas as messages


async def handle(request: messages.AlterClientQuotasRequest, call: Call) -> messages.AlterClientQuotasResponse:
    """Respond once the quotas are stored."""
    read = [_read(wanted) for wanted in request.entries]
    changes = [one for one in read if not isinstance(one, BrokerError)]
    try:
        altered = iter(await call.state.quotas.alter(changes, validate_only=request.validate_only))
    except StorageError as error:
        return _all(request, ErrorCode.KAFKA_STORAGE_ERROR, str(error))
    faults = [one if isinstance(one, BrokerError) else next(altered) for one in read]
    return messages.AlterClientQuotasResponse(entries=list(map(_result, request.entries, faults)))


def refuse(
    request: messages.AlterClientQuotasRequest, version: int, code: ErrorCode
) -> messages.AlterClientQuotasResponse:
    """Return an error for each entity."""
    return _all(request, code, None)


def _all(
    request: messages.AlterClientQuotasRequest, code: ErrorCode, message: str | None
) -> messages.AlterClientQuotasResponse:
    return messages.AlterClientQuotasResponse(entries=[_entry(wanted, code, message) for wanted in request.entries])


def _read(
    wanted: messages.AlterClientQuotasRequestEntryData,
) -> tuple[Entity, Mapping[str, float | None]] | BrokerError:
    """Return the entity and the changes of an entry, or what is wrong with them."""
    try:
        entity = entity_of((part.entity_type, part.entity_name) for part in wanted.entity)
        repeated = [key for key, times in Counter(op.key for op in wanted.ops).items() if times > 1]
        if repeated:
            raise BrokerError(f"{repeated[0]} is named twice for one entity", code=ErrorCode.INVALID_REQUEST)
    except BrokerError as error:
        return error
    return entity, {op.key: None if op.remove else op.value for op in wanted.ops}


def _result(
    wanted: messages.AlterClientQuotasRequestEntryData, fault: BrokerError | None
) -> messages.AlterClientQuotasResponseEntryData:
    if fault is None:
        return _entry(wanted, ErrorCode.NONE, None)
    return _entry(wanted, fault.code, str(fault))


def _entry(
    wanted: messages.AlterClientQuotasRequestEntryData, code: ErrorCode, message: str | None
) -> messages.AlterClientQuotasResponseEntryData:
    return messages.AlterClientQuotasResponseEntryData(
        error_code=code,
        error_message=message,
        entity=[
            messages.EntityData(entity_type=part.entity_type, entity_name=part.entity_name) for part in wanted.entity
        ],
    )
