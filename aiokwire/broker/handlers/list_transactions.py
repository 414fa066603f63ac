"""ListTransactions: v0-2

The transactional ids of the broker that match all filters.

Version notes:
- v1: only transactions older than a number of milliseconds
- v2: only ids that match a regular expression, in RE2's syntax
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.patterns import InvalidPattern, Pattern
from aiokwire.broker.security import AclOperation, ResourceType
from aiokwire.broker.transactions import Transaction, TransactionState
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import list_transactions as messages

_STATES = {state.title for state in TransactionState}


def handle(request: messages.ListTransactionsRequest, call: Call) -> messages.ListTransactionsResponse:
    """Respond at once."""
    now = wall_ms()
    found = [one for one in call.state.transactions if _fits(one, request, now)]
    if request.transactional_id_pattern:
        try:
            matching = set(Pattern(request.transactional_id_pattern).select(one.transactional_id for one in found))
        except InvalidPattern:
            return messages.ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
        found = [one for one in found if one.transactional_id in matching]
    if call.state.authorizer is not None:
        operation, kind = AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID
        found = [one for one in found if call.is_allowed(operation, kind, one.transactional_id, is_asked=False)]
    return messages.ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in _STATES],
        transaction_states=[
            messages.TransactionState(
                transactional_id=one.transactional_id, producer_id=one.producer_id, transaction_state=one.state.title
            )
            for one in found
        ],
    )


def _fits(one: Transaction, request: messages.ListTransactionsRequest, now: int) -> bool:
    if request.state_filters and one.state.title not in request.state_filters:
        return False
    if request.producer_id_filters and one.producer_id not in request.producer_id_filters:
        return False
    return request.duration_filter < 0 or (one.started_ms >= 0 and now - one.started_ms > request.duration_filter)
