"""AddOffsetsToTxn: v0-4

Adds the partition of a group's offsets to a producer's transaction, before TxnOffsetCommit.

Version notes:
- v2: PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call, MaybeAwaitable
from aiokwire.broker.handlers._shared import fenced_code
from aiokwire.broker.transactions import Identity
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import add_offsets_to_txn as messages

FENCED_SINCE = 2


def handle(request: messages.AddOffsetsToTxnRequest, call: Call) -> MaybeAwaitable[messages.AddOffsetsToTxnResponse]:
    """Respond at once if the coordinator's log is ready."""
    return call.state.transactions.run(request.transactional_id, lambda: _add(request, call), _response)


def _add(request: messages.AddOffsetsToTxnRequest, call: Call) -> messages.AddOffsetsToTxnResponse:
    if not request.transactional_id:
        return _response(ErrorCode.INVALID_REQUEST)
    if not request.group_id:
        return _response(ErrorCode.INVALID_GROUP_ID)
    code = call.state.transactions.add_partitions(
        request.transactional_id,
        Identity(request.producer_id, request.producer_epoch),
        {call.state.offsets.partition_of(request.group_id)},
    )
    return _response(fenced_code(code, call.version, FENCED_SINCE))


def _response(code: ErrorCode) -> messages.AddOffsetsToTxnResponse:
    return messages.AddOffsetsToTxnResponse(error_code=code)
