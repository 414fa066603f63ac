"""InitProducerId: v0-5

A producer id for an idempotent producer. Transactional ids are refused (see MISSING.md).

Version notes:
- v3: a producer that knows its id asks for a higher epoch (KIP-360); without a transactional id it gets a new id
- v4: PRODUCER_FENCED
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable

from aiokwire.broker.dispatch import Call
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import StorageError
from aiokwire.protocol.messages import init_producer_id

logger = logging.getLogger(__name__)


def handle(
    request: init_producer_id.InitProducerIdRequest, call: Call
) -> init_producer_id.InitProducerIdResponse | Awaitable[init_producer_id.InitProducerIdResponse]:
    """Answer at once while the reserved block lasts."""
    if request.transactional_id is not None:
        logger.warning("producer %r asks for transactions, which this broker does not have", request.transactional_id)
        return init_producer_id.InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=-1)
    taken = call.state.producer_ids.take()
    if taken is not None:
        return init_producer_id.InitProducerIdResponse(producer_id=taken, producer_epoch=0)
    return _after_reserving(call)


async def _after_reserving(call: Call) -> init_producer_id.InitProducerIdResponse:
    try:
        producer_id = await call.state.producer_ids.allocate()
    except StorageError as error:
        logger.error("no producer id can be given out: %s", error)
        return init_producer_id.InitProducerIdResponse(
            error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, producer_epoch=-1
        )
    return init_producer_id.InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
