"""EndTxn: v0-5

Commits or aborts a producer's transaction. Once the decision is in the log, it is final.

Version notes:
- v2: PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH
- v4: TRANSACTION_ABORTABLE, which does not occur here
- v5: the end raises the producer's epoch and returns it; abort without a transaction (KIP-890)
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call, MaybeAwaitable
from aiokwire.broker.handlers._shared import fenced_code
from aiokwire.broker.transactions import Identity
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import end_txn as messages

FENCED_SINCE = 2
BUMPS_SINCE = 5
NEWER_CLIENT = 2  # the transaction.version of clients that send such versions


def handle(request: messages.EndTxnRequest, call: Call) -> MaybeAwaitable[messages.EndTxnResponse]:
    """Respond once the decision is logged, and flushed if the configs require it."""
    transactions = call.state.transactions
    return transactions.run(
        request.transactional_id,
        lambda: _prepare(request, call),
        _refusal,
        then=lambda: transactions.finish(request.transactional_id),
    )


def _prepare(request: messages.EndTxnRequest, call: Call) -> messages.EndTxnResponse:
    if not request.transactional_id:
        return _refusal(ErrorCode.INVALID_REQUEST)
    answered = call.state.transactions.prepare_end(
        request.transactional_id,
        Identity(request.producer_id, request.producer_epoch),
        commit=request.committed,
        client_version=NEWER_CLIENT if call.version >= BUMPS_SINCE else 0,
    )
    if answered.code is not ErrorCode.NONE:
        return _refusal(fenced_code(answered.code, call.version, FENCED_SINCE))
    if call.version < BUMPS_SINCE:
        return messages.EndTxnResponse()
    return messages.EndTxnResponse(producer_id=answered.identity.producer_id, producer_epoch=answered.identity.epoch)


def _refusal(code: ErrorCode) -> messages.EndTxnResponse:
    return messages.EndTxnResponse(error_code=code)
