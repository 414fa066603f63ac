"""InitProducerId: v0-5

Gives an idempotent producer a new id, a transactional one its id and next epoch, fencing others.

Version notes:
- v3: a producer with an id requests a higher epoch (KIP-360); not transactional, it gets a new id
- v4: PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH
"""

from __future__ import annotations

import logging

from aiokwire.broker.dispatch import Call, MaybeAwaitable
from aiokwire.broker.handlers._shared import fenced_code
from aiokwire.broker.security import AclOperation, ResourceType
from aiokwire.broker.transactions import Answered, Identity
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import StorageError
from aiokwire.protocol.messages import init_producer_id as messages

logger: logging.Logger = logging.getLogger(__name__)

FENCED_SINCE = 4


def handle(request: messages.InitProducerIdRequest, call: Call) -> MaybeAwaitable[messages.InitProducerIdResponse]:
    """Respond at once if there is a reserved id and the coordinator's log is ready."""
    if request.transactional_id is not None:
        if not call.is_allowed(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
            return _refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return _transactional(request, request.transactional_id, call)
    if call.state.authorizer is not None and not _may_be_idempotent(call):
        return _refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    taken = call.state.producer_ids.take()
    if taken is not None:
        return messages.InitProducerIdResponse(producer_id=taken, producer_epoch=0)
    return _after_reserving(call)


def _may_be_idempotent(call: Call) -> bool:
    """Return whether the client may write idempotently; writing to any topic includes it."""
    return (
        call.is_allowed_in_cluster(AclOperation.IDEMPOTENT_WRITE, is_asked=False)
        or call.is_allowed_any(AclOperation.WRITE, ResourceType.TOPIC)
        or call.is_allowed_in_cluster(AclOperation.IDEMPOTENT_WRITE)  # for the log
    )


async def _after_reserving(call: Call) -> messages.InitProducerIdResponse:
    try:
        producer_id = await call.state.producer_ids.allocate()
    except StorageError as error:
        logger.error("cannot allocate a producer id: %s", error)
        return _refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return messages.InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _transactional(
    request: messages.InitProducerIdRequest, transactional_id: str, call: Call
) -> MaybeAwaitable[messages.InitProducerIdResponse]:
    named = Identity(request.producer_id, request.producer_epoch)
    if not transactional_id or (named.producer_id < 0) is not (named.epoch < 0):
        return _refusal(ErrorCode.INVALID_REQUEST)
    transactions = call.state.transactions
    expected = named if named.producer_id >= 0 else None
    return transactions.run(
        transactional_id,
        lambda: _response(
            transactions.init_producer(transactional_id, request.transaction_timeout_ms, expected), call.version
        ),
        _refusal,
    )


def _response(answered: Answered, version: int) -> messages.InitProducerIdResponse:
    if answered.code is not ErrorCode.NONE:
        return _refusal(fenced_code(answered.code, version, FENCED_SINCE))
    return messages.InitProducerIdResponse(
        producer_id=answered.identity.producer_id, producer_epoch=answered.identity.epoch
    )


def refuse(request: messages.InitProducerIdRequest, version: int, code: ErrorCode) -> messages.InitProducerIdResponse:
    """Return an error and no producer id."""
    return _refusal(code)


def _refusal(code: ErrorCode) -> messages.InitProducerIdResponse:
    return messages.InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
